package linear

import (
	"math"
	"slices"
	"sort"
)

// reach appends the first state in which the goal is reached from st by effects that are possible
// now, and leaves the other states, those with the fewest effects first, to a walk. op is the
// operation of the goal.
func (s *searcher) reach(to []state, st state, op int32) []state {
	next, ok := s.goal(st, op)
	needy := s.needsMore(st, op, ok)
	filling := s.unit && s.ops[op].op == Release && len(s.watch) > 0 && s.mayFill(st)
	if ok && !needy && !filling {
		return append(to, next)
	}
	w := s.walk(st, op)
	w.needsMore = needy || filling
	if filling && ok && !needy {
		// The only useful state before is one in which all permits are held, for the tries that
		// must return busy.
		to = append(to, next)
		w.filling, w.unseen = true, len(st.seen)
	}
	if len(to) == 0 {
		next, ok := s.found(w)
		if ok {
			to = append(to, next)
		}
		if !ok || w.over() {
			s.end(w)
			return to
		}
	}
	s.more = w
	return to
}

// fill calls add with each state to which an acquire leads: first the acquires that must take
// effect before their clients' next release returns, then those with a known outcome.
func (s *searcher) fill(st state, add func(state)) {
	for i := range s.representatives(st) {
		if s.mustRelease(st, s.ops[s.reserves[i].like].actor) {
			s.reserve1(st, i, add)
		}
	}
	for _, u := range s.open {
		if a := &s.ops[u]; a.outcome == certain && (a.op == Acquire || a.op == TryAcquire) && !has(st.done, u) && s.first(st, u) {
			s.early(st, u, add)
		}
	}
	for i := range s.representatives(st) {
		s.reserve1(st, i, add)
	}
}

// mustRelease reports whether the actor's next operation with a known outcome is a release of more
// than it holds.
func (s *searcher) mustRelease(st state, actor int32) bool {
	sure := s.sure[actor]
	i := sort.Search(len(sure), func(i int) bool { return s.ops[sure[i]].ret >= s.pos && !has(st.done, sure[i]) })
	return i < len(sure) && s.ops[sure[i]].op == Release && st.count(actor, false) < s.ops[sure[i]].permits
}

// repeat visits st and all states that visit adds, each once, those with the fewest effects first.
func (s *searcher) repeat(st state, visit func(st state, add func(state))) {
	w := s.walk(st, -1)
	for w.at < len(w.queue) && s.budget >= 0 {
		st := w.queue[w.at]
		w.at++
		visit(st, w.add)
	}
	s.end(w)
}

// needsMore reports whether another operation should take effect before op, because it may not be
// able to later. ok reports that op can take effect at once. There are several cases: a release
// under way that only an acquire of unknown outcome explains; for tokens, an acquire with a smaller
// known token; an acquire of several permits or keys, of which only some are left when a try
// returns busy; a write lock whose client also reads; and a release of several permits, of which
// only some are left after other releases of its client.
func (s *searcher) needsMore(st state, op int32, ok bool) bool {
	for _, other := range s.open {
		if other != op && s.unexplained(st, other) {
			return true
		}
	}
	o := &s.ops[op]
	acquire := o.op == Acquire || o.op == TryAcquire
	if s.rewrites(st, o) {
		return true
	}
	if acquire && o.outcome == certain && (s.strict && s.several || s.counted || s.shares) &&
		slices.ContainsFunc(s.bulk, func(sp int32) bool {
			return s.reserves[sp].open(s.pos) > st.uses(sp) && s.matters(st, sp, o)
		}) {
		return true
	}
	if s.splits(st, o) {
		return true
	}
	if s.rough && len(s.watch) > 0 && o.op != Extend && s.mayFill(st) {
		return true
	}
	if !s.tokens || ok && !acquire && o.op != Extend {
		return false
	}
	before := int64(math.MaxInt64) // tokens below it may have to be given first
	if acquire && o.token != 0 {
		before = o.token
	} else if slices.ContainsFunc(s.open, func(other int32) bool { return other != op && s.sooner(st, other, before) }) {
		return true
	}
	return s.due(st, before)
}

