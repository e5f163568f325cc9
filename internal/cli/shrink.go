package cli

import (
	"errors"
	"fmt"
	"runtime"
	"slices"

	"github.com/spf13/cobra"

	"github.com/lockfault/lockfault/checker"
	"github.com/lockfault/lockfault/internal/atomicdir"
	"github.com/lockfault/lockfault/internal/explore"
	"github.com/lockfault/lockfault/internal/workerpool"
	"github.com/lockfault/lockfault/internal/worlds"
	"github.com/lockfault/lockfault/strategies"
)

type shrinkOptions struct {
	playOptions
	strategy, scenario, anomaly, out string
	jobs                             int
}

func newShrinkCommand(a *app) *cobra.Command {
	var o shrinkOptions
	o.failover, o.worlds = byReplicaOf, []string{worlds.Sim}
	cmd := &cobra.Command{
		Use:   "shrink --strategy STRATEGY --scenario SCENARIO",
		Short: "Make the smallest script that shows an anomaly out of one that does",
		Long: `Leave out what is not needed for an anomaly that a script shows with a strategy:
clients, rounds, faults, steps. What is left of pauses and of jumps of clocks is made
as small as it may be. Each attempt is played, in virtual time; within its rules no step of the
result can be left out. How it is done: docs/explore.md.

The exit status is 0 if the script was shrunk, or is as small as it gets, 2 if it shows no such
anomaly, 3 if it ended in an error or the lock did not do the same each time, and
130 if that was interrupted. What there is by then is printed or written.`,
		Example: `  lockfault shrink --strategy getset-timestamp --scenario getset-race
  lockfault shrink --strategy redlock --scenario ./mine.txt --anomaly overlap --out small.txt`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, args []string) error { return o.shrink(cmd, a) },
	}
	flags := cmd.Flags()
	flags.StringVar(&o.strategy, "strategy", "", "`name` of the strategy")
	flags.StringVar(&o.scenario, "scenario", "", "`name` or file of the scenario")
	flags.StringVar(&o.anomaly, "anomaly", "", "`anomaly` to keep; default the first that the script shows")
	flags.StringVar(&o.out, "out", "", "`file` to write the script to; default standard output")
	flags.IntVar(&o.jobs, "jobs", runtime.NumCPU(), "`number` of worker processes")
	flags.Uint64Var(&o.seed, "seed", defaultSeed, "`number` that decides latencies, tie-breaks and the strategies' randomness")
	flags.IntVar(&o.nodes, "nodes", 0, "`number` of nodes for strategies that take any, such as redlock; default its own")
	flags.DurationVar(&o.cellTimeout, "cell-timeout", 0, "real time that one script may take; default 20s")
	addNoSubjectFlag(cmd)
	return cmd
}

// subject validates the flags and returns the strategy and the script to shrink.
func (o *shrinkOptions) subject(cmd *cobra.Command, a *app) (s strategies.Strategy, script chosen, err error) {
	if err := o.check(cmd); err != nil {
		return s, script, err
	}
	var words []string
	for _, anomaly := range checker.Anomalies() {
		words = append(words, string(anomaly))
	}
	switch {
	case o.strategy == "":
		return s, script, usage("\"shrink\" needs a strategy: give --strategy, \"%s --help\" explains it", cmd.CommandPath())
	case o.scenario == "":
		return s, script, usage("\"shrink\" needs a script: give --scenario, \"%s --help\" explains it", cmd.CommandPath())
	case o.jobs < 1 || o.jobs > mostWorkers:
		return s, script, usage("--jobs %d: give 1 to %d workers", o.jobs, mostWorkers)
	case cmd.Flags().Changed("anomaly") && !slices.Contains(words, o.anomaly):
		return s, script, unknown("anomaly", o.anomaly, words, "docs/anomalies.md lists them")
	}
	registry := a.registry // shrinking plays in virtual time
	list, err := chooseStrategies(registry, a.everything, []string{o.strategy})
	if err != nil {
		return s, script, err
	}
	if len(list) > 1 {
		return s, script, usage("%q names %d strategies: name one", o.strategy, len(list))
	}
	if err := refuseProgram(cmd, list[0]); err != nil {
		return s, script, err
	}
	if list, err = o.on(list); err != nil {
		return s, script, err
	}
	if script, err = chooseScenario(cmd.Context(), o.scenario); err != nil {
		return s, script, err
	}
	if err := o.prepare(cmd.Context(), registry, []chosen{script}, list); err != nil {
		return s, script, err
	}
	if o.out != "" {
		if err := atomicdir.CheckFile(o.out); err != nil {
			return s, script, usage("--out: %v", err)
		}
	}
	return list[0], script, nil
}

func (o *shrinkOptions) shrink(cmd *cobra.Command, a *app) error {
	strategy, script, err := o.subject(cmd, a)
	if err != nil {
		return err
	}
	start, err := startWorker()
	if err != nil {
		return err
	}
	e := newExplorer(&exploreOptions{playOptions: o.playOptions}, strategy, o.jobs, workerpool.Options{Start: start, Limit: limitOf})
	defer e.close()
	name := script.file
	if name == "" {
		name = script.Name
	}
	shrunk, err := explore.Shrink(cmd.Context(), e, name, script.Format(), checker.Anomaly(o.anomaly))
	interrupted := cmd.Context().Err() != nil
	var absent *explore.NotShownError
	var unsound *explore.NotReproducibleError
	switch {
	case interrupted && shrunk.Script == "":
		return &statusError{ExitInterrupted, errors.New("interrupted before it was seen what the script shows")}
	case interrupted:
	case errors.As(err, &absent):
		return usage("%s with %s: %v: \"%s trace %[2]s %[1]s\" tells what happens", name, strategy.Name, absent, a.program)
	case errors.As(err, &unsound):
		return &statusError{ExitUndecided, fmt.Errorf("%s with %s: %w\n\n%s", name, strategy.Name, unsound, indent(unsound.Script))}
	case err != nil:
		return err
	}
	if err := o.print(cmd, shrunk); err != nil {
		return err
	}
	if interrupted {
		return &statusError{ExitInterrupted, errors.New("interrupted: the script may not be the smallest, and was not played again")}
	}
	return nil
}

// print prints the script, or writes it to --out and prints a summary.
func (o *shrinkOptions) print(cmd *cobra.Command, shrunk explore.ShrinkResult) error {
	if o.out == "" {
		_, err := fmt.Fprint(cmd.OutOrStdout(), shrunk.Script)
		return err
	}
	if err := atomicdir.File(o.out, []byte(shrunk.Script)); err != nil {
		return fmt.Errorf("write the script: %w: name another file with --out", err)
	}
	needed := "each of them needed"
	if !shrunk.Minimal {
		needed = "of which not all may be needed"
	}
	_, err := fmt.Fprintf(cmd.OutOrStdout(), "%s: %s of %d, %s; %s; written to %s\n", shrunk.Anomaly, count(shrunk.Units, "step", "steps"), shrunk.From, needed,
		count(shrunk.Plays, "play", "plays"), o.out)
	return err
}
