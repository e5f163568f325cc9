package cli

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/lockfault/lockfault/checker"
	"github.com/lockfault/lockfault/internal/atomicdir"
	"github.com/lockfault/lockfault/reports"
	"github.com/lockfault/lockfault/scenarios"
)

// checkAccept reports, before any cell runs, why the results of the scripts could not be accepted.
// The error is a scenario key that the expectations format rejects, or an --expect file that cannot
// be written.
func (o *runOptions) checkAccept(scripts []chosen) error {
	for _, script := range scripts {
		if err := new(scenarios.Expectations).Set("x", script.Key(), nil); err != nil {
			return &statusError{ExitUsage, err}
		}
	}
	if err := atomicdir.CheckFile(o.expect); err != nil {
		return usage("can't write the expectations: %v", pathErrorText(err))
	}
	return nil
}

// acceptance holds the new contents of the --expect file and counts of its changes. The method
// write stores it.
type acceptance struct {
	file                   string
	now                    []byte
	added, same, untouched int
	changed                int
	changes                screen
}

// accept returns the expectations file with the observed anomalies of each cell as its permitted
// ones, joined over all worlds. A strategy and scenario with an undecided cell in any world keeps
// its line; cells that are not applicable are skipped. accept reads the file again, so concurrent
// edits of other lines are kept. accept writes nothing.
func (e *expectations) accept(visit func(func(reports.Cell) error) error) (*acceptance, error) {
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
	a := &acceptance{file: e.file}
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
			a.changes.add(fmt.Sprintf("%s under %s: accepted %s, in place of %s", p.strategy, p.scenario, words(is), words(was)))
		}
	}
	a.now = said.Format()
	if len(before) == 0 {
		a.now = append([]byte("# What these locks may show at most; lockfault run --accept writes it.\n\n"), a.now...)
	}
	e.said = said
	return a, nil
}

// write replaces the --expect file, or does nothing if no line is new or changed.
func (a *acceptance) write() error {
	if a.added+a.changed == 0 {
		return nil
	}
	if err := atomicdir.File(a.file, a.now); err != nil {
		return fmt.Errorf("write what was accepted to %s: %w: the report says what it is", a.file, pathErrorText(err))
	}
	return nil
}

// print writes the changes and the counts to w.
func (a *acceptance) print(w io.Writer) {
	a.changes.print(w)
	fmt.Fprintf(w, "%s: %d new, %d changed, %d as before", a.file, a.added, a.changed, a.same)
	if a.untouched > 0 {
		fmt.Fprintf(w, "; %d came to no verdict, and their lines are as they were", a.untouched)
	}
	fmt.Fprintln(w)
}

// words returns the anomalies separated by spaces, as in the file, or "none".
func words(list []checker.Anomaly) string {
	if len(list) == 0 {
		return "none"
	}
	text := make([]string, len(list))
	for i, a := range list {
		text[i] = string(a)
	}
	return strings.Join(text, " ")
}
