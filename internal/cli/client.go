package cli

import (
	"github.com/spf13/cobra"

	"github.com/lockfault/lockfault/internal/cli/cells"
	"github.com/lockfault/lockfault/internal/cli/kit"
	"github.com/lockfault/lockfault/internal/harness/client"
	"github.com/lockfault/lockfault/internal/stdio"
)

func newClientCommand(a *kit.App) *cobra.Command {
	return &cobra.Command{
		Use:   cells.ClientCommand,
		Short: "Be one client of a lock, for a parent process",
		Long: `Be one client of a lock, as the worlds of real servers start them: read orders
as JSON lines on standard input, and write reports on standard output.
docs/client-protocol.md describes the conversation.`,
		Hidden: true,
		Args:   kit.NoArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			cells.ShowProc()
			kit.SilenceRedis()
			// Output of a strategy must not get into the protocol on standard output.
			out, err := stdio.Output()
			if err != nil {
				return err
			}
			return client.Serve(cmd.InOrStdin(), out, a.Everything.Lookup)
		},
	}
}
