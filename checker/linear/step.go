package linear

import (
	"math"
	"slices"
)

// effect returns the state after a certain operation takes effect; false if it cannot.
func (s *searcher) effect(st state, op int32) (state, bool) {
	o := &s.ops[op]
	switch o.op {
	case Release:
		return s.release(st, o)
	case Extend:
		i, ok := st.held(o.actor, o.reading)
		if !ok {
			return st, false
		}
		if s.leases {
			st.holds = slices.Clone(st.holds)
			st.holds[i].grant = op
		}
		return st, true
	}
	return s.acquire(st, op)
}

func (s *searcher) acquire(st state, op int32) (state, bool) {
	o := &s.ops[op]
	if !s.model.room(st.holds, o) {
		return st, false
	}
	if s.tokens && o.token != 0 {
		if o.token <= st.last || slices.ContainsFunc(s.open, func(other int32) bool { return s.sooner(st, other, o.token) }) {
			return st, false
		}
		st = s.giving(st, tokenGrant{o.actor, true, o.token})
	}
	if s.tokens && o.token == 0 { // the token is unknown, so it may be any
		last := st.last
		st = s.giving(st, tokenGrant{o.actor, true, math.MaxInt64})
		st.last = last
	}
	grant := int32(atOnce)
	if s.leases {
		grant = op
	}
	return s.noteFailedTries(st.taking(o.actor, o.reading, o.permits, grant)), true
}

// sooner reports whether op is an acquire under way that must take effect before an acquire that
// gets the given token.
func (s *searcher) sooner(st state, op int32, token int64) bool {
	o := &s.ops[op]
	return o.outcome == certain && (o.op == Acquire || o.op == TryAcquire) && o.token != 0 && o.token < token && !has(st.done, op)
}

func (s *searcher) release(st state, o *operation) (state, bool) {
	i, ok := st.held(o.actor, o.reading)
	if !ok || st.holds[i].count < o.permits {
		return st, s.lax
	}
	return s.less(st, o.actor, o.reading, -o.permits, st.holds[i].grant), true
}

// less is taking with a negative n. For a read-write lock it also checks the failed tries, because
// a writer that now only reads can no longer write.
func (s *searcher) less(st state, actor int32, reading bool, n, grant int32) state {
	st = st.taking(actor, reading, n, grant)
	if s.shares {
		st = s.noteFailedTries(st)
	}
	return st
}

// closing lets reserve releases whose time is over take effect: none, or as many as a walk finds.
func (s *searcher) closing(to []state, st state, reserve int32) []state {
	to = append(to, st.forgetting(reserve))
	w := s.walk(st, s.reserves[reserve].like)
	w.closing = true
	next, ok := s.found(w)
	if ok {
		to = append(to, next)
		// A client that acquires again must have released a mutex, and usually a permit. Try that
		// first.
		if m, single := s.model.(single); single && m.limit == 1 && s.acquires() || s.unit {
			slices.Reverse(to[len(to)-2:])
		}
	}
	if !ok || w.over() {
		s.end(w)
	} else {
		s.more = w
	}
	return to
}

// closed returns the state in which one more release of the walk's reserve has taken effect, and
// whether that state is a goal.
func (s *searcher) closed(w *walk, st state) (state, bool) {
	next, ok := s.ends(st, w.op)
	if ok && s.unit { // exclude states with an acquire that made no further try find the lock taken
		reserve, before := s.ops[w.op].reserve, &w.queue[0]
		ok = len(st.seen) != len(before.seen) || out(st.holds)+int64(st.uses(reserve)) == out(before.holds)+int64(before.uses(reserve))
	}
	return next.forgetting(s.ops[w.op].reserve), ok
}

// ends returns the state in which a release like op, of unknown outcome, has taken effect; false if
// it cannot.
func (s *searcher) ends(st state, op int32) (state, bool) {
	like := &s.ops[op]
	i, ok := st.held(like.actor, like.reading)
	if !ok || st.holds[i].count < like.permits || s.reserves[like.reserve].open(s.pos) <= st.uses(like.reserve) {
		return st, false
	}
	return s.less(st, like.actor, like.reading, -like.permits, st.holds[i].grant).using(like.reserve), true
}

// closings calls add with each successor state that may matter to releases whose time is over.
// These releases may end a hold of an acquire of unknown outcome: several permits, or a lock whose
// token is used later or that explains a busy result.
func (s *searcher) closings(st state, op int32, add func(state)) {
	unseen := slices.ContainsFunc(s.watch, func(t int32) bool { return !has(st.seen, t) })
	switch {
	case s.unit && unseen:
		s.fill(st, add)
	case !s.unit && (s.rough || unseen || s.tokens && s.due(st, math.MaxInt64)):
		s.moves(st, op, true, add)
	}
	if next, ok := s.ends(st, op); ok {
		add(next)
	}
}

// acquires reports whether the next invocation is not an extend; after a closing point, it is then
// an acquire.
func (s *searcher) acquires() bool {
	for _, p := range s.points[s.pos:] {
		if p.kind == calledPoint {
			return s.ops[p.op].op != Extend
		}
	}
	return false
}

// ending ends a grant, unless its owner acts before.
func (s *searcher) ending(to []state, st state, grant int32) []state {
	i := slices.IndexFunc(st.holds, func(h held) bool { return h.grant == grant })
	if i < 0 {
		to = append(to, st)
		reserve := s.ops[grant].reserve
		if reserve < 0 || st.uses(reserve) > 0 || !slices.ContainsFunc(s.watch, func(t int32) bool { return !has(st.seen, t) }) {
			return to
		}
		// The hold may have lasted a while and explain a busy result.
		return s.reach(to, st, grant)
	}
	h := st.holds[i]
	if op := s.under[h.actor]; op >= 0 && s.ops[op].outcome == certain && !has(st.done, op) && (s.ops[op].op == Release || s.ops[op].op == Extend) {
		if next, ok := s.effect(st, op); ok {
			next.done = including(next.done, op)
			to = append(to, next)
		}
	}
	return append(to, st.taking(h.actor, h.reading, -h.count, h.grant))
}

// crash passes an actor's holds to its nobody actors.
func (s *searcher) crash(st state, p int32) state {
	for _, reading := range []bool{false, true} {
		i, ok := st.held(p, reading)
		if !ok {
			continue
		}
		h := st.holds[i]
		st = st.taking(p, reading, -h.count, h.grant)
		if !s.strict {
			continue // the holds may as well end
		}
		for _, nobody := range s.actors[p].orphans {
			st = st.taking(nobody, reading, h.count, h.grant)
		}
	}
	return st
}

func (s *searcher) use(to []state, st state, op int32) []state {
	o := &s.ops[op]
	if o.token < st.accepted {
		return to
	}
	return s.reach(to, st, op)
}