// matters reports whether an acquire of unknown outcome may have to take effect before o acquires,
// if no try must return busy. A reader can come later, and so can a client that already writes, but
// not a writer that reads by then. Permits can also be taken later, unless some of them may be
// released before: then there may be less room for all than for the rest.
func (s *searcher) matters(st state, reserve int32, o *operation) bool {
	like := &s.ops[s.reserves[reserve].like]
	switch {
	case len(s.watch) > 0:
	case s.shares:
		return o.reading && !like.reading && like.actor == o.actor && st.count(o.actor, false) == 0
	case s.counted:
		if len(s.actors[like.actor].crashes) > 0 {
			return true // nobody may give them back one by one
		}
		if u := s.under[like.actor]; u >= 0 && s.ops[u].op == Release && !has(st.done, u) {
			return true
		}
		return slices.ContainsFunc(s.gives(like.actor), func(r int32) bool { return s.reserves[r].open(s.pos) > st.uses(r) })
	}
	return true
}

// rewrites reports whether o releases the last write hold of its client while the client may have
// acquired it once more. Later it cannot, because it also reads.
func (s *searcher) rewrites(st state, o *operation) bool {
	return s.shares && o.op == Release && !o.reading && st.count(o.actor, false) == 1 && st.count(o.actor, true) > 0 &&
		slices.ContainsFunc(s.actors[o.actor].acquires, func(sp int32) bool {
			return !s.ops[s.reserves[sp].like].reading && s.reserves[sp].open(s.pos) > st.uses(sp)
		})
}

// splits reports whether o releases a part of its client's permits while the client may have
// released several at once. Later it cannot if too few are left.
func (s *searcher) splits(st state, o *operation) bool {
	return s.rough && o.op == Release && slices.ContainsFunc(s.gives(o.actor), func(sp int32) bool {
		return s.ops[s.reserves[sp].like].permits > 1 && s.reserves[sp].open(s.pos) > st.uses(sp)
	})
}

// gives returns an actor's reserve releases that are still possible.
func (s *searcher) gives(actor int32) []int32 {
	all := s.actors[actor].releases
	from := sort.Search(len(all), func(i int) bool { return s.reserves[all[i]].end > s.pos }) // ordered by end
	to := from
	for to < len(all) && s.reserves[all[to]].calls[0] < s.pos {
		to++
	}
	return all[from:to]
}

// due reports whether an acquire of unknown outcome may have to issue a token below before.
func (s *searcher) due(st state, before int64) bool {
	before = min(before, s.least[s.pos])
	return slices.ContainsFunc(s.takes, func(i int32) bool {
		sp := &s.reserves[i]
		if sp.open(s.pos) == 0 {
			return false
		}
		actor := s.ops[sp.like].actor
		used := s.actors[actor].used
		if next, _ := slices.BinarySearch(used, st.last+1); next < len(used) && used[next] < before {
			return true
		}
		// An acquire that may still return also makes smaller tokens valid.
		return sp.yet && st.last+1 < before && slices.ContainsFunc(used, func(t int64) bool { return !st.got(actor, t) })
	})
}

// mayFill reports whether a try under way that must find no permit left, and has not yet, might do
// so if all possible acquires took effect.
func (s *searcher) mayFill(st state) bool {
	sum := out(st.holds)
	for _, u := range s.open {
		if a := &s.ops[u]; a.outcome == certain && (a.op == Acquire || a.op == TryAcquire) && !has(st.done, u) {
			sum += int64(a.permits)
		}
	}
	for _, i := range s.takes {
		sum += int64(s.ops[s.reserves[i].like].permits) * int64(max(0, s.reserves[i].open(s.pos)-st.uses(i)))
	}
	return slices.ContainsFunc(s.watch, func(t int32) bool {
		return !has(st.seen, t) && sum+int64(s.ops[t].permits) > s.model.(permitted).n
	})
}

