package cli

import (
	"context"
	"github.com/redis/go-redis/v9"
	"github.com/spf13/cobra"

	"github.com/lockfault/lockfault/harness/client"
	"github.com/lockfault/lockfault/internal/stdio"
)

// clientCommand is the name of the command that makes a process a client.
const clientCommand = "client"

func newClientCommand(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   clientCommand,
		Short: "Be one client of a lock, for a parent process",
		Long: `Be one client of a lock, as the worlds of real servers start them: read orders
as JSON lines on standard input, and write reports on standard output.
docs/client-protocol.md describes the conversation.`,
		Hidden: true,
		Args:   noArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			redis.SetLogger(nothing{})
			// What a strategy prints must not get into the conversation.
			out, err := stdio.Output()
			if err != nil {
				return err
			}
			return client.Serve(cmd.InOrStdin(), out, a.registry.Lookup)
		},
	}
}

// nothing silences go-redis, which logs each connection that it can't make.
type nothing struct{}

func (nothing) Printf(context.Context, string, ...any) {}
