package linear

import (
	"slices"
	"sort"
)

// memo holds the states that a search has visited, by the part that two comparable states must have
// in common.
type memo map[string][]resources

// resources is the part of a state in which it may be better or worse than another. A state that
// has seen as much and has used up no more one-time operations can do everything that the other
// can. early and extra are effects that could also happen now, so a state with less of them can get
// more; used holds the other one-time effects.
type resources struct {
	seen, early []int32
	extra, used []use
	// A summary for fast comparison: which is an approximate set of reserves, many the total number
	// of effects.
	which uint64
	many  int32
}

// glance computes the summary.
func (c *resources) glance() {
	for at, list := range [...][]use{c.used, c.extra} {
		for _, u := range list {
			c.which |= 1 << (uint(u.reserve)%32 + 32*uint(at))
			c.many += u.n
		}
	}
}

// atLeast reports whether a can do everything that b can.
func (a *resources) atLeast(b *resources) bool {
	return a.which&^b.which == 0 && a.many <= b.many && within(a.extra, b.extra) && within(a.used, b.used) && subset(a.early, b.early) && subset(b.seen, a.seen)
}

func subset(a, b []int32) bool {
	return !slices.ContainsFunc(a, func(x int32) bool { return !has(b, x) })
}

// within reports whether a has no more of anything than b.
func within(a, b []use) bool {
	for _, u := range a {
		for len(b) > 0 && b[0].reserve < u.reserve {
			b = b[1:]
		}
		if len(b) == 0 || b[0].reserve != u.reserve || b[0].n < u.n {
			return false
		}
	}
	return true
}

// parts splits a state at a point into the part that must be equal, as a key in s.buf, and its
// resources.
func (s *searcher) parts(pos int32, st state) resources {
	c := resources{seen: st.seen, used: st.used}
	switch {
	case s.unit:
		st, c = s.undone(st)
	case s.shares:
		st, c = s.untaken(st)
	}
	c.glance()
	st.seen, st.used = nil, nil
	s.buf = st.key(appendPos(s.buf[:0], pos))
	return c
}

// undone returns a semaphore's state without the effects that could also happen now: for each
// client, either releases or acquires. To get from fewer to more effects, the releases take effect
// first and then the acquires; there is room for them if there is room at the end.
func (s *searcher) undone(st state) (state, resources) {
	c := resources{seen: st.seen, early: st.done}
	gives := func(actor int32) bool {
		return s.gaveBack(st, actor, false) ||
			slices.ContainsFunc(c.early, func(op int32) bool { return s.ops[op].actor == actor && s.ops[op].op == Release })
	}
	all := st.used
	var counts []change
	for _, op := range c.early {
		o := &s.ops[op]
		n := int32(-1)
		if o.op == Release {
			n = 1
		}
		counts = append(counts, change{o.actor, n})
	}
	for _, u := range all {
		like := &s.ops[s.reserves[u.reserve].like]
		n := int32(0)
		switch {
		case like.op == Release:
			n = u.n
			counts = append(counts, change{like.actor, n})
		case !gives(like.actor):
			n = st.count(like.actor, false)
			for _, other := range counts {
				if other.actor == like.actor {
					n += other.n
				}
			}
			n = min(u.n, n)
			counts = append(counts, change{like.actor, -n})
		}
		if n > 0 {
			c.extra = append(c.extra, use{u.reserve, n})
		}
		if n < u.n {
			c.used = append(c.used, use{u.reserve, u.n - n})
		}
	}
	for _, x := range counts {
		if x.n != 0 {
			st = st.taking(x.actor, false, x.n, atOnce)
		}
	}
	st.done = nil
	return st, c
}

// gaveBack reports whether releases of unknown outcome of an actor have taken effect.
func (s *searcher) gaveBack(st state, actor int32, reading bool) bool {
	return slices.ContainsFunc(st.used, func(u use) bool {
		like := &s.ops[s.reserves[u.reserve].like]
		return like.actor == actor && like.reading == reading && like.op == Release
	})
}

// untaken returns a state of a read-write lock without the acquires of unknown outcome that could
// also take effect now, for clients that have used no release of unknown outcome. These are reads,
// because other clients read, too, or the reader writes; and writes of a client that also writes
// otherwise or does not read.
func (s *searcher) untaken(st state) (state, resources) {
	c := resources{seen: st.seen}
	before := st
	for _, u := range before.used {
		like := &s.ops[s.reserves[u.reserve].like]
		n := int32(0)
		if like.op != Release && !s.gaveBack(before, like.actor, like.reading) {
			left := st.count(like.actor, like.reading)
			if !like.reading && before.count(like.actor, true) > 0 {
				left-- // who reads cannot begin to write
			}
			n = max(0, min(u.n, left))
		}
		if n > 0 {
			i, _ := st.held(like.actor, like.reading)
			st = st.taking(like.actor, like.reading, -n, st.holds[i].grant)
			c.extra = append(c.extra, use{u.reserve, n})
		}
		if n < u.n {
			c.used = append(c.used, use{u.reserve, u.n - n})
		}
	}
	return st, c
}

// A change is a change of the count that an actor holds.
type change struct{ actor, n int32 }

// better reports whether an element of the list is at least as good as c. The list is ordered by
// many. Every 32 comparisons cost one state of the budget.
func (s *searcher) better(list []resources, c *resources) bool {
	for i := range list {
		if i%32 == 31 {
			s.budget--
		}
		if list[i].many > c.many {
			return false
		}
		if list[i].atLeast(c) {
			return true
		}
	}
	return false
}

// visit records that the search is in a state at a point, and reports whether it had not visited a
// state that is at least as good.
func (s *searcher) visit(pos int32, st state) bool {
	c := s.parts(pos, st)
	list := s.been[string(s.buf)]
	if s.better(list, &c) {
		return false
	}
	at := sort.Search(len(list), func(i int) bool { return list[i].many >= c.many })
	kept := at // drop the states that are worse than c
	s.budget -= (len(list) - at) / 32
	for i := at; i < len(list); i++ {
		if !c.atLeast(&list[i]) {
			list[kept] = list[i]
			kept++
		}
	}
	clear(list[kept:])
	s.been[string(s.buf)] = slices.Insert(list[:kept], at, c)
	return true
}
