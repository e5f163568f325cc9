package explore

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/lockfault/lockfault/checker"
	"github.com/lockfault/lockfault/internal/leases"
	"github.com/lockfault/lockfault/internal/racetest"
	"github.com/lockfault/lockfault/strategies"
)

// staged returns the stage of a built-in strategy, on the given number of nodes if that is not 0,
// and its bound.
func staged(t *testing.T, name string, nodes int, b Bound) (*stage, Bound) {
	t.Helper()
	strategy, ok := strategies.Builtin().Lookup(name)
	if !ok {
		t.Fatal(name)
	}
	if nodes > 0 {
		var err error
		if strategy, err = strategy.On(nodes); err != nil {
			t.Fatal(err)
		}
	}
	b.Nodes, b.TTL, b.Lock = max(1, strategy.Nodes), 30*time.Second, leases.LockOf(strategy)
	return &stage{t: t, strategy: strategy}, b
}

// drawn draws schedules of a strategy.
func drawn(t *testing.T, s *stage, b Bound, r Random) Result {
	t.Helper()
	result, err := Draw(t.Context(), b, r, s, nil)
	if err != nil || result.Exhausted || len(result.Failures) > 0 || result.Schedules != r.Schedules && !b.UntilFirst {
		t.Fatal(err, result.Exhausted, result.Failures, result.Schedules, result.Cut)
	}
	return result
}

// TestSlowDrawsWhatIsKnown checks that drawing finds the known failures of locks, too, and that they
// shrink to the shortest possible length.
func TestSlowDrawsWhatIsKnown(t *testing.T) {
	racetest.Skip(t)
	for _, c := range []struct {
		strategy string
		nodes    int
		budget   map[BudgetKind]int
		want     checker.Anomaly
		moves    int
		seeds    [2]uint64 // for walk and pct; not every seed finds it this soon
	}{
		{"getset-timestamp", 0, map[BudgetKind]int{Advance: 1}, checker.Overlap, 7, [2]uint64{7, 7}},
		{"set-nx-px-del", 0, map[BudgetKind]int{Advance: 1}, checker.ForeignRelease, 7, [2]uint64{7, 7}},
		{"setnx-expire", 0, map[BudgetKind]int{Crash: 1}, checker.StuckLock, 4, [2]uint64{7, 7}},
		{"redlock", 3, map[BudgetKind]int{RestartEmpty: 1}, checker.Overlap, 9, [2]uint64{5, 7}},
	} {
		player, b := staged(t, c.strategy, c.nodes, Bound{Clients: 2, Rounds: 1, Budget: c.budget})
		b.UntilFirst = c.nodes > 0 // an exhaustive run takes long
		for i, method := range Methods() {
			r := drawn(t, player, b, Random{Method: method, Depth: 3, Schedules: 300, Seed: c.seeds[i]})
			if _, ok := anomalies(r)[c.want]; !ok {
				t.Errorf("%s, %s: found %v, want %s", c.strategy, method, anomalies(r), c.want)
				continue
			}
			if err := ShrinkFindings(t.Context(), player, &r); err != nil || len(r.Failures) > 0 {
				t.Fatal(err, r.Failures)
			}
			if got := anomalies(r)[c.want]; got != c.moves {
				t.Errorf("%s, %s: shrunk to %d moves, want %d", c.strategy, method, got, c.moves)
			}
			for _, f := range r.Findings {
				minimal(t, player, f)
			}
		}
		if c.nodes > 0 {
			b.Moves = c.moves
		}
		whole, err := Search(t.Context(), b, player, nil)
		if got := anomalies(whole)[c.want]; err != nil || got != c.moves {
			t.Errorf("%s: %v; the shortest script for %s has %d moves, want %d", c.strategy, err, c.want, got, c.moves)
		}
	}
}

