package cli

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"

	"github.com/spf13/cobra"

	"github.com/lockfault/lockfault/checker"
	"github.com/lockfault/lockfault/internal/tempdir"
	"github.com/lockfault/lockfault/reports"
	"github.com/lockfault/lockfault/scenarios"
	"github.com/lockfault/lockfault/strategies"
)

// tracePrefix is how the names of the directories begin in which a traced cell
// leaves its history.
const tracePrefix = "lockfault-trace-"

func newTraceCommand(a *app) *cobra.Command {
	var o playOptions
	cmd := &cobra.Command{
		Use:   "trace STRATEGY SCENARIO",
		Short: "Tell the story of one cell",
		Long: `Play one strategy under one scenario and tell what happened, in order of time:
on the wire and in the script, and beside it the four truths in columns of their
own. Belief is who thinks that it holds the lock, server is whose the key is,
result is what each operation returned, and damage is what the protected
resource accepted. Then comes the verdict, with the events that prove it.`,
		Example: "  lockfault trace getset-timestamp getset-race",
		Args:    exactArgs("the name of a strategy", "the name or file of a scenario"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return o.trace(cmd, a, args[0], args[1])
		},
	}
	o.addFlags(cmd)
	return cmd
}

func (o *playOptions) trace(cmd *cobra.Command, a *app, strategyName, scenario string) error {
	if err := o.check(cmd); err != nil {
		return err
	}
	if len(o.worlds) > 1 {
		return usage("--world names %d worlds: a story happens in one", len(o.worlds))
	}
	if _, ok := a.registry.Lookup(strategyName); !ok && (isFile(strategyName) || slices.Contains(scenarios.Names(), strategyName)) {
		if _, ok := a.registry.Lookup(scenario); ok {
			return usage("the strategy comes first, did you mean \"lockfault trace %s %s\"?", scenario, strategyName)
		}
	}
	list, err := chooseStrategies(a.registry, []string{strategyName})
	if err != nil {
		return err
	}
	if len(list) > 1 {
		return usage("%q names %d strategies: name one", strategyName, len(list))
	}
	script, err := chooseScenario(scenario)
	if err != nil {
		return err
	}
	if err := o.prepare(cmd.Context(), []chosen{script}, list); err != nil {
		return err
	}
	temp, err := tempdir.Make("", tracePrefix)
	if err != nil {
		return fmt.Errorf("make a temporary directory: %w: name a directory that can be written to with TMPDIR", err)
	}
	defer temp.Remove() // or the next one does
	dir := temp.Path()

	var cell reports.Cell
	world := o.worlds[0]
	err = o.play(cmd.Context(), world, 1, o.cells(world, 0, []chosen{script}, []strategies.Strategy{list[0]}, dir), func(_ job, c reports.Cell) error {
		cell = c
		return nil
	})
	if errors.Is(err, context.Canceled) {
		return &statusError{ExitInterrupted, errors.New("interrupted")}
	}
	if err != nil {
		return err
	}
	var history checker.History
	if cell.History != "" {
		if history, err = reports.ReadHistory(filepath.Join(dir, filepath.FromSlash(cell.History))); err != nil {
			return err
		}
	}
	if err := reports.Story(cmd.OutOrStdout(), cell, history); err != nil {
		return err
	}
	var m reports.Matrix
	if err := m.Add(cell); err != nil {
		return err
	}
	if cell.Verdict == reports.NotApplicable { // which nobody could know before
		return &statusError{code: ExitUndecided}
	}
	return verdictStatus(m.Tally())
}
