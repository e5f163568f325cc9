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

// checkAccept finds out, before anything is played, whether what is played can be
// accepted.
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

// An acceptance is what becomes of the file when what cells show is accepted.
type acceptance struct {
	file                   string
	now                    []byte
	added, same, untouched int
	changed                int
	changes                screen
}

// accept makes what the cells show the most that they may: what each shows in all its
// worlds together. Of one that came to no verdict in one of them nothing
// changes. The file is read again, so that what was written into it meanwhile stays.
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
		s.anomalies = append(s.anomalies, e.cells[p].Expectation(nil).Drawn...) // what it shows another time is as good
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

// write puts what was accepted into the file.
func (a *acceptance) write() error {
	if a.added+a.changed == 0 {
		return nil
	}
	if err := atomicdir.File(a.file, a.now); err != nil {
		return fmt.Errorf("write what was accepted to %s: %w: the report says what it is", a.file, pathErrorText(err))
	}
	return nil
}

// print says what changed.
func (a *acceptance) print(w io.Writer) {
	a.changes.print(w)
	fmt.Fprintf(w, "%s: %d new, %d changed, %d as before", a.file, a.added, a.changed, a.same)
	if a.untouched > 0 {
		fmt.Fprintf(w, "; %d came to no verdict, and their lines are as they were", a.untouched)
	}
	fmt.Fprintln(w)
}

// words lists anomalies as the file does.
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
