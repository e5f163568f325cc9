package cli

import (
	"cmp"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/lockfault/lockfault/internal/cli/kit"
	"github.com/lockfault/lockfault/internal/cli/selection"
	"github.com/lockfault/lockfault/internal/shell"
	"github.com/lockfault/lockfault/internal/worlds"
)

type subjectCheckOptions struct {
	selection.SubjectFlags
	server  string
	timeout time.Duration
}

func newSubjectCheckCommand(a *kit.App) *cobra.Command {
	var o subjectCheckOptions
	cmd := &cobra.Command{
		Use:   "subject-check COMMAND",
		Short: "Check a client program step by step",
		Long: `Start the program twice, as two clients of one lock, and send every request of the simple
form of the protocol, with the links and the redis-server of a run. Each step prints its
result: ok, a note for the author of the program, or an error.

docs/subject.md defines the form, and has an adapter to start with.`,
		Example: `  lockfault subject-check 'python3 my_lock.py'
  lockfault subject-check 'node my_lock.js' --subject-nodes 3`,
		Args: kit.ExactArgs("the command of a program, in quotes"),
		RunE: func(cmd *cobra.Command, args []string) error { return o.run(cmd, a, args[0]) },
	}
	flags := cmd.Flags()
	o.AddTraits(flags)
	flags.StringVar(&o.server, "redis-server", "", "server `program` (default: redis-server or valkey-server from PATH)")
	flags.DurationVar(&o.timeout, "timeout", 10*time.Second, "maximum time for a reply, in addition to the waiting time of the request")
	return cmd
}

func (o *subjectCheckOptions) run(cmd *cobra.Command, a *kit.App, command string) error {
	if err := cmp.Or(
		kit.UsageIf(o.timeout <= 0, "--timeout %v leaves no time: give some, such as 10s", o.timeout),
		kit.Between("timeout", o.timeout, time.Nanosecond, kit.MaxDuration),
	); err != nil {
		return err
	}
	o.Command, o.Protocol = command, selection.SimpleProtocol
	s, err := o.Program(cmd, a.Registry, "the command")
	if err != nil {
		return err
	}
	place := worlds.Place{World: worlds.Process, RedisServer: o.server}
	if err := errors.Join(worlds.CanWatch(), place.Check(cmd.Context(), nil)); err != nil {
		return kit.Exit(kit.ExitUndecided, err)
	}
	kit.SilenceRedis()
	venue, err := worlds.NewVenue(place, worlds.Programs{})
	if err != nil {
		return err
	}
	defer place.Sweep()
	good, err := venue.Rehearse(cmd.Context(), s.Strategy(), o.timeout, func(f worlds.Finding) {
		fmt.Fprintf(cmd.OutOrStdout(), "%-6s %-10s %s\n", f.Grade, f.Step, f.Text)
	})
	err = errors.Join(err, venue.Close())
	switch {
	case err != nil:
		return kit.Interrupted(err, "interrupted")
	case !good:
		return kit.Exit(kit.ExitDiffers, nil)
	}
	fmt.Fprintf(cmd.OutOrStdout(), "all is well: %s --world process\n", shell.Line(append([]string{cmd.Root().Name(), "run"}, o.FlagArgs()...)))
	return nil
}
