package linear

import (
	"iter"
	"slices"
	"strings"
)

// groupSymmetric groups interchangeable reserve acquires: single acquires of the same shape, of
// actors that have no other reserve and no accepted use.
func (s *searcher) groupSymmetric() {
	s.last = make([]int32, len(s.actors))
	for i, p := range s.points {
		actor := p.op
		switch p.kind {
		case crashPoint, expiredPoint:
		case closingPoint:
			actor = s.ops[s.reserves[p.op].like].actor
		default:
			actor = s.ops[p.op].actor
		}
		s.last[actor] = int32(i)
	}
	type shape struct {
		permits      int32
		reading, yet bool
		crashed      bool // its client crashed after the invocation
		keys         string
	}
	shapes := map[shape]int32{}
	s.symmetric = make([]int32, len(s.reserves))
	for i := range s.reserves {
		sp := &s.reserves[i]
		like := &s.ops[sp.like]
		pt := &s.actors[like.actor]
		s.symmetric[i] = -1
		if like.op == Release || sp.grant != atOnce || len(pt.acquires) > 1 || len(pt.releases) > 0 || len(sp.calls) > 1 || len(pt.used) > 0 {
			continue
		}
		of := shape{like.permits, like.reading, sp.yet, len(pt.crashes) > 0 && pt.crashes[len(pt.crashes)-1] > sp.calls[0], strings.Join(pt.keys, " ")}
		n, ok := shapes[of]
		if !ok {
			n = int32(len(shapes))
			shapes[of] = n
		}
		s.symmetric[i] = n
	}
	s.tried = make([]int32, len(shapes))
}

// representatives returns the reserve acquires, but only one of each group. Two actors that hold
// nothing and have no further points are interchangeable.
func (s *searcher) representatives(st state) iter.Seq[int32] {
	return func(yield func(int32) bool) {
		s.round++
		for _, i := range s.takes {
			if n, actor := s.symmetric[i], s.ops[s.reserves[i].like].actor; n >= 0 && s.last[actor] < s.pos &&
				st.uses(i) == 0 && st.count(actor, false) == 0 && st.count(actor, true) == 0 {
				if s.tried[n] == s.round {
					continue
				}
				s.tried[n] = s.round
			}
			if !yield(i) {
				return
			}
		}
	}
}

// first reports whether op, which is under way and certain, is the one of the operations like it
// that should take effect now. For a semaphore with operations of one permit each, acquires under
// way are alike, and so are releases by clients whose outcomes are all known. If one takes effect
// before another that returns earlier, they can be exchanged, because nothing else of their clients
// depends on their order.
func (s *searcher) first(st state, op int32) bool {
	o := &s.ops[op]
	if !s.unit || o.op == Release && !s.plain[o.actor] {
		return true
	}
	return !slices.ContainsFunc(s.open, func(u int32) bool {
		other := &s.ops[u]
		return other.outcome == certain && (other.op == Release) == (o.op == Release) && other.ret < o.ret && !has(st.done, u) &&
			(o.op != Release || s.plain[other.actor])
	})
}

// early adds the state in which an operation under way takes effect.
func (s *searcher) early(st state, op int32, add func(state)) {
	if next, ok := s.effect(st, op); ok {
		next.done = including(next.done, op)
		add(next)
	}
}

// reserve adds the states in which an acquire of unknown outcome of actor p takes effect.
func (s *searcher) reserve(st state, p int32, add func(state)) {
	for _, sp := range s.actors[p].acquires {
		s.reserve1(st, sp, add)
	}
}

