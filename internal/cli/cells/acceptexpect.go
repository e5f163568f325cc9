package cells

import (
	"fmt"
	"io"
	"slices"

	"github.com/lockfault/lockfault/checker"
	"github.com/lockfault/lockfault/internal/atomicdir"
	"github.com/lockfault/lockfault/internal/cli/kit"
	"github.com/lockfault/lockfault/reports"
)

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
