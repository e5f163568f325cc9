// Package harness runs one script with one strategy in one world. The input is a [Cell]; the output
// is an [Outcome] with the history and its verdict. The package does not depend on commands, worker
// processes or reports.
package harness

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/lockfault/lockfault/checker"
	"github.com/lockfault/lockfault/faults"
	"github.com/lockfault/lockfault/faults/sim"
	"github.com/lockfault/lockfault/internal/vtime"
	"github.com/lockfault/lockfault/scenarios"
	"github.com/lockfault/lockfault/strategies"
)

// Cell describes one unit of work. In virtual time, the same cell always gives the same history,
// except for strategies with HistoryVaries.
type Cell struct {
	Strategy strategies.Strategy
	Script   *scenarios.Script
	// Place makes the world of the cell; nil means the world of virtual time.
	Place Place
	// Seed determines latencies, the order of simultaneous events, and the strategies' randomness.
	Seed uint64
	// TTL replaces the script's lease; 0 keeps the script's lease.
	TTL time.Duration
	// Limit is the maximum real time of a cell in virtual time. When the limit has passed, the
	// cell's result is an error with the goroutines that virtual time waits for; goroutines that
	// still run continue. 0 means no limit: another process must then end a cell that does not
	// return.
	Limit time.Duration
	// Spares holds reusable servers that cells of virtual time share without an effect on each
	// other; nil means no sharing.
	Spares *ServerPool
}

// ServerPool holds unused, empty servers of virtual time.
type ServerPool = sim.Pool

// Applies reports whether the cell can run, and the reason if not. Applies has no side effects;
// missing resources of the machine show only when the cell runs.
func (c Cell) Applies() (ok bool, why string) {
	if ok, why = c.programApplies(); !ok {
		return ok, why
	}
	ok, why = c.Script.AppliesTo(c.Strategy.Name, c.Strategy.Tags, max(1, c.Strategy.Nodes))
	if ok && c.Strategy.RunsOn() == strategies.Redis {
		ok, why = c.Script.OnRedis()
	}
	if ok && c.Place != nil {
		return c.Place.Takes(c)
	}
	if on := c.Strategy.RunsOn(); ok && on != strategies.Redis {
		return false, fmt.Sprintf("%s runs on %s, which is played in real time: --world process", c.Strategy.Name, on)
	}
	return ok, why
}

// Lock returns the description of the strategy's lock with the given key, for worlds.
func (c Cell) Lock(key string) faults.Lock {
	lock := faults.SingleKeyLock(key)
	lock.Query = c.Strategy.Query
	if c.Strategy.Keys != nil {
		if keys := c.Strategy.Keys(key); len(keys) > 0 {
			lock.Keys = keys
		}
	}
	if read := c.Strategy.Owner; read != nil {
		lock.Owner = func(c faults.Change) (string, bool) {
			return read(strategies.Change{
				Before: keys(c.Before), After: keys(c.After), Client: c.Client, Owner: c.Owner, Wrote: c.Wrote,
			})
		}
	}
	return lock
}

// keys converts the worlds' keys to the strategies' type.
func keys(found []faults.Key) []strategies.Key {
	seen := make([]strategies.Key, len(found))
	for i, k := range found {
		seen[i] = strategies.Key{Type: k.Type, Words: k.Words}
	}
	return seen
}

// Status is the short result of an [Outcome].
type Status string

// Statuses of an outcome, best first. A merged result has the worst status of its parts, so a
// failed or undecided part never counts as held.
const (
	NotApplicable Status = "not-applicable"
	Held          Status = "held"
	Unknown       Status = "unknown"
	Error         Status = "error"
	Violated      Status = "violated"
)

// Outcome is the result of a cell.
type Outcome struct {
	Status Status
	// Reason explains the statuses NotApplicable, Unknown and Error. For Error, a stack may follow.
	Reason string
	// History and Verdict are empty for NotApplicable. For Error and Unknown, History has the
	// events recorded so far.
	History checker.History
	Verdict checker.Verdict
	// Expected lists the anomalies that the script expects of the strategy.
	Expected []checker.Anomaly
	// RoundTrips holds, for each operation that succeeded at least once, the smallest number of
	// round trips of a successful call.
	RoundTrips map[checker.Op]int
	// Measures holds the readings of the script's stopwatches.
	Measures map[string]time.Duration
	// MetNothing lists the gate commands that matched no message and the cancels without an
	// operation. The list has the order of the script; these steps had no effect.
	MetNothing []UnmatchedStep
	// Late is the delay of the machine, if the delay was too long for a verdict: the cell may run
	// again. Late is set only in worlds of real time.
	Late time.Duration
	// Strain is the delay of the machine as a fraction of the limit, if known.
	Strain float64
	// Virtual is the elapsed time in the world, Elapsed the elapsed real time.
	Virtual, Elapsed time.Duration
	// Leak describes in one line a goroutine of the lock that still ran after its client had ended:
	// where it waits, and which function started it. Leak is empty if there was none. Leaks are seen
	// in virtual time only; the cell is judged nevertheless.
	Leak string
}

