package cli

import (
	"cmp"
	"errors"
	"fmt"
	"runtime"
	"slices"

	"github.com/spf13/cobra"

	"github.com/lockfault/lockfault/checker"
	"github.com/lockfault/lockfault/internal/atomicdir"
	"github.com/lockfault/lockfault/internal/cli/cells"
	"github.com/lockfault/lockfault/internal/cli/kit"
	"github.com/lockfault/lockfault/internal/cli/search"
	"github.com/lockfault/lockfault/internal/cli/selection"
	"github.com/lockfault/lockfault/internal/explore"
	"github.com/lockfault/lockfault/internal/workerpool"
	"github.com/lockfault/lockfault/internal/worlds"
	"github.com/lockfault/lockfault/strategies"
)

type shrinkOptions struct {
	cells.Settings
	strategy, scenario, anomaly, out string
	jobs                             int
}

func newShrinkCommand(a *kit.App) *cobra.Command {
	var o shrinkOptions
	o.PromoteBy, o.Worlds = cells.ByReplicaOf, []string{worlds.Sim}
	cmd := &cobra.Command{
		Use:   "shrink --strategy STRATEGY --scenario SCENARIO",
		Short: "Shrink a script that shows an anomaly",
		Long: `Remove the clients, rounds, faults and steps of a script that are not needed for an anomaly
which a strategy shows. Then make the remaining pauses and clock jumps as short as possible.
Each attempt is played in virtual time. No step of the result can be removed within the rules
of docs/explore.md.

Exit status:
  0    the script was shrunk, or cannot be smaller
  2    the script shows no such anomaly, or the command line is invalid
  3    the script ended in an error, or the lock behaved differently when it was played again
  130  interrupted; the smallest script so far is printed or written`,
		Example: `  lockfault shrink --strategy getset-timestamp --scenario getset-race
  lockfault shrink --strategy redlock --scenario ./mine.txt --anomaly overlap --out small.txt`,
		Args: kit.NoArgs,
		RunE: func(cmd *cobra.Command, args []string) error { return o.shrink(cmd, a) },
	}
	flags := cmd.Flags()
	flags.StringVar(&o.strategy, "strategy", "", "`name` of the strategy")
	flags.StringVar(&o.scenario, "scenario", "", "`name` or file of the scenario")
	flags.StringVar(&o.anomaly, "anomaly", "", "`anomaly` to keep (default: the first that the script shows)")
	flags.StringVar(&o.out, "out", "", "`file` for the script (default: standard output)")
	flags.IntVar(&o.jobs, "jobs", runtime.NumCPU(), "`number` of worker processes")
	flags.Uint64Var(&o.Seed, "seed", cells.DefaultSeed, "`number` that determines latencies, tie-breaks and the randomness of strategies")
	flags.IntVar(&o.Nodes, "nodes", 0, "`number` of Redis nodes for quorum locks (default: the strategy's own)")
	flags.DurationVar(&o.CellTimeout, "cell-timeout", 0, "maximum real time of one script (default 20s)")
	selection.AddNoSubjectFlag(cmd)
	return cmd
}

// subject validates the flags and returns the strategy and the script to shrink.
func (o *shrinkOptions) subject(cmd *cobra.Command, a *kit.App) (s strategies.Strategy, script selection.Chosen, err error) {
	if err := o.Check(cmd, a); err != nil {
		return s, script, err
	}
	if err := cmp.Or(
		kit.UsageIf(o.strategy == "", "\"shrink\" needs a strategy: give --strategy, \"%s --help\" explains it", cmd.CommandPath()),
		kit.UsageIf(o.scenario == "", "\"shrink\" needs a script: give --scenario, \"%s --help\" explains it", cmd.CommandPath()),
		kit.UsageIf(o.jobs < 1 || o.jobs > kit.MaxWorkers, "--jobs %d: give 1 to %d workers", o.jobs, kit.MaxWorkers),
	); err != nil {
		return s, script, err
	}
	if cmd.Flags().Changed("anomaly") && !slices.Contains(kit.AnomalyNames(), o.anomaly) {
		return s, script, kit.Unknown("anomaly", o.anomaly, kit.AnomalyNames(), "docs/anomalies.md lists them")
	}
	registry := a.Registry // shrinking plays in virtual time
	list, err := o.ChooseOne(cmd, a, registry, o.strategy, "name one")
	if err != nil {
		return s, script, err
	}
	if script, err = selection.ChooseScenario(cmd.Context(), o.scenario); err != nil {
		return s, script, err
	}
	if err := o.Prepare(cmd.Context(), registry, []selection.Chosen{script}, list); err != nil {
		return s, script, err
	}
	if o.out != "" {
		if err := atomicdir.CheckFile(o.out); err != nil {
			return s, script, kit.Usage("--out: %v", err)
		}
	}
	return list[0], script, nil
}

func (o *shrinkOptions) shrink(cmd *cobra.Command, a *kit.App) error {
	strategy, script, err := o.subject(cmd, a)
	if err != nil {
		return err
	}
	start, err := cells.StartWorker()
	if err != nil {
		return err
	}
	e := search.NewExplorer(&o.Settings, strategy, o.jobs, workerpool.Options{Start: start, Limit: cells.LimitOf})
	defer e.Close()
	name := script.File
	if name == "" {
		name = script.Name
	}
	shrunk, err := explore.Shrink(cmd.Context(), e, name, script.Format(), checker.Anomaly(o.anomaly))
	interrupted := cmd.Context().Err() != nil
	var absent *explore.NotShownError
	var unsound *explore.NotReproducibleError
	switch {
	case interrupted && shrunk.Script == "":
		return kit.Exit(kit.ExitInterrupted, errors.New("interrupted before it was seen what the script shows"))
	case interrupted:
	case errors.As(err, &absent):
		return kit.Usage("%s with %s: %v: \"%s trace %[2]s %[1]s\" tells what happens", name, strategy.Name, absent, a.Program)
	case errors.As(err, &unsound):
		return kit.Exit(kit.ExitUndecided, fmt.Errorf("%s with %s: %w\n\n%s", name, strategy.Name, unsound, kit.Indent(unsound.Script)))
	case err != nil:
		return err
	}
	if err := o.print(cmd, shrunk); err != nil {
		return err
	}
	if interrupted {
		return kit.Exit(kit.ExitInterrupted, errors.New("interrupted: the script may not be the smallest, and was not played again"))
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
	_, err := fmt.Fprintf(cmd.OutOrStdout(), "%s: %s of %d, %s; %s; written to %s\n", shrunk.Anomaly, kit.Count(shrunk.Units, "step", "steps"), shrunk.From, needed,
		kit.Count(shrunk.Plays, "play", "plays"), o.out)
	return err
}