// minimal checks that each transition of a finding is needed.
func minimal(t *testing.T, player Player, f Finding) {
	t.Helper()
	d := draftOf(f)
	s := newShrinker(player, f.Anomaly, d)
	looks, err := player.Play(t.Context(), []Trial{{Script: f.Script}})
	if err != nil || len(d.units) != f.Moves || !slices.Equal(looks[0].Anomalies, f.Anomalies) {
		t.Fatalf("%v; %d units, %d moves; %v, want %v", err, len(d.units), f.Moves, looks[0].Anomalies, f.Anomalies)
	}
	s.limits(&looks[0])
	for out, unit := range d.units {
		d := d.without(func(i int) bool { return i == out }).recounted()
		text, err := d.text("", nil)
		if err != nil {
			continue
		}
		looks, err := player.Play(t.Context(), []Trial{{Script: text}})
		if err != nil || s.does(d, &looks[0]) {
			t.Errorf("%v; %s shows without %q:\n%s", err, f.Anomaly, unit, text)
		}
	}
}

// TestSlowDrawsNothingButWhatIsThere checks that drawing stays within the search: each anomaly drawn is
// found by the exhaustive search, too.
func TestSlowDrawsNothingButWhatIsThere(t *testing.T) {
	racetest.Skip(t)
	rng := rand.New(rand.NewPCG(5, 5))
	names := []string{"setnx-expire", "getset-timestamp", "set-nx-px-del", "set-nx-px-get-del", "set-nx-px-lua", "fenced"}
	kinds := []BudgetKind{Advance, Tick, Crash, ClientRestart, Pause, LoseReply, LoseRequest, Partition, Restart, RestartEmpty, Failover, Flush, ClientClock, NodeClock, NodeClockBack, Hang}
	for range 8 {
		name, kind := names[rng.IntN(len(names))], kinds[rng.IntN(len(kinds))]
		bound := Bound{Clients: 2, Rounds: 1, Budget: map[BudgetKind]int{kind: 1}, Reenter: rng.IntN(4) == 0}
		if kind == Failover {
			bound.Replicas = 1
		}
		player, b := staged(t, name, 0, bound)
		r := drawn(t, player, b, Random{Method: Methods()[rng.IntN(2)], Depth: 1 + rng.IntN(3), Schedules: 100, Seed: rng.Uint64()})
		whole, err := Search(t.Context(), b, player, nil)
		if err != nil || !whole.Exhausted {
			t.Fatal(name, bound.Budget, err, whole.Cut, whole.Failures)
		}
		for a, moves := range anomalies(r) {
			if least, ok := anomalies(whole)[a]; !ok || least > moves {
				t.Errorf("%s %v: %s was drawn after %d moves, and the search found %v", name, bound.Budget, a, moves, anomalies(whole))
			}
		}
	}
}

// TestSlowSeedDecides checks that the same seed draws the same schedules and another seed others, and
// that drawing more does not change the earlier schedules.
func TestSlowSeedDecides(t *testing.T) {
	racetest.Skip(t)
	player, b := staged(t, "getset-timestamp", 0, Bound{Clients: 2, Rounds: 1, Budget: map[BudgetKind]int{Advance: 1}})
	for _, method := range Methods() {
		draw := func(seed uint64, schedules int) Result {
			return drawn(t, player, b, Random{Method: method, Depth: 3, Schedules: schedules, Seed: seed})
		}
		first, second, other := draw(1, 40), draw(1, 40), draw(2, 40)
		if fmt.Sprint(first) != fmt.Sprint(second) {
			t.Errorf("%s: %v\nand\n%v", method, first, second)
		}
		if fmt.Sprint(first) == fmt.Sprint(other) {
			t.Errorf("%s: another seed draws the same", method)
		}
		for a := range anomalies(first) {
			if _, ok := anomalies(draw(1, 80))[a]; !ok {
				t.Errorf("%s: %s is not among what 80 schedules show", method, a)
			}
		}
		b.WithoutTables = true
		if plain := draw(1, 40); fmt.Sprint(plain.Findings) != fmt.Sprint(first.Findings) || plain.States != first.States || plain.Runs <= first.Runs {
			t.Errorf("%s: without tables %v\nand with them\n%v", method, plain, first)
		}
		b.WithoutTables = false
	}
}