// UnmatchedStep is a gate command that matched no message, or a cancel without an operation.
type UnmatchedStep struct {
	Line int    // of the script
	Text string // the line in the script's language
	// OrNone reports whether the script permits that no message matches.
	OrNone bool
}

// Play runs the cell in a bubble of virtual time, or in the world of its Place, and blocks until
// the cell is done. Play uses t only to make the bubble, never to report. A strategy that panics in
// one of its own goroutines ends the process. A strategy that blocks on a sync.Mutex forever, or
// computes forever, stops virtual time: without a Limit, Play then does not return, and another
// process must end this process. Play is safe for concurrent use.
func Play(t *testing.T, cell Cell) Outcome { return play(t, cell, nil) }

// play runs the cell and takes the snapshots of watch, which may be nil.
func play(t *testing.T, cell Cell, watch *watch) Outcome {
	if cell.Script == nil {
		return Outcome{Status: Error, Reason: "the cell has no script to play"}
	}
	started := time.Now()
	outcome := Outcome{Expected: cell.Script.Expected(cell.Strategy.Name, cell.Strategy.Tags)}
	if ok, why := cell.Applies(); !ok {
		outcome.Status, outcome.Reason, outcome.Expected = NotApplicable, why, nil
		return outcome
	}
	if cell.Place != nil {
		playIn(cell, &outcome)
	} else {
		playSim(t, cell, &outcome, watch)
	}
	outcome.Elapsed = time.Since(started)
	return outcome
}

// playSim runs the cell in a bubble of virtual time.
func playSim(t *testing.T, cell Cell, outcome *Outcome, watch *watch) {
	var s *runner
	var failure error
	err := vtime.RunWithin(t, cell.Limit, func() {
		s, failure = newSimStage(cell)
		if failure == nil {
			s.watch = watch
			failure = s.play()
		}
	})
	if errors.Is(err, vtime.ErrLimit) { // goroutines of the cell may still run
		outcome.Status, outcome.Reason = Error, err.Error()
		return
	}
	if s != nil {
		outcome.of(s)
	}
	outcome.Leak = leakOf(failure, err)
	if outcome.Leak == "" && (failure != nil || err != nil) {
		outcome.Status, outcome.Reason = Error, explain(failure, err)
		if gap := missing(outcome.Reason); gap != "" {
			outcome.Status, outcome.Reason = Unknown, unsupportedReason(gap, cell)
		}
		return
	}
	outcome.judge(cell)
}

// playIn runs the cell in a world that its Place makes.
func playIn(cell Cell, outcome *Outcome) {
	if cell.TTL == 0 {
		cell.TTL = cell.Place.Lease()
	}
	s := newStage(cell)
	world, err := cell.Place.Open(cell, s.record)
	if err == nil {
		s.world, s.key, s.broken, s.embody = world, world.Key(), world.Err, world.Embody
		err = world.Settle(s.perform())
		if w, ok := world.(LoadReporter); ok {
			outcome.Strain = w.Strain()
		}
		err = errors.Join(err, s.close())
		outcome.of(s)
	}
	var none *UndecidedError
	switch {
	case err == nil:
		outcome.judge(cell)
		return
	case errors.As(err, &none):
		outcome.Status, outcome.Late = none.Status, none.Late
	default:
		outcome.Status = Error
	}
	outcome.Reason = err.Error()
	if gap := missing(outcome.Reason); gap != "" && outcome.Status == Error {
		outcome.Status, outcome.Reason = Unknown, unsupportedReason(gap, cell)
	}
	if outcome.Status == NotApplicable {
		outcome.Expected = nil
	}
}

// of copies the records of a runner to the outcome.
func (o *Outcome) of(s *runner) {
	o.History, o.Virtual = s.history, s.virtual
	o.RoundTrips, o.Measures, o.MetNothing = s.roundTrips, s.measures, s.metNothing
}

// judge sets the verdict and the status from the history. A cell is undecided if its servers lack a
// command that the lock needs.
func (o *Outcome) judge(cell Cell) {
	if gap := unsupported(o.History); gap != "" {
		o.Status, o.Reason = Unknown, unsupportedReason(gap, cell)
		return
	}
	o.Verdict = checker.Check(o.History)
	o.Status = Held
	if len(o.Verdict.Witnesses) > 0 {
		o.Status = Violated
	}
}

// leakOf returns the leak if a goroutine that still ran after its client had ended is all that went
// wrong, and else an empty string.
func leakOf(failure, err error) string {
	var left *vtime.Error
	if failure == nil && errors.As(err, &left) {
		return left.Left
	}
	return ""
}

// explain returns the text of the runner's failure, followed by the stacks of the bubble's error if
// there are any. Without a failure, explain returns the text of err.
func explain(failure, err error) string {
	var burst *vtime.Error
	switch {
	case failure == nil:
		return err.Error()
	case errors.As(err, &burst) && burst.Stack != "":
		return failure.Error() + "\n\n" + burst.Stack
	}
	return failure.Error()
}
