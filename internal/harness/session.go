package harness

import (
	"errors"
	"testing"

	"github.com/lockfault/lockfault/internal/vtime"
	"github.com/lockfault/lockfault/scenarios"
)

// A Run is a cell of virtual time that is played a part at a time: what its script has come to is
// looked at, and then it goes on with more lines, if anybody wants it to. The world stands still between two
// parts, with everybody in it. So the history of a script that was played in parts is, byte for byte, that of
// one that was played at once. For one goroutine at a time.
type Run struct {
	cell   Cell
	stage  *runner
	steps  int       // that were played
	parts  chan part // made outside of the bubble: who waits for one there stops virtual time
	played chan struct{}
	ended  chan error // says once how the bubble ended
	err    error      // what it said
	over   bool
}

// A part is what is played at a time.
type part struct {
	steps []scenarios.Step
	watch *watch
}

// Begin returns a run of which nothing is played yet. The cell must apply, in virtual time, and its
// script is that of the first part; its Limit is of no effect. Whoever begins a run calls [Run.End].
func Begin(t *testing.T, cell Cell) *Run {
	r := &Run{cell: cell, parts: make(chan part), played: make(chan struct{}), ended: make(chan error, 1)}
	go func() {
		var failure error
		err := vtime.Run(t, func() {
			if r.stage, failure = newSimStage(cell); failure != nil {
				return
			}
			if r.stage.prepare() == nil {
				for part := range r.parts {
					r.stage.watch = part.watch
					r.stage.steps(part.steps)
					r.stage.conclude()
					r.played <- struct{}{}
					if r.stage.failure != nil {
						break
					}
				}
			}
			failure = r.stage.part()
		})
		if failure != nil || err != nil {
			err = ended{explain(failure, err)}
		}
		r.ended <- err
	}()
	return r
}

// ended is how a run ended badly.
type ended struct{ why string }

func (e ended) Error() string { return e.why }

// Continue plays on, to the end of a script that begins with all that was played, and returns what [PlaySnapshots] would for all
// of it, but that nobody has been told to end yet. Its history is valid until the next PlaySnapshots. If the outcome is an error, the
// run has ended.
func (r *Run) Continue(script *scenarios.Script, lines ...int) (Outcome, []Snapshot) {
	outcome := Outcome{Expected: script.Expected(r.cell.Strategy.Name, r.cell.Strategy.Tags)}
	w := watch{lines: lines}
	if r.over {
		outcome.Status, outcome.Reason = Error, "harness: this run has ended"
		return outcome, nil
	}
	select {
	case r.parts <- part{script.Steps[r.steps:], &w}:
		r.steps = len(script.Steps)
		select {
		case <-r.played:
		case r.err = <-r.ended: // somebody panicked
			r.over = true
		}
	case r.err = <-r.ended: // it could not begin
		r.over = true
	}
	s := r.stage
	if !r.over && s.failure != nil {
		r.End()
	}
	if s != nil {
		outcome.of(s)
	}
	if r.over {
		outcome.Status, outcome.Reason = Error, "harness: the run ended"
		if r.err != nil {
			outcome.Reason = r.err.Error()
		}
		return outcome, w.views
	}
	s.history.Events = s.history.Events[:len(s.history.Events)-1] // it goes on
	outcome.judge()
	return outcome, w.views
}

// End ends the run as [PlaySnapshots] does, and says what went wrong with that: somebody would not end, or left
// goroutines behind. Idempotent.
func (r *Run) End() error {
	if !r.over {
		r.over = true
		close(r.parts)
		r.err = <-r.ended
	}
	return r.err
}

// part ends everybody, and returns all that went wrong.
func (s *runner) part() error { return errors.Join(s.failure, s.close()) }
