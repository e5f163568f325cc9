package cells

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"strings"

	"github.com/lockfault/lockfault/checker"
	"github.com/lockfault/lockfault/internal/atomicdir"

	"github.com/spf13/cobra"

	"github.com/lockfault/lockfault/internal/cellresult"
	"github.com/lockfault/lockfault/internal/cli/kit"
	"github.com/lockfault/lockfault/internal/cli/selection"
	"github.com/lockfault/lockfault/internal/harness"
	"github.com/lockfault/lockfault/reports"
	"github.com/lockfault/lockfault/scenarios"
	"github.com/lockfault/lockfault/strategies"
)

// pair names a strategy and a scenario: a cell in any world.
type pair struct{ strategy, scenario string }

func pairOf(c reports.Cell) pair { return pair{c.Strategy, c.Scenario} }

// Expectations holds the expected anomalies of the cells of a run.
type Expectations struct {
	file  string                  // the path as the user gave it; empty if --expect is not set
	said  *scenarios.Expectations // the parsed file; nil if --expect is not set
	cells map[pair]harness.Cell
	read  func() (*scenarios.Expectations, []byte, error) // reads and parses the file again
	// references holds what the reference locks did under the scenarios of cells that show less than
	// they may.
	references map[pair]*reports.ReferenceLock
}

// Observed replaces the strategies by those of the list, which have the tags that [Settings.Observe] added.
func (e *Expectations) Observed(list []strategies.Strategy) {
	for of, cell := range e.cells {
		if i := slices.IndexFunc(list, func(s strategies.Strategy) bool { return s.Name == of.strategy }); i >= 0 {
			cell.Strategy = list[i]
			e.cells[of] = cell
		}
	}
}

// Expectations returns the expected anomalies of the strategies under the scripts. Expectations
// checks that every strategy and scenario that they name exists. With mayMiss, a missing --expect
// file counts as empty.
func (o *Settings) Expectations(cmd *cobra.Command, registry strategies.Registry, list []strategies.Strategy, scripts []selection.Chosen, mayMiss bool) (*Expectations, error) {
	e := &Expectations{file: o.Expect, cells: map[pair]harness.Cell{}}
	var own []string // keys of the user's scripts
	for _, script := range scripts {
		if script.File != "" {
			own = append(own, script.Key())
		}
		for _, strategy := range list {
			e.cells[pair{strategy.Name, script.Name}] = harness.Cell{Strategy: strategy, Script: script.Script}
		}
	}
	for _, strategy := range list {
		if err := scenarios.CheckMay(strategy.Expected, own); err != nil {
			return nil, kit.Usage("what %s may show: %w", strategy.Name, err)
		}
	}
	if o.Expect == "" {
		return e, nil
	}
	e.read = func() (*scenarios.Expectations, []byte, error) {
		source, err := kit.ReadText(cmd.Context(), cmd.InOrStdin(), "expectations", o.Expect)
		switch {
		case errors.Is(err, fs.ErrNotExist) && mayMiss:
			return &scenarios.Expectations{}, nil, nil
		case errors.Is(err, fs.ErrNotExist):
			return nil, nil, kit.Usage("%w: %s run --accept makes it", err, cmd.Root().Name())
		case err != nil:
			return nil, nil, err
		}
		said, err := scenarios.ParseExpectations(o.Expect, source)
		if err != nil {
			return nil, nil, err
		}
		return said, source, said.Check(registry.Names(), own)
	}
	var err error
	e.said, _, err = e.read()
	return e, err
}

// Of sets the expected anomalies of a cell, and the reason why another run with its seed may
// differ.
func (e *Expectations) Of(c *reports.Cell) {
	cellresult.Expect(c, e.cells[pairOf(*c)], e.said)
	c.Reference = e.references[pairOf(*c)]
}

// Absent returns the keys of user scripts that the file names for a played strategy, but that this
// run does not play. Whether these scripts exist is unknown.
func (e *Expectations) Absent() (keys []string) {
	if e.said == nil {
		return nil
	}
	for cell := range e.cells {
		for _, key := range e.said.Scenarios(cell.strategy) {
			name, own := strings.CutSuffix(key, ".txt")
			if played, ok := e.cells[pair{cell.strategy, name}]; own && (!ok || played.Script.Key() != key) {
				keys = append(keys, key)
			}
		}
	}
	slices.Sort(keys)
	return slices.Compact(keys)
}

// Acceptance holds the new contents of the --expect file and counts of its changes. The method
// write stores it.
type Acceptance struct {
	file                   string
	now                    []byte
	added, same, untouched int
	changed                int
	changes                kit.ShortList
}

// Accept returns the expectations file with the observed anomalies of each cell as its permitted
// ones, joined over all worlds. A strategy and scenario with an undecided cell in any world keeps
// its line; cells that are not applicable are skipped. Accept reads the file again, so concurrent
// edits of other lines are kept. Accept writes nothing.
func (e *Expectations) Accept(visit func(func(reports.Cell) error) error) (*Acceptance, error) {
	type shown struct {
		anomalies []checker.Anomaly
		undecided bool
	}
	all := map[pair]*shown{}
	var order []pair
	err := visit(func(c reports.Cell) error {
		if c.Verdict == reports.NotApplicable {
			return nil
		}
		s := all[pairOf(c)]
		if s == nil {
			s = &shown{}
			all[pairOf(c)] = s
			order = append(order, pairOf(c))
		}
		s.anomalies = append(s.anomalies, c.Anomalies...)
		s.undecided = s.undecided || !c.Decided()
		return nil
	})
	if err != nil {
		return nil, err
	}
	said, before, err := e.read()
	if err != nil {
		return nil, err
	}
	a := &Acceptance{file: e.file}
	for _, p := range order {
		s, key := all[p], e.cells[p].Script.Key()
		if s.undecided {
			a.untouched++
			continue
		}
		s.anomalies = append(s.anomalies, e.cells[p].Expectation(nil).Drawn...) // anomalies drawn at random in other runs stay permitted
		was, ok := said.Of(p.strategy, key)
		if err := said.Set(p.strategy, key, s.anomalies); err != nil {
			return nil, err
		}
		is, _ := said.Of(p.strategy, key)
		switch {
		case !ok:
			a.added++
		case slices.Equal(was, is):
			a.same++
		default:
			a.changed++
			a.changes.Add(fmt.Sprintf("%s under %s: accepted %s, in place of %s", p.strategy, p.scenario, kit.AnomalyText(is), kit.AnomalyText(was)))
		}
	}
	a.now = said.Format()
	if len(before) == 0 {
		a.now = append([]byte("# What these locks may show at most; lockfault run --accept writes it.\n\n"), a.now...)
	}
	e.said = said
	return a, nil
}

// Write replaces the --expect file, or does nothing if no line is new or changed.
func (a *Acceptance) Write() error {
	if a.added+a.changed == 0 {
		return nil
	}
	if err := atomicdir.File(a.file, a.now); err != nil {
		return fmt.Errorf("write what was accepted to %s: %w: the report says what it is", a.file, kit.PathErrorText(err))
	}
	return nil
}

// Print writes the changes and the counts to w.
func (a *Acceptance) Print(w io.Writer) {
	a.changes.Print(w)
	fmt.Fprintf(w, "%s: %d new, %d changed, %d as before", a.file, a.added, a.changed, a.same)
	if a.untouched > 0 {
		fmt.Fprintf(w, "; %d came to no verdict, and their lines are as they were", a.untouched)
	}
	fmt.Fprintln(w)
}
