// Package harness plays one script with one strategy in one world: the stage
// on which everything else meets. A [Cell] comes in; an [Outcome] with the
// history and its verdict goes out. It knows nothing of commands, worker
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

// A Cell names one piece of work: the same cell always yields the same history.
type Cell struct {
	Strategy strategies.Strategy
	Script   *scenarios.Script
	// Place is where to play; nil is the world of virtual time.
	Place Place
	// Seed decides latencies, tie-breaks and the strategies' randomness.
	Seed uint64
	// TTL replaces the script's lease; 0 keeps it.
	TTL time.Duration
	// Limit is how much real time the cell may take in virtual time before it is an
	// error that says what virtual time waits for; what is left of it goes on. 0 is
	// any: somebody else must end the process then.
	Limit time.Duration
	// Spares are what cells of virtual time leave to one another that tells nothing of
	// them; nil for nothing.
	Spares *ServerPool
}

// ServerPool are servers in virtual time that nobody has any more, and that hold nothing.
type ServerPool = sim.Pool

// Applies reports whether the cell can be played, and why if not. It touches
// nothing; what the machine lacks shows when the cell is played.
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

// Lock returns the strategy's lock of that name, as worlds look at it.
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

// keys returns keys as strategies see them.
func keys(found []faults.Key) []strategies.Key {
	seen := make([]strategies.Key, len(found))
	for i, k := range found {
		seen[i] = strategies.Key{Type: k.Type, Words: k.Words}
	}
	return seen
}

// Status is the short answer of an [Outcome].
type Status string

// The statuses of an outcome, best first: a merged result is the worst of its
// parts, so that what failed or was not decided never passes as held.
const (
	NotApplicable Status = "not-applicable"
	Held          Status = "held"
	Unknown       Status = "unknown"
	Error         Status = "error"
	Violated      Status = "violated"
)

// An Outcome is what playing a cell yields.
type Outcome struct {
	Status Status
	// Reason says why, for NotApplicable, Unknown and Error; for Error it
	// may go on with a stack.
	Reason string
	// History and Verdict are empty for NotApplicable, and History is what
	// was recorded so far for Error and Unknown.
	History checker.History
	Verdict checker.Verdict
	// Expected is what the script expects of the strategy.
	Expected []checker.Anomaly
	// RoundTrips is, for each operation that succeeded at least once, the
	// smallest number of round trips that a success took.
	RoundTrips map[checker.Op]int
	// Measures are the readings of the script's stopwatches.
	Measures map[string]time.Duration
	// MetNothing are the orders to the gate that met no message, and the cancels
	// that met no operation, in the order in which they were given: what they were
	// to do was not done.
	MetNothing []UnmatchedStep
	// Late is how late the machine was, if that was too much for a verdict:
	// the cell may be played again. Only in worlds of real time.
	Late time.Duration
	// Strain is how late it was in parts of what would be too much, where that is known.
	Strain float64
	// Virtual is the time that passed in the world, Elapsed outside.
	Virtual, Elapsed time.Duration
}

// UnmatchedStep is an order to the gate that met no message, or a cancel that met no
// operation.
type UnmatchedStep struct {
	Line int    // of the script
	Text string // the line, as scripts write it
	// OrNone is whether the script says that there may be none.
	OrNone bool
}

// Play plays the cell in a bubble of virtual time. It blocks until the cell is
// done; t is only used to make the bubble, never to report, and a strategy that
// panics in one of its own goroutines ends the process. A strategy that blocks
// on a sync.Mutex for ever, or never stops computing, stops virtual time: unless the
// cell has a Limit, Play doesn't return then, and somebody with a real clock must end the process.
// Safe for concurrent use.
func Play(t *testing.T, cell Cell) Outcome { return play(t, cell, nil) }

// play plays the cell, and has it watched, if by anybody.
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

// playSim plays the cell in a bubble of virtual time.
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
	if errors.Is(err, vtime.ErrLimit) { // it may be playing still
		outcome.Status, outcome.Reason = Error, err.Error()
		return
	}
	if s != nil {
		outcome.of(s)
	}
	if failure != nil || err != nil {
		outcome.Status, outcome.Reason = Error, explain(failure, err)
		return
	}
	outcome.judge()
}

// playIn plays the cell in a world that its place makes.
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
		outcome.judge()
		return
	case errors.As(err, &none):
		outcome.Status, outcome.Late = none.Status, none.Late
	default:
		outcome.Status = Error
	}
	outcome.Reason = err.Error()
	if outcome.Status == NotApplicable {
		outcome.Expected = nil
	}
}

// of takes over what a stage has recorded.
func (o *Outcome) of(s *runner) {
	o.History, o.Virtual = s.history, s.virtual
	o.RoundTrips, o.Measures, o.MetNothing = s.roundTrips, s.measures, s.metNothing
}

// judge asks the checker.
func (o *Outcome) judge() {
	o.Verdict = checker.Check(o.History)
	o.Status = Held
	if len(o.Verdict.Witnesses) > 0 {
		o.Status = Violated
	}
}

// explain joins what the stage found and how the bubble ended: the first tells
// the reason, the second has the stacks.
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
