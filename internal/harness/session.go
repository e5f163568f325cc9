package harness

import (
	"errors"
	"testing"

	"github.com/lockfault/lockfault/internal/vtime"
	"github.com/lockfault/lockfault/scenarios"
)

// Run is a cell of virtual time that runs in parts: between two parts the caller inspects the
// outcome and decides on further script lines. The world and its clients stand still between two
// parts, so the history of a script that ran in parts is byte-identical to the history of the same
// script in one run. Only one goroutine at a time may use a Run.
type Run struct {
	cell    Cell
	stage   *runner
	failure error     // of the stage
	steps   int       // number of steps that have run
	parts   chan part // made outside of the bubble: a goroutine that waits on it stops virtual time
	played  chan struct{}
	bubble  *vtime.Bubble
	over    bool // the bubble has ended, with err and leak
	err     error
	leak    string // as in Outcome
}

// part is the unit of a run.
type part struct {
	steps []scenarios.Step
	watch *watch
}

// Begin returns a run before its first part. The cell must apply in virtual time, and its script is
// the script of the first part; the cell's Limit has no effect. The caller must call [Run.End].
func Begin(t *testing.T, cell Cell) *Run {
	r := &Run{cell: cell, parts: make(chan part, 1), played: make(chan struct{})}
	r.bubble = vtime.Start(t, func() {
		if r.stage, r.failure = newSimStage(cell); r.failure != nil {
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
		r.failure = r.stage.part()
	})
	return r
}

// wait blocks until a part has run or the bubble has ended.
func (r *Run) wait(played <-chan struct{}) {
	over, err := r.bubble.Wait(played)
	switch {
	case !over:
		return
	case errors.Is(err, vtime.ErrLimit): // goroutines of the run may still run
		r.err = stalled{err}
	default:
		if r.leak = leakOf(r.failure, err); r.leak != "" {
			err = nil
		}
		if r.failure != nil || err != nil {
			r.err = ended{explain(r.failure, err)}
		}
	}
	r.over = true
}

// ended is the error of a run that failed.
type ended struct{ why string }

func (e ended) Error() string { return e.why }

// stalled is the error of a run whose bubble was abandoned.
type stalled struct{ error }

// Continue runs the rest of a script that begins with all steps that have run. Continue returns the
// outcome and the snapshots that [PlaySnapshots] would return for the whole script, except that the
// clients have not ended. The history is valid until the next Continue. If the status is Error, the
// run has ended.
func (r *Run) Continue(script *scenarios.Script, lines ...int) (Outcome, []Snapshot) {
	outcome := Outcome{Expected: script.Expected(r.cell.Strategy.Name, r.cell.Strategy.Tags)}
	w := watch{lines: lines}
	if r.over {
		outcome.Status, outcome.Reason = Error, "harness: this run has ended"
		return outcome, nil
	}
	r.parts <- part{script.Steps[r.steps:], &w} // does not block: a bubble that has ended leaves it there
	r.steps = len(script.Steps)
	r.wait(r.played)
	if errors.As(r.err, &stalled{}) {
		outcome.Status, outcome.Reason = Error, r.err.Error()
		return outcome, nil
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
	s.history.Events = s.history.Events[:len(s.history.Events)-1] // removes the End event, because the run continues
	outcome.judge(r.cell)
	return outcome, w.views
}

// End ends the run as [PlaySnapshots] does, and returns an error if a client does not end. leak is
// that of the [Outcome]. Further calls return the same.
func (r *Run) End() (leak string, err error) {
	if !r.over {
		close(r.parts)
		r.wait(nil)
	}
	return r.leak, r.err
}

// part ends all clients and the world, and returns all errors.
func (s *runner) part() error { return errors.Join(s.failure, s.close()) }
