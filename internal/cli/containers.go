package cli

import (
	"os"
	"os/exec"

	"github.com/spf13/cobra"

	"github.com/lockfault/lockfault/internal/worlds"
)

// watchmanCommand is the name of the hidden command that removes the containers of a killed parent
// process.
const watchmanCommand = "watchman"

func newWatchmanCommand() *cobra.Command {
	return &cobra.Command{
		Use:    watchmanCommand,
		Short:  "Remove the containers of a parent process that was killed",
		Hidden: true,
		Args:   noArgs,
		RunE:   func(cmd *cobra.Command, args []string) error { return worlds.Watch(cmd.InOrStdin()) },
	}
}

// commandOf returns a function that creates a command that runs this executable with the given
// subcommand.
func (p *player) commandOf(command string) func() *exec.Cmd {
	return func() *exec.Cmd {
		cmd := exec.Command(p.executable, command)
		cmd.Args[0] = os.Args[0]
		return cmd
	}
}
