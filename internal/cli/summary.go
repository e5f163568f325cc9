package cli

import (
	"fmt"

	"github.com/lockfault/lockfault/reports"
)

// A summary is what a run's exit status says. The zero value is that of no cells.
type summary struct {
	all    reports.Comparison
	agree  reports.Agreement
	absent map[string]string // by world, why one of its cells was not played
}

func (s *summary) add(c reports.Cell) error {
	if c.Verdict == reports.NotApplicable {
		if s.absent == nil {
			s.absent = map[string]string{}
		}
		s.absent[c.World] = c.Strategy + " under " + c.Scenario + ": " + c.Reason
	}
	if err := s.agree.Add(c); err != nil {
		return err
	}
	return s.all.Add(c)
}

// status returns how the run ends. A world in which nothing was played is no
// success: the machine lacks something that was not known before.
func (s *summary) status() error {
	names, matrices := s.all.Worlds()
	for i, m := range matrices {
		if t := m.Tally(); t.Cells == t.NotApplicable {
			return &statusError{ExitUndecided, fmt.Errorf("nothing was played in the world %s, such as %s", names[i], s.absent[names[i]])}
		}
	}
	if status := verdictStatus(s.all.Tally()); status != nil {
		return status
	}
	if s.agree.Differing() > 0 {
		return &statusError{code: ExitDiffers}
	}
	return nil
}
