package linear

import "slices"

// hopeless are the states that lead nowhere, by what two of which one is the better must have in common.
type hopeless map[string][]chances

// chances are what a state may have more or less of than another: one that has seen as much, and has used up no more of what
// may take effect once, can do all that the other can. early and extra are what has taken effect but might as well do so
// now, so that who has less of it can come to have more; used is the rest.
type chances struct {
	seen, early []int32
	extra, used []use
}

// atLeast says whether a can do all that b can.
func (a *chances) atLeast(b *chances) bool {
	return within(a.extra, b.extra) && within(a.used, b.used) && subset(a.early, b.early) && subset(b.seen, a.seen)
}

func subset(a, b []int32) bool {
	return !slices.ContainsFunc(a, func(x int32) bool { return !has(b, x) })
}

// within says whether a has no more of anything than b.
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

// parts divides a state at a point into what must be the same, as a key in s.buf, and its chances.
func (s *descent) parts(pos int32, st instant) chances {
	c := chances{seen: st.seen, used: st.used}
	if s.unit {
		st, c = s.undone(st)
	}
	st.seen, st.used = nil, nil
	s.buf = st.key(appendPos(s.buf[:0], pos))
	return c
}

// undone returns a semaphore's state without what might as well take effect now: of each client either releases or
// acquires. To come from less of it to more, first the releases take effect and then the acquires, for which there is room if there is at the end.
func (s *descent) undone(st instant) (instant, chances) {
	c := chances{seen: st.seen, early: st.done}
	gives := func(actor int32) bool {
		return slices.ContainsFunc(c.early, func(op int32) bool { return s.ops[op].actor == actor && s.ops[op].op == Release }) ||
			slices.ContainsFunc(st.used, func(u use) bool {
				like := &s.ops[s.reserves[u.reserve].like]
				return like.actor == actor && like.op == Release
			})
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

// A change is of how much an actor holds.
type change struct{ actor, n int32 }

// hopes says whether a state at a point is not known to lead nowhere.
func (s *descent) hopes(pos int32, st instant) bool {
	c := s.parts(pos, st)
	return !slices.ContainsFunc(s.dead[string(s.buf)], func(d chances) bool { return d.atLeast(&c) })
}

// bury notes that a state at a point leads nowhere.
func (s *descent) bury(pos int32, st instant) {
	c := s.parts(pos, st)
	dead := s.dead[string(s.buf)]
	if slices.ContainsFunc(dead, func(d chances) bool { return d.atLeast(&c) }) {
		return
	}
	dead = slices.DeleteFunc(dead, func(d chances) bool { return c.atLeast(&d) })
	s.dead[string(s.buf)] = append(dead, c)
}
