package explore

import (
	"context"
	"fmt"
	"slices"
	"strings"
)

// A Method is a method of drawing schedules, named like the value of its flag.
type Method string

// The methods.
const (
	// Walk chooses among the possible transitions with equal probability.
	Walk Method = "walk"
	// PCT is probabilistic concurrency testing (Burckhardt and others, ASPLOS 2010). The client or
	// message with the highest priority moves, and at a few random points it receives the lowest
	// priority.
	PCT Method = "pct"
)

// Methods returns all methods.
func Methods() []Method { return []Method{Walk, PCT} }

// Random configures the drawing of schedules. A schedule is one path from the root to an end.
type Random struct {
	Method Method
	// Depth is 1 plus the number of points at which PCT changes priorities, from 1 to [MostDepth].
	// Other methods ignore Depth.
	Depth int
	// Schedules is the number of schedules to draw; 0 means until the context is done.
	Schedules int
	// Seed determines all random choices.
	Seed uint64
}

// pilots is the number of schedules drawn first, without faults, to measure the length of a
// schedule.
const pilots = 8

// batch is the number of schedules drawn at a time after the pilots.
const batch = 256

// MostDepth is the largest depth of PCT: priorities change before a transition, and a schedule has
// at most this number of them.
const MostDepth = longestSchedule

// longestSchedule is the largest number of transitions of a schedule, because a lock may wait
// forever.
const longestSchedule = 1000

// Draw draws random schedules within the bound, and keeps the first script that shows each anomaly.
// Draw advances some hundred schedules at a time by one transition each, plays the transitions that
// no schedule has played before, and looks up the others, as [Search] does.
//
// Draw blocks until all schedules are drawn or ctx is done. The result is never exhausted; its Cut
// is the reason why drawing ended. The error is the player's. If not nil, tell is called from time
// to time with the result so far.
func Draw(ctx context.Context, b Bound, r Random, player Player, tell func(Result)) (Result, error) {
	if r.Method == PCT && (r.Depth < 1 || r.Depth > MostDepth) {
		return Result{}, fmt.Errorf("depth %d: must be between 1 and %d", r.Depth, MostDepth)
	}
	b.plain = true // the probability of an order must not depend on which other orders are equivalent to it
	return conduct(ctx, b, player, tell, func(s *search, ctx context.Context) error {
		return (&sampler{search: s, random: r, known: map[step]*outcome{}}).run(ctx)
	})
}

// A sampler draws schedules.
type sampler struct {
	*search
	random Random
	drawn  uint64            // number of schedules begun
	length int               // most transitions of a schedule so far, faults excluded
	known  map[step]*outcome // results of steps already taken; empty without tables
}

// A step is a transition, given by its number in the tables, from a state.
type step struct {
	from identity
	move int32
}

// An outcome is the result of a step.
type outcome struct {
	parts  parts
	added  []*pathSegment
	failed bool
}

// run draws batches of schedules. Batch sizes are fixed, because the length of the schedules in one
// batch affects the schedules in later batches.
func (l *sampler) run(ctx context.Context) error {
	root := l.root()
	if err := l.reach(ctx, []*searchNode{root}); err != nil || l.result.Untabled != "" {
		return err
	}
	if !l.arrive(ctx, root) {
		l.result.Cut = "the lock could not even be made"
		return nil
	}
	for size := pilots; l.result.Cut == "" && l.result.Untabled == ""; size = batch {
		if n := l.random.Schedules; n > 0 {
			size = min(size, n-int(l.drawn))
		}
		if size == 0 {
			l.result.Cut = fmt.Sprintf("%d schedules were drawn", l.random.Schedules)
			break
		}
		if err := l.batch(ctx, root, size); err != nil {
			return err
		}
	}
	return nil
}

// batch draws size schedules to their ends, one transition of each at a time.
func (l *sampler) batch(ctx context.Context, root *searchNode, size int) error {
	list := make([]*schedule, size)
	length := l.length
	if l.drawn < pilots {
		length = -1
	}
	for i := range list {
		list[i] = newSchedule(l.bound, l.random, l.drawn, length)
		list[i].at = root
		l.drawn++
	}
	for len(list) > 0 && l.result.Cut == "" {
		if err := ctx.Err(); err != nil {
			return err // a long time may pass before something needs to be played
		}
		going := list[:0]
		var steps []step
		for _, s := range list {
			if next, ok := l.next(s); ok {
				going, steps = append(going, s), append(steps, next)
				continue
			}
			l.result.Schedules++
			l.length = max(l.length, s.made)
		}
		list = going
		if err := l.make(ctx, list, steps); err != nil || l.result.Untabled != "" {
			return err
		}
		if l.progress != nil {
			l.progress(l.result)
		}
	}
	return nil
}

// next moves a schedule to its next node, whose snapshot is not known yet; ok is false at the
// schedule's end.
func (l *sampler) next(s *schedule) (next step, ok bool) {
	p := s.at
	if p.closed || s.failed || p.moves >= longestSchedule || l.bound.Moves > 0 && p.moves >= l.bound.Moves {
		return step{}, false
	}
	p.view = l.tables.view(p.parts)
	if l.bound.Nodes > 1 {
		p.lines, _ = p.trail.script()
	}
	next.from = l.identify(p)
	moves, done := l.bound.moves(p)
	switch m := s.choose(moves, done); {
	case m != nil:
		s.at = l.after(p, *m)
	case done:
		l.result.Ends++
		s.at = l.close(p)
	default:
		return step{}, false
	}
	next.move = l.tables.index(strings.Join(s.at.trail.lines, "\n"))
	return next, true
}

// make finds the states to which the steps lead and records them. A step that was taken before, or
// that several schedules take at once, leads to the same state as before: states with the same
// identity are equal.
func (l *sampler) make(ctx context.Context, list []*schedule, steps []step) error {
	var ask, judge []*searchNode
	for i, s := range list {
		if _, ok := l.known[steps[i]]; ok {
			continue
		}
		ask = append(ask, s.at)
		if !l.bound.WithoutTables {
			l.known[steps[i]] = nil // until its result is known
		}
	}
	if err := l.reach(ctx, ask); err != nil || l.result.Untabled != "" {
		return err
	}
	for i, s := range list {
		q := s.at
		if q.outcome != nil { // the step was in ask
			s.failed = q.outcome.Err != ""
			if !l.bound.WithoutTables {
				l.known[steps[i]] = &outcome{q.parts, q.trail.parts, s.failed}
			}
			continue
		}
		o := l.known[steps[i]]
		if s.failed = o.failed; s.failed {
			continue
		}
		q.parts, q.trail.parts = o.parts, o.added
		judge = append(judge, q)
	}
	l.judge(judge)
	for _, s := range list {
		if s.at.outcome == nil {
			continue // the step failed before, and that failure is already recorded
		}
		l.arrive(ctx, s.at)
		if l.result.Cut != "" || l.result.Untabled != "" {
			break
		}
	}
	l.doubt()
	return l.check(ctx, slices.DeleteFunc(ask, func(q *searchNode) bool { return !l.samples(q) }))
}

// kindOf returns the kind of fault of a transition; empty for a transition that is no fault.
// Stopping replication counts as a kind, because it goes with failovers.
func kindOf(m move) BudgetKind {
	if m.cost == "" && len(m.lines) > 0 && isStop(m.lines[0]) {
		return stopping
	}
	return m.cost
}

// stopping is the kind of transitions that stop replication. They take from no budget.
const stopping BudgetKind = "replication-stop"

func isStop(line string) bool { return strings.HasSuffix(line, stopReplication) }