// TestFaultsComeAnywhere checks that a fault happens before each transition with about the same
// probability, and with about the same probability not at all.
func TestFaultsComeAnywhere(t *testing.T) {
	racetest.Skip(t)
	const length, schedules = 9, 20000
	b := Bound{Clients: 1, Nodes: 1, Budget: map[BudgetKind]int{Flush: 1}}
	var came [length + 1]int
	for i := range schedules {
		s := newSchedule(b, Random{Method: Walk, Seed: 1}, uint64(i), length)
		for flushed := false; ; {
			moves := []move{{lines: []string{"begin A try"}, client: 1}}
			if s.made == length {
				moves = nil
			}
			if !flushed {
				moves = append(moves, move{lines: []string{"n1 flush"}, cost: Flush})
			}
			m := s.choose(moves, s.made == length)
			if m == nil {
				break
			}
			if flushed = flushed || m.cost == Flush; m.cost == Flush {
				came[s.made]++
			}
		}
	}
	for at, n := range came {
		if share := float64(n) / schedules * (length + 1); math.Abs(share-1) > 0.1 {
			t.Errorf("before move %d: %.2f of its share", at, share)
		}
	}
}

// TestSlowPrioritiesKeepTheirPromise checks that PCT finds a failure that needs d-1 ordering
// constraints with the guaranteed probability, where a random walk finds it once in thousands of
// schedules.
func TestSlowPrioritiesKeepTheirPromise(t *testing.T) {
	racetest.Skip(t)
	const clients, each, schedules = 3, 8, 20000
	// A makes all but its last transition before the others begin, and the others make all theirs
	// before that one.
	hit := func(method Method, depth int) float64 {
		hits := 0
		for i := range schedules {
			s := newSchedule(Bound{Clients: clients, Nodes: 1}, Random{Method: method, Depth: depth, Seed: 1}, uint64(i), clients*each)
			var made [clients]int
			good := true
			for {
				var moves []move
				for c, n := range made {
					if n < each {
						moves = append(moves, move{lines: []string{"pass"}, client: c + 1})
					}
				}
				m := s.choose(moves, len(moves) == 0)
				if m == nil {
					break
				}
				c := m.client - 1
				good = good && (c != 0 && made[0] == each-1 || c == 0 && (made[0] < each-1 || made[1]+made[2] == (clients-1)*each))
				made[c]++
			}
			if good {
				hits++
			}
		}
		return float64(hits) / schedules
	}
	if got, want := hit(PCT, 2), 1.0/(clients*clients*each); got < want {
		t.Errorf("found by %.4f of the schedules, %.4f are promised", got, want)
	}
	if got := hit(PCT, 1); got > 0 {
		t.Errorf("found by %.4f of the schedules of depth 1, want none", got)
	}
	if got := hit(Walk, 0); got > 0.001 {
		t.Errorf("a walk finds it, by %.4f of its schedules", got)
	}
}

// TestDrawingEnds checks that the result has the reason why drawing ended, and the findings until
// then.
func TestDrawingEnds(t *testing.T) {
	player, bound := staged(t, "set-nx-px-lua", 0, Bound{Clients: 2, Rounds: 1, Budget: map[BudgetKind]int{Flush: 1}})
	for want, change := range map[string]func(*Bound){
		"until lost-lock":         func(b *Bound) { b.UntilFirst, b.Until = true, []checker.Anomaly{checker.LostLock} }, // no bug
		"more than 5 states":      func(b *Bound) { b.States = 5 },
		"30 schedules were drawn": func(b *Bound) { b.Moves = 3 },
	} {
		b := bound
		change(&b)
		r, err := Draw(t.Context(), b, Random{Method: Walk, Schedules: 30, Seed: 1}, player, nil)
		if err != nil || r.Cut != want || r.Exhausted || b.Moves > 0 && r.Depth != b.Moves {
			t.Errorf("%v, %q, exhausted %t, depth %d, want %q", err, r.Cut, r.Exhausted, r.Depth, want)
		}
	}
	if r, err := Draw(t.Context(), bound, Random{Method: Walk, Schedules: 30}, &fickle{*player}, nil); err != nil || len(r.Findings) > 0 || len(r.Failures) == 0 {
		t.Errorf("%v, %d findings, %d failures of a lock that is another each time", err, len(r.Findings), len(r.Failures))
	}
}
