package cli

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/spf13/cobra"

	"github.com/lockfault/lockfault/internal/shell"
	"github.com/lockfault/lockfault/internal/worlds"
)

type subjectCheckOptions struct {
	subjectFlags
	server  string
	timeout time.Duration
}

func newSubjectCheckCommand(a *app) *cobra.Command {
	var o subjectCheckOptions
	cmd := &cobra.Command{
		Use:   "subject-check COMMAND",
		Short: "Try a program that is to be a client, step by step",
		Long: `Start the program twice, as two clients of one lock, and ask it by the simple form of
the protocol for all that a script may ask for, over the links and against the
redis-server that a run would have. Each step says what came of it: ok, a note of
what its author should know, or what is wrong.

docs/subject.md has the form, and an adapter to begin with.`,
		Example: `  lockfault subject-check 'python3 my_lock.py'
  lockfault subject-check 'node my_lock.js' --subject-nodes 3`,
		Args: exactArgs("the command of a program, in quotes"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return o.run(cmd, a, args[0])
		},
	}
	flags := cmd.Flags()
	o.addTraits(flags)
	flags.StringVar(&o.server, "redis-server", "", "server `program`; default redis-server or valkey-server from PATH")
	flags.DurationVar(&o.timeout, "timeout", 10*time.Second, "how long the program may take for an answer, beside the time that it is given to wait")
	return cmd
}

func (o *subjectCheckOptions) run(cmd *cobra.Command, a *app, command string) error {
	if o.timeout <= 0 {
		return usage("--timeout %v leaves no time: give some, such as 10s", o.timeout)
	}
	if err := between("timeout", o.timeout, time.Nanosecond, longest); err != nil {
		return err
	}
	o.command, o.protocol = command, simpleProtocol
	s, err := o.program(cmd, a.registry, "the command")
	if err != nil {
		return err
	}
	place := worlds.Place{World: worlds.Process, RedisServer: o.server}
	if err := errors.Join(worlds.CanWatch(), place.Check(cmd.Context())); err != nil {
		return &statusError{ExitUndecided, err}
	}
	redis.SetLogger(nopLogger{})
	venue, err := worlds.NewVenue(place, worlds.Programs{})
	if err != nil {
		return err
	}
	defer place.Sweep()
	good, err := venue.Rehearse(cmd.Context(), s.strategy(), o.timeout, func(f worlds.Finding) {
		fmt.Fprintf(cmd.OutOrStdout(), "%-6s %-10s %s\n", f.Grade, f.Step, f.Text)
	})
	err = errors.Join(err, venue.Close())
	switch {
	case errors.Is(err, context.Canceled):
		return &statusError{ExitInterrupted, errors.New("interrupted")}
	case err != nil:
		return err
	case !good:
		return &statusError{code: ExitDiffers}
	}
	args := append([]string{cmd.Root().Name(), "run"}, o.flagArgs()...)
	for i, arg := range args {
		args[i] = shell.Quote(arg)
	}
	fmt.Fprintf(cmd.OutOrStdout(), "all is well: %s --world process\n", strings.Join(args, " "))
	return nil
}
