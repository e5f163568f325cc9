package cli

import (
	"context"
	"os"
	"os/exec"

	"github.com/redis/go-redis/v9"
	"github.com/spf13/cobra"

	"github.com/lockfault/lockfault/internal/harness/client"
	"github.com/lockfault/lockfault/internal/stdio"
)

// clientCommand is the name of the hidden command that runs a process as a client.
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
			if os.Getenv(procOfAll) == noProc {
				os.Unsetenv(procOfAll) // hide the variable from the lock
			}
			redis.SetLogger(nopLogger{})
			// Output of a strategy must not get into the protocol on standard output.
			out, err := stdio.Output()
			if err != nil {
				return err
			}
			return client.Serve(cmd.InOrStdin(), out, a.everything.Lookup)
		},
	}
}

// The package testcontainers reads the list of all processes of the machine when a program starts.
// Reading the list takes half of the start time of a client, and more with many clients, although
// clients use no containers. Clients are therefore started with HOST_PROC set to a path that does
// not exist.
const (
	procOfAll = "HOST_PROC"
	noProc    = "/nonexistent"
)

// bare returns a function that creates the command of a client, with HOST_PROC set to noProc. If
// the user has set HOST_PROC, bare returns command unchanged.
func bare(command func() *exec.Cmd) func() *exec.Cmd {
	if os.Getenv(procOfAll) != "" {
		return command
	}
	return func() *exec.Cmd {
		cmd := command()
		cmd.Env = append(cmd.Environ(), procOfAll+"="+noProc)
		return cmd
	}
}

// nopLogger silences go-redis, which logs each failed connection.
type nopLogger struct{}

func (nopLogger) Printf(context.Context, string, ...any) {}
