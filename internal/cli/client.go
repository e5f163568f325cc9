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
			if os.Getenv(procOfAll) == noProc {
				os.Unsetenv(procOfAll) // nothing for a lock to see
			}
			redis.SetLogger(nopLogger{})
			// What a strategy prints must not get into the conversation.
			out, err := stdio.Output()
			if err != nil {
				return err
			}
			return client.Serve(cmd.InOrStdin(), out, a.everything.Lookup)
		},
	}
}

// When a program begins, testcontainers reads what there is to know of each process of
// the machine. That is half of what it takes to start a client, and more among many
// clients, which have nothing to do with containers: so they are told that there is
// nothing to read.
const (
	procOfAll = "HOST_PROC"
	noProc    = "/nonexistent"
)

// bare is the command of a client, which starts without what clients don't need.
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

// nopLogger silences go-redis, which logs each connection that it can't make.
type nopLogger struct{}

func (nopLogger) Printf(context.Context, string, ...any) {}
