package cli

import (
	"fmt"
	"runtime/debug"

	"github.com/spf13/cobra"
)

func newVersionCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Print the version",
		Args:  noArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			_, err := fmt.Fprintf(cmd.OutOrStdout(), "lockfault %s\n", version())
			return err
		},
	}
}

// module is the path under which a binary knows this module, its own or a
// user's.
const module = "github.com/lockfault/lockfault"

// version returns the module's version as the binary was built with it:
// "(devel)" for a build of a working copy, with the commit where it is known.
func version() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "unknown"
	}
	for _, m := range info.Deps {
		if m.Path == module {
			return m.Version
		}
	}
	if info.Main.Version == "" {
		return "(devel)"
	}
	return info.Main.Version
}
