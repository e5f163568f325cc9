package runcmd

import (
	"fmt"
	"strings"

	"github.com/lockfault/lockfault/checker"
	"github.com/lockfault/lockfault/internal/cli/cells"
	"github.com/lockfault/lockfault/internal/cli/kit"
	"github.com/lockfault/lockfault/reports"
)

// summary computes the exit status of a run. The zero value has no cells and is ready for use.
type summary struct {
	all    reports.Comparison
	agree  reports.Agreement
	absent map[string]string // by world, the reason why a cell was not played
	// strict reports that a warning counts as unexpected; warned is the number of cells with one.
	strict bool
	warned kit.ShortList
}

func (s *summary) add(c reports.Cell) error {
	if c.Verdict == reports.NotApplicable {
		if s.absent == nil {
			s.absent = map[string]string{}
		}
		s.absent[c.World] = c.Strategy + " under " + c.Scenario + ": " + c.Reason
	}
	if what := hygieneOf(c); s.strict && what != "" {
		s.warned.Add(fmt.Sprintf("--fail-on hygiene: %s under %s: %s", c.Strategy, c.Scenario, what))
	}
	if err := s.agree.Add(c); err != nil {
		return err
	}
	return s.all.Add(c)
}

// hygieneOf returns what a lock of the user's shows of the class hygiene, a leak included; empty if that
// is nothing.
func hygieneOf(c reports.Cell) string {
	var list []string
	for _, a := range c.Anomalies {
		if d, _ := checker.Describe(a); c.ExpectedBy == reports.ByClass && d.Class == checker.Hygiene {
			list = append(list, string(a))
		}
	}
	if c.Leak != "" {
		list = append(list, "a goroutine outlives its client")
	}
	return strings.Join(list, ", ")
}

// status returns the exit status, or nil for status 0. A world in which no cell was played is
// [ExitUndecided]: the machine lacks something that was only found out while playing.
func (s *summary) status() error {
	names, matrices := s.all.Worlds()
	for i, m := range matrices {
		if t := m.Tally(); t.Cells == t.NotApplicable {
			return kit.Exit(kit.ExitUndecided, fmt.Errorf("nothing was played in the world %s, such as %s", names[i], s.absent[names[i]]))
		}
	}
	if status := cells.VerdictStatus(s.all.Tally()); status != nil {
		return status
	}
	if s.agree.Differing() > 0 || s.warned.Len() > 0 {
		return kit.Exit(kit.ExitDiffers, nil)
	}
	return nil
}
