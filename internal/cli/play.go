package cli

import (
	"context"
	"errors"
	"os"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/lockfault/lockfault/internal/cli/tui"
	"github.com/lockfault/lockfault/reports"
)

func newPlayCommand(a *app) *cobra.Command {
	var o playOptions
	cmd := &cobra.Command{
		Use:   "play STRATEGY SCENARIO",
		Short: "Show the story of one cell step by step, in the terminal",
		Long: `Play one strategy under one scenario and show what happened one event after the
other, as "trace" tells it: the story so far, and below it the four truths as they
are now. Belief is who thinks that it holds the lock, server is whose the key is
and until when, result is what each client's last operation returned, and damage is
what the protected resource accepted, and whether two hold at once now. Behind the
last event comes the verdict, with the events that prove it. A > is before the event
that happens now, and before each truth that it changed.

  space, right, n   the next event
  left, b           the one before
  home, g           the first
  end, G            the last
  r                 time goes on by itself, slowed down, but no event is shown for
                    less than 0.1s or more than 1.5s; r again stops
  up, down          follow a client or server: next and back then go to its events,
                    which have a * before them
  esc               follow nobody
  q, ctrl-c         quit

The exit status is that of "trace". NO_COLOR in the environment does without
colours.`,
		Example: `  lockfault play getset-timestamp getset-race
  lockfault play redlock gc-pause-holding --ttl 10s`,
		Args: cellArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := o.chooseCell(cmd, a, args)
			if err != nil {
				return err
			}
			in, out, ok := terminal(cmd)
			if !ok {
				return usage("play needs a terminal: \"%s trace\" tells the same story", cmd.Root().Name())
			}
			cell, history, err := o.playCell(cmd, c)
			if err != nil {
				return err
			}
			err = tui.Show(cmd.Context(), in, out, reports.Narrate(cell, history, reports.View{}), os.Getenv("NO_COLOR") == "")
			if errors.Is(err, context.Canceled) {
				return &statusError{ExitInterrupted, errors.New("interrupted")}
			}
			if err != nil {
				return err
			}
			return cellStatus(cell)
		},
	}
	o.addFlags(cmd)
	return cmd
}

// terminal returns the terminals for input and output, usually the same device. ok is false unless
// both are terminals with cursor movement.
func terminal(cmd *cobra.Command) (in, out *os.File, ok bool) {
	in, _ = cmd.InOrStdin().(*os.File)
	if o, wrapped := cmd.OutOrStdout().(*output); wrapped {
		out = o.file()
	}
	for _, f := range []*os.File{in, out} {
		if f == nil || !term.IsTerminal(int(f.Fd())) {
			return nil, nil, false
		}
	}
	return in, out, os.Getenv("TERM") != "dumb"
}
