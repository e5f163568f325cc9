package explore

import (
	"context"
	"fmt"
	"slices"
	"strings"
)

// A Method is a way to draw schedules, by the word of its flag.
type Method string

// The methods.
const (
	// Walk takes each move with the same chance.
	Walk Method = "walk"
	// PCT is probabilistic concurrency testing (Burckhardt and others, ASPLOS 2010): who has
	// the highest priority moves, and at a few random places gets the lowest.
	PCT Method = "pct"
)

// Methods returns the methods.
func Methods() []Method { return []Method{Walk, PCT} }

// Random says how schedules are drawn. A schedule is one path from the beginning to an end.
type Random struct {
	Method Method
	// Depth is at how many places, and one, priorities of PCT change. From 1 to [MostDepth]; of no
	// use to other methods.
	Depth int
	// Schedules is how many are drawn; 0 means until the context is done.
	Schedules int
	// Seed decides all that is drawn.
	Seed uint64
}

// pilots is how many schedules are drawn without faults, before all others: they show how
// long a schedule is.
const pilots = 8

// batch is how many are drawn at a time after these.
const batch = 256

// MostDepth is the largest depth of PCT: priorities change before moves, of which a schedule has no more.
const MostDepth = longestSchedule

// longestSchedule is how many moves a schedule has at most: a lock may wait for ever.
const longestSchedule = 1000

// Draw draws schedules within the bound, and keeps for each anomaly the script of the first that
// shows it. It goes through some hundred of them at a time, a move of each after the other: so it plays
// what none of them has played, and looks up the rest, as [Search] does. It blocks until it has drawn as
// many as it shall, or ctx is done. What it returns is never exhausted, and says in Cut what ended it. The error
// is the player's. tell, which may be nil, is called now and then with what there is so far.
func Draw(ctx context.Context, b Bound, r Random, player Player, tell func(Result)) (Result, error) {
	if r.Method == PCT && (r.Depth < 1 || r.Depth > MostDepth) {
		return Result{}, fmt.Errorf("depth %d: must be between 1 and %d", r.Depth, MostDepth)
	}
	b.plain = true // how likely an order is must not depend on which others would show the same
	return conduct(ctx, b, player, tell, func(s *search, ctx context.Context) error {
		return (&sampler{search: s, random: r, known: map[step]*outcome{}}).run(ctx)
	})
}

// A sampler draws schedules.
type sampler struct {
	*search
	random Random
	drawn  uint64            // how many schedules were begun
	length int               // the most moves of a schedule so far, without faults
	known  map[step]*outcome // moves that were made; nothing is in there without tables
}

// A step is a move, by its number in the tables, in a state.
type step struct {
	from identity
	move int32
}

// An outcome is what became of a step.
type outcome struct {
	parts  parts
	added  []*pathSegment
	failed bool
}

// run draws batches of schedules. How large they are is the same each time, since what one
// schedule showed of its length goes for those of later batches.
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

// batch draws so many schedules to their ends, a move of each at a time.
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
			return err // it may be long before something needs to be played
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

// next takes a schedule to its next position, whose view is not known yet; ok is false at its end.
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
	next.move = l.tables.number(strings.Join(s.at.trail.lines, "\n"))
	return next, true
}

// make finds out where steps lead that schedules have taken, and takes note of it. One that was made
// before, or that several schedules take at once, leads where it led then: states with one
// identity are one.
func (l *sampler) make(ctx context.Context, list []*schedule, steps []step) error {
	var ask, judge []*searchNode
	for i, s := range list {
		if _, ok := l.known[steps[i]]; ok {
			continue
		}
		ask = append(ask, s.at)
		if !l.bound.WithoutTables {
			l.known[steps[i]] = nil // until it is known
		}
	}
	if err := l.reach(ctx, ask); err != nil || l.result.Untabled != "" {
		return err
	}
	for i, s := range list {
		q := s.at
		if q.outcome != nil { // it was asked for
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
			continue // it failed where another had failed, which was said
		}
		l.arrive(ctx, s.at)
		if l.result.Cut != "" || l.result.Untabled != "" {
			break
		}
	}
	l.doubt()
	return l.check(ctx, slices.DeleteFunc(ask, func(q *searchNode) bool { return !l.samples(q) }))
}

// kindOf returns the kind of a fault; empty for other moves. That a replica hears nothing any more
// goes with failovers.
func kindOf(m move) Fault {
	if m.cost == "" && len(m.lines) > 0 && isStop(m.lines[0]) {
		return stopping
	}
	return m.cost
}

// stopping is the kind of moves that stop a stream of replication. They take from no budget.
const stopping Fault = "replication-stop"

func isStop(line string) bool { return strings.HasSuffix(line, stopReplication) }
