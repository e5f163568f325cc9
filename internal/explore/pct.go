package explore

import (
	"cmp"
	"math/rand/v2"
	"slices"
)

// A schedule is a schedule that is being drawn.
type schedule struct {
	random Random
	nodes  int
	rng    *rand.Rand
	at     *searchNode
	failed bool // the schedule's script failed
	made   int  // transitions so far, faults excluded
	// due holds the faults to come, in their order.
	due []due
	// ranks holds the priorities of the movers, and falls the numbers of transitions after which
	// the foremost mover gets a priority below all others. Only PCT uses them.
	ranks map[string]float64
	falls []int
}

// A due is a fault that happens before the transition with the given number, or as soon as a fault
// of its kind is possible after that.
type due struct {
	before int
	kind   BudgetKind
}

// newSchedule returns the schedule with the given number at its beginning. length is the expected
// number of transitions, faults excluded; if it is negative, there are no faults, and priorities do
// not change.
func newSchedule(b Bound, r Random, number uint64, length int) *schedule {
	s := &schedule{random: r, nodes: b.Nodes, rng: rand.New(rand.NewPCG(r.Seed, number)), ranks: map[string]float64{}}
	if length < 0 {
		return s
	}
	for _, kind := range BudgetKinds() {
		for range b.Budget[kind] {
			before := s.rng.IntN(length + 1)
			if kind == Failover && s.rng.IntN(2) == 0 {
				s.due = append(s.due, due{s.rng.IntN(before + 1), stopping})
			}
			s.due = append(s.due, due{before, kind})
		}
	}
	slices.SortStableFunc(s.due, func(a, b due) int { return cmp.Compare(a.before, b.before) })
	for range r.Depth - 1 {
		s.falls = append(s.falls, 1+s.rng.IntN(max(1, length)))
	}
	return s
}

// choose returns one of the possible transitions, or nil to end the schedule. A fault is chosen
// when it is due, or when no other transition is possible although not every client is done.
func (s *schedule) choose(moves []move, done bool) *move {
	var others []move
	kinds := map[BudgetKind][]move{}
	for _, m := range moves {
		if kind := kindOf(m); kind != "" {
			kinds[kind] = append(kinds[kind], m)
		} else {
			others = append(others, m)
		}
	}
	for i, d := range s.due {
		if d.before > s.made && (len(others) > 0 || done) {
			break
		}
		if list := kinds[d.kind]; len(list) > 0 {
			s.due = slices.Delete(s.due, i, i+1)
			return &list[s.rng.IntN(len(list))]
		}
	}
	if len(others) == 0 {
		return nil
	}
	s.made++
	if s.random.Method == PCT {
		others = s.foremost(others)
	}
	return &others[s.rng.IntN(len(others))]
}

// foremost returns the transitions of the mover with the highest priority.
func (s *schedule) foremost(moves []move) []move {
	for _, m := range moves {
		if who := s.mover(m); s.ranks[who] == 0 {
			s.ranks[who] = 1 + s.rng.Float64()
		}
	}
	compare := func(a, b move) int { return cmp.Compare(s.ranks[s.mover(a)], s.ranks[s.mover(b)]) }
	for i, at := range s.falls {
		if at == s.made {
			s.ranks[s.mover(slices.MaxFunc(moves, compare))] = float64(i - len(s.falls)) // below 0
		}
	}
	first := s.mover(slices.MaxFunc(moves, compare))
	return slices.DeleteFunc(moves, func(m move) bool { return s.mover(m) != first })
}

// mover returns the name of what a transition advances: a client, or a client's message to one of
// several nodes. For a transition without a client, mover returns the transition's first line.
func (s *schedule) mover(m move) string {
	switch {
	case m.client == 0:
		return m.lines[0]
	case m.sends && s.nodes > 1:
		return string(rune('A'+m.client-1)) + " " + m.to
	}
	return string(rune('A' + m.client - 1))
}
