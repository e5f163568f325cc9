package cli

import (
	"os"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/lockfault/lockfault/internal/cli/cells"
	"github.com/lockfault/lockfault/internal/cli/kit"
	"github.com/lockfault/lockfault/reports"
)

func newPlayCommand(a *kit.App) *cobra.Command {
	var o cells.Settings
	cmd := &cobra.Command{
		Use:   "play STRATEGY SCENARIO",
		Short: "Step through one cell in the terminal",
		Long: `Play one strategy under one scenario, and show its events one after the other, as "trace"
prints them. The current state is below the events:

  belief  the clients that believe that they hold the lock
  server  the owner of the key, and the end of its lease
  result  the result of each client's last operation
  damage  what the protected resource accepted, and whether two clients hold the lock now

The verdict follows the last event, with the events that prove it. A > marks the current
event and each part of the state that this event changed.

Keys:
  space, right, n   next event
  left, b           previous event
  home, g           first event
  end, G            last event
  r                 run slowed down, with 0.1 s to 1.5 s for each event; r again stops
  up, down          follow a client or server: next and previous then go to its events,
                    which are marked with *
  esc               follow no client or server
  q, ctrl-c         quit

The exit status is that of "trace". Set NO_COLOR in the environment to disable colours.`,
		Example: `  lockfault play getset-timestamp getset-race
  lockfault play redlock gc-pause-holding --ttl 10s`,
		Args: cells.CellArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			if a.Show == nil {
				return kit.Lacks("the command play", "")
			}
			c, err := o.ChooseCell(cmd, a, args)
			if err != nil {
				return err
			}
			in, out, ok := terminal(cmd)
			if !ok {
				return kit.Usage("play needs a terminal: \"%s trace\" tells the same story", cmd.Root().Name())
			}
			cell, history, err := o.PlayCell(cmd, c)
			if err != nil {
				return err
			}
			err = a.Show(cmd.Context(), in, out, reports.Narrate(cell, history, reports.View{}), os.Getenv("NO_COLOR") == "")
			if err != nil {
				return kit.Interrupted(err, "interrupted")
			}
			return cells.CellStatus(cell)
		},
	}
	o.AddFlags(cmd)
	return cmd
}

// terminal returns the terminals for input and output, usually the same device. ok is false unless
// both are terminals with cursor movement.
func terminal(cmd *cobra.Command) (in, out *os.File, ok bool) {
	in, _ = cmd.InOrStdin().(*os.File)
	if o, wrapped := cmd.OutOrStdout().(*kit.Output); wrapped {
		out = o.File()
	}
	for _, f := range []*os.File{in, out} {
		if f == nil || !term.IsTerminal(int(f.Fd())) {
			return nil, nil, false
		}
	}
	return in, out, os.Getenv("TERM") != "dumb"
}