// unexplained reports whether op is a release under way whose client holds too little for it.
func (s *searcher) unexplained(st state, op int32) bool {
	o := &s.ops[op]
	if o.op != Release || o.outcome != certain || has(st.done, op) || len(s.actors[o.actor].acquires) == 0 || s.lax {
		return false
	}
	return st.count(o.actor, o.reading) < o.permits
}

// moves calls add with each state to which one move leads that may help to reach a goal about op.
func (s *searcher) moves(st state, op int32, needy bool, add func(state)) {
	o := &s.ops[op]
	all := needy
	switch {
	case o.op == Use:
		if u := s.under[o.actor]; u >= 0 && s.ops[u].outcome == certain && !has(st.done, u) && s.ops[u].token >= o.token {
			s.early(st, u, add)
		}
		s.reserve(st, o.actor, add)
		all = true
	case s.fails(op) && s.unit:
		s.fill(st, add) // a release makes no lock busy
	case s.fails(op):
		short := false
		for _, u := range s.open {
			if a := &s.ops[u]; a.outcome == certain && (a.op == Acquire || a.op == TryAcquire) && !has(st.done, u) && s.first(st, u) {
				if s.model.room(st.holds, a) {
					s.early(st, u, add)
				} else {
					short = true
				}
			}
		}
		for i := range s.representatives(st) {
			if a := &s.ops[s.reserves[i].like]; s.reserves[i].open(s.pos) > st.uses(i) {
				s.reserve1(st, i, add)
				short = short || !s.model.room(st.holds, a) || len(s.actors[a.actor].crashes) > 0
			}
		}
		all = all || short || s.shares // a writer that becomes a reader cannot write again
	case o.op == Release || o.op == Extend:
		s.reserve(st, o.actor, add)
		for i := range st.holds {
			h := &st.holds[i]
			if slices.ContainsFunc(s.actors[o.actor].acquires, func(sp int32) bool { return s.model.stands(h, &s.ops[s.reserves[sp].like]) }) {
				s.frees(st, h, add)
			}
		}
	default:
		if o.reserve >= 0 {
			s.reserve1(st, o.reserve, add)
		}
		for i := range st.holds {
			if s.model.stands(&st.holds[i], o) {
				s.frees(st, &st.holds[i], add)
			}
		}
	}
	if s.tokens {
		before := int64(math.MaxInt64)
		if o.op == Acquire || o.op == TryAcquire {
			before = o.token
		}
		for _, u := range s.open {
			if u != op && s.sooner(st, u, before) {
				s.early(st, u, add)
			}
		}
	}
	if all {
		for i := range st.holds {
			s.frees(st, &st.holds[i], add)
		}
	}
	if needy {
		for _, u := range s.open {
			if u != op && s.unexplained(st, u) {
				s.reserve(st, s.ops[u].actor, add)
			} else if v := &s.ops[u]; u != op && v.op == Release && v.outcome == certain && !has(st.done, u) && s.first(st, u) {
				s.early(st, u, add)
			}
		}
		if o.op == Release || o.op == Extend || !s.shares && !s.counted {
			s.reserve(st, o.actor, add)
		}
		for i := range s.representatives(st) {
			if has(s.bulk, i) && s.matters(st, i, o) {
				s.reserve1(st, i, add)
			}
		}
		if s.counted && len(s.watch) > 0 {
			for _, u := range s.open {
				if a := &s.ops[u]; u != op && a.outcome == certain && a.op != Release && !has(st.done, u) && s.first(st, u) {
					s.early(st, u, add)
				}
			}
			for i := range s.representatives(st) {
				s.reserve1(st, i, add)
			}
		}
		if s.tokens {
			for i := range s.representatives(st) {
				s.reserve1(st, i, add)
			}
		}
	}
}
