package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	"github.com/lockfault/lockfault/checker"
	"github.com/lockfault/lockfault/internal/tempdir"
	"github.com/lockfault/lockfault/reports"
	"github.com/lockfault/lockfault/scenarios"
	"github.com/lockfault/lockfault/strategies"
)

// tracePrefix begins the names of the temporary directories for histories of single cells.
const tracePrefix = "lockfault-trace-"

// makeTraces creates a temporary directory for histories, named with tracePrefix. The caller
// removes it.
func makeTraces() (*tempdir.Dir, error) {
	temp, err := tempdir.Make("", tracePrefix)
	if err != nil {
		err = fmt.Errorf("make a temporary directory: %w: name a directory that can be written to with TMPDIR", err)
	}
	return temp, err
}

// oneCell is the cell that is named by the arguments of a command, with its expectations.
type oneCell struct {
	script   chosen
	strategy strategies.Strategy
	expected *expectations
}

// cellArgs requires the names of a strategy and a scenario. The strategy may be omitted if
// --subject is set.
func cellArgs(cmd *cobra.Command, args []string) error {
	if cmd.Flags().Changed("subject") && len(args) == 1 {
		return nil
	}
	return exactArgs("the name of a strategy", "the name or file of a scenario")(cmd, args)
}

// chooseCell returns the cell named by args, which cellArgs has checked. The error says why the
// cell cannot be played.
func (o *playOptions) chooseCell(cmd *cobra.Command, a *app, args []string) (*oneCell, error) {
	if len(args) == 1 { // --subject names the strategy
		args = []string{"", args[0]}
	}
	strategyName, scenario := args[0], args[1]
	if err := o.check(cmd); err != nil {
		return nil, err
	}
	if len(o.worlds) > 1 {
		return nil, usage("--world names %d worlds: a story happens in one", len(o.worlds))
	}
	if _, ok := a.everything.Lookup(strategyName); !ok && (isFile(strategyName) || slices.Contains(scenarios.All(), strategyName)) {
		if _, ok := a.everything.Lookup(scenario); ok {
			return nil, usage("the strategy comes first, did you mean \"%s %s %s\"?", cmd.CommandPath(), scenario, strategyName)
		}
	}
	var chosenNames []string
	if strategyName != "" {
		chosenNames = []string{strategyName}
	}
	o.services = a.services
	registry, list, err := o.chooseSubject(cmd, a, a.naming(chosenNames), chosenNames)
	if err != nil {
		return nil, err
	}
	if o.subject != nil && strategyName != "" && (len(list) > 1 || list[0].Name != o.subject.Name) {
		return nil, usage("%q and --subject name two locks: leave one of them out", strategyName)
	}
	if len(list) > 1 {
		return nil, usage("%q names %d strategies: name one", strategyName, len(list))
	}
	if list, err = o.on(list); err != nil {
		return nil, err
	}
	script, err := chooseScenario(cmd.Context(), scenario)
	if err != nil {
		return nil, err
	}
	expected, err := o.expectations(cmd, registry, list, []chosen{script}, false)
	if err != nil {
		return nil, err
	}
	if err := o.prepare(cmd.Context(), registry, []chosen{script}, list); err != nil {
		return nil, err
	}
	return &oneCell{script, list[0], expected}, nil
}

// playCell plays a cell and returns its result and history. The history is empty if the run
// recorded none.
func (o *playOptions) playCell(cmd *cobra.Command, c *oneCell) (cell reports.Cell, history checker.History, err error) {
	o.warn(cmd)
	temp, err := makeTraces()
	if err != nil {
		return cell, history, err
	}
	defer temp.Remove() // a directory that cannot be removed now is removed by a later run
	dir := temp.Path()
	world := o.worlds[0]
	err = o.play(cmd.Context(), world, 1, o.cells(world, 0, []chosen{c.script}, []strategies.Strategy{c.strategy}, dir), func(_ job, p played) error {
		cell = p.Cell
		return nil
	})
	if errors.Is(err, context.Canceled) {
		return cell, history, &statusError{ExitInterrupted, errors.New("interrupted")}
	}
	if err != nil {
		return cell, history, err
	}
	c.expected.of(&cell)
	cell.Settle()
	if cell.History != "" {
		history, err = reports.ReadHistory(dir, cell.History)
	}
	return cell, history, err
}

// cellStatus returns the exit status of a command that played only this cell, or nil for status 0.
func cellStatus(cell reports.Cell) error {
	var m reports.Matrix
	if err := m.Add(cell); err != nil {
		return err
	}
	if cell.Verdict == reports.NotApplicable { // found out only by playing the cell
		return &statusError{code: ExitUndecided}
	}
	return verdictStatus(m.Tally())
}
