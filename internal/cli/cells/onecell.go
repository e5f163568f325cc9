package cells

import (
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	"github.com/lockfault/lockfault/checker"
	"github.com/lockfault/lockfault/internal/cli/kit"
	"github.com/lockfault/lockfault/internal/cli/selection"
	"github.com/lockfault/lockfault/internal/tempdir"
	"github.com/lockfault/lockfault/reports"
	"github.com/lockfault/lockfault/scenarios"
	"github.com/lockfault/lockfault/strategies"
)

// tracePrefix begins the names of the temporary directories for histories of single cells.
const tracePrefix = "lockfault-trace-"

// MakeTraces creates a temporary directory for histories, named with tracePrefix. The caller
// removes it.
func MakeTraces() (*tempdir.Dir, error) {
	temp, err := tempdir.Make("", tracePrefix)
	if err != nil {
		err = fmt.Errorf("make a temporary directory: %w: name a directory that can be written to with TMPDIR", err)
	}
	return temp, err
}

// oneCell is the cell that is named by the arguments of a command, with its expectations.
type oneCell struct {
	Script   selection.Chosen
	Strategy strategies.Strategy
	expected *Expectations
	registry strategies.Registry
}

// CellArgs requires the names of a strategy and a scenario. The strategy may be omitted if
// --subject is set.
func CellArgs(cmd *cobra.Command, args []string) error {
	if cmd.Flags().Changed("subject") && len(args) == 1 {
		return nil
	}
	return kit.ExactArgs("the name of a strategy", "the name or file of a scenario")(cmd, args)
}

// ChooseCell returns the cell named by args, which CellArgs has checked. The error says why the
// cell cannot be played.
func (o *Settings) ChooseCell(cmd *cobra.Command, a *kit.App, args []string) (*oneCell, error) {
	if len(args) == 1 { // --subject names the strategy
		args = []string{"", args[0]}
	}
	strategyName, scenario := args[0], args[1]
	if err := o.Check(cmd, a); err != nil {
		return nil, err
	}
	if len(o.Worlds) > 1 {
		return nil, kit.Usage("--world names %d worlds: a story happens in one", len(o.Worlds))
	}
	if _, ok := a.Everything.Lookup(strategyName); !ok && (selection.IsFile(strategyName) || slices.Contains(scenarios.All(), strategyName)) {
		if _, ok := a.Everything.Lookup(scenario); ok {
			return nil, kit.Usage("the strategy comes first, did you mean \"%s %s %s\"?", cmd.CommandPath(), scenario, strategyName)
		}
	}
	var chosenNames []string
	if strategyName != "" {
		chosenNames = []string{strategyName}
	}
	registry, list, err := o.ChooseSubject(cmd, a, selection.RegistryFor(a, chosenNames), chosenNames)
	if err != nil {
		return nil, err
	}
	if o.Subject != nil && strategyName != "" && (len(list) > 1 || list[0].Name != o.Subject.Name) {
		return nil, kit.Usage("%q and --subject name two locks: leave one of them out", strategyName)
	}
	if len(list) > 1 {
		return nil, kit.Usage("%q names %d strategies: name one", strategyName, len(list))
	}
	if list, err = o.OnNodes(list); err != nil {
		return nil, err
	}
	script, err := selection.ChooseScenario(cmd.Context(), scenario)
	if err != nil {
		return nil, err
	}
	expected, err := o.Expectations(cmd, registry, list, []selection.Chosen{script}, false)
	if err != nil {
		return nil, err
	}
	if err := o.Prepare(cmd.Context(), registry, []selection.Chosen{script}, list); err != nil {
		return nil, err
	}
	if list, err = o.Observe(cmd.Context(), list); err != nil {
		return nil, err
	}
	if err := o.CheckObserved([]selection.Chosen{script}, list); err != nil {
		return nil, err
	}
	expected.Observed(list)
	return &oneCell{script, list[0], expected, registry}, nil
}

// PlayCell plays a cell and returns its result and history. The history is empty if the run
// recorded none.
func (o *Settings) PlayCell(cmd *cobra.Command, c *oneCell) (cell reports.Cell, history checker.History, err error) {
	o.Warn(cmd)
	temp, err := MakeTraces()
	if err != nil {
		return cell, history, err
	}
	defer temp.Remove() // a directory that cannot be removed now is removed by a later run
	dir := temp.Path()
	world := o.Worlds[0]
	err = o.Play(cmd.Context(), world, 1, o.Jobs(world, 0, []selection.Chosen{c.Script}, []strategies.Strategy{c.Strategy}, dir), func(_ Job, p Played) error {
		cell = p.Cell
		return nil
	})
	if err != nil {
		return cell, history, kit.Interrupted(err, "interrupted")
	}
	err = o.CompareWithReferences(cmd.Context(), c.expected, c.registry, []selection.Chosen{c.Script}, func(visit func(reports.Cell) error) error { return visit(cell) })
	if err != nil {
		return cell, history, err
	}
	c.expected.Of(&cell)
	cell.Settle()
	if cell.History != "" {
		history, err = reports.ReadHistory(dir, cell.History)
	}
	return cell, history, err
}

// CellStatus returns the exit status of a command that played only this cell, or nil for status 0.
func CellStatus(cell reports.Cell) error {
	var m reports.Matrix
	if err := m.Add(cell); err != nil {
		return err
	}
	if cell.Verdict == reports.NotApplicable { // found out only by playing the cell
		return kit.Exit(kit.ExitUndecided, nil)
	}
	return VerdictStatus(m.Tally())
}

// ChooseSubject reads the program of --subject and returns the strategies to play. These are the
// strategies that the words name plus the program, or only the program if words is empty. The
// returned registry contains all of them.
func (o *Settings) ChooseSubject(cmd *cobra.Command, a *kit.App, registry strategies.Registry, words []string) (strategies.Registry, []strategies.Strategy, error) {
	var err error
	if o.Subject, err = o.SubjectFlags.Read(cmd, registry, o.Worlds); err != nil {
		return registry, nil, err
	}
	all, err := o.Subject.With(registry)
	if err != nil {
		return registry, nil, err
	}
	switch {
	case o.Subject == nil:
	case len(words) == 0:
		words = []string{o.Subject.Name}
	case !slices.Contains(words, o.Subject.Name):
		words = append(slices.Clone(words), o.Subject.Name)
	}
	list, err := selection.ChooseStrategies(a, all, words)
	return all, list, err
}
