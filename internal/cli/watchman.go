package cli

import (
	"github.com/spf13/cobra"

	"github.com/lockfault/lockfault/internal/cli/cells"
	"github.com/lockfault/lockfault/internal/cli/kit"
)

func newWatchmanCommand(a *kit.App) *cobra.Command {
	return &cobra.Command{
		Use:    cells.WatchmanCommand,
		Short:  "Remove the containers of a parent process that was killed",
		Hidden: true,
		Args:   kit.NoArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			if a.Containers == nil {
				return kit.Lacks(cells.WatchmanCommand, "withdocker")
			}
			return a.Containers.Watch(cmd.InOrStdin())
		},
	}
}