// reserve1 adds the states in which an operation of a reserve of acquires takes effect.
func (s *searcher) reserve1(st state, reserve int32, add func(state)) {
	sp := &s.reserves[reserve]
	like := &s.ops[sp.like]
	if sp.open(s.pos) <= st.uses(reserve) || !s.model.room(st.holds, like) {
		return
	}
	next := st.using(reserve)
	u := s.under[like.actor]
	// A release that needs no hold, and ends none because it comes first.
	idle := s.lax && s.strict && u >= 0 && s.ops[u].op == Release && s.ops[u].outcome == certain && !has(st.done, u) && st.count(like.actor, like.reading) == 0
	with := func(next state) {
		if !s.hasEnough(st, like.actor, like.reading) {
			add(s.noteFailedTries(next.taking(like.actor, like.reading, like.permits, sp.grant)))
		}
		if idle {
			released := next
			released.done = including(released.done, u)
			add(s.noteFailedTries(released.taking(like.actor, like.reading, like.permits, sp.grant)))
		}
		pt := &s.actors[like.actor]
		if i, _ := slices.BinarySearch(pt.crashes, s.pos); i == 0 || pt.crashes[i-1] < sp.calls[0] {
			return
		}
		// The client had crashed by then.
		nobody := *like
		nobody.actor = pt.orphans[0]
		if !s.tied && !s.model.room(next.holds, &nobody) {
			return
		}
		if s.hasEnough(st, nobody.actor, like.reading) {
			return
		}
		for _, p := range pt.orphans {
			if s.strict {
				next = next.taking(p, like.reading, like.permits, sp.grant)
			}
		}
		add(s.noteFailedTries(next))
	}
	if !s.tokens {
		with(next)
		return
	}
	most := s.tokenBound(next)
	if next.last+1 >= most {
		return
	}
	with(s.giving(next, tokenGrant{like.actor, sp.yet, next.last + 1}))
	used := s.actors[like.actor].used
	first, _ := slices.BinarySearch(used, next.last+2)
	for _, t := range used[first:] {
		if t >= most {
			break
		}
		with(s.giving(next, tokenGrant{like.actor, sp.yet, t}))
	}
}

// hasEnough reports whether more of an actor's hold of a read-write lock would make no difference.
// A reader can acquire again later, after it has released: until then, only itself can write. A
// writer can do so, too, if it does not read, which would keep it from beginning to write. If it
// reads, it can do so until it is to release the write hold. (A release with an unknown outcome
// need not have taken effect.)
func (s *searcher) hasEnough(st state, actor int32, reading bool) bool {
	n := st.count(actor, reading)
	if !s.shares || n == 0 {
		return false
	}
	u := s.under[actor]
	return u < 0 || !s.rewrites(st, &s.ops[u]) || s.ops[u].outcome != certain || has(st.done, u) || reading
}

// frees adds the states in which h is smaller, by a release or by the end of a lease.
func (s *searcher) frees(st state, h *held, add func(state)) {
	pt := &s.actors[h.actor]
	if op := s.under[h.actor]; op >= 0 && s.ops[op].op == Release && s.ops[op].outcome == certain && s.ops[op].reading == h.reading && !has(st.done, op) && s.first(st, op) {
		if h.count >= s.ops[op].permits {
			s.early(st, op, add)
		} else {
			s.reserve(st, h.actor, add)
		}
	}
	switch {
	case pt.nobody && (s.counted || h.reading):
		add(st.taking(h.actor, h.reading, -1, h.grant))
		return
	case pt.nobody || s.leases && (h.grant == atOnce || s.ops[h.grant].ripe <= s.pos):
		add(st.taking(h.actor, h.reading, -h.count, h.grant))
		return
	}
	for _, r := range s.gives(h.actor) {
		sp := &s.reserves[r]
		like := &s.ops[sp.like]
		if like.reading != h.reading || sp.open(s.pos) <= st.uses(r) {
			continue
		}
		if h.count >= like.permits {
			add(s.less(st, h.actor, h.reading, -like.permits, h.grant).using(r))
		} else {
			s.reserve(st, h.actor, add)
		}
	}
}

// tokenBound returns the smallest returned token of an acquire that has yet to take effect: only
// smaller tokens may be issued now.
func (s *searcher) tokenBound(st state) int64 {
	most := s.least[s.pos]
	for _, op := range s.open {
		if s.sooner(st, op, most) {
			most = s.ops[op].token
		}
	}
	return most
}
