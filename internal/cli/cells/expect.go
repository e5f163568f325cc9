package cells

import (
	"errors"
	"io/fs"
	"slices"
	"strings"

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
