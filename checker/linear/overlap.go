package linear

import (
	"math"
	"slices"
)

// tooMany says whether no lock that works allows all of these holds at once.
func (c *Checker) tooMany(set []*hold) bool {
	if !c.counted {
		first := set[0].owner.client
		return slices.ContainsFunc(set, func(h *hold) bool { return h.owner.client != first })
	}
	return permitsOf(set) > int64(c.limit)
}

// clashes says whether h and another client's hold overlap whatever the clocks were: each ended later than the other
// began by more than both times can be wrong. That a hold was for an instant is known by others' holds,
// so no such one does.
func (c *Checker) clashes(h *hold, set []*hold) bool {
	return !h.brief && slices.ContainsFunc(set, func(o *hold) bool {
		return o.owner.client != h.owner.client && !o.brief && c.outlasts(h, o) && c.outlasts(o, h)
	})
}

// outlasts says whether h ended, or goes on, after o began, whatever the clocks were.
func (c *Checker) outlasts(h, o *hold) bool {
	end := h.end().time
	if !c.ending {
		end = min(end, c.now) // it may end at any time
	}
	return end == math.MaxInt64 || end-o.from.time > 2*c.opts.Skew
}

// permitsOf counts permits.
func permitsOf(set []*hold) (n int64) {
	for _, h := range set {
		n += int64(h.permits)
	}
	return n
}

// report reports a set, by its beginnings, that lasted until end.
func (c *Checker) report(s *slot, l *holds, set []*hold, end stamp) {
	if c.found || !c.tooMany(set) {
		return
	}
	if !l.told.before(end) && !slices.ContainsFunc(set, func(h *hold) bool { return h.late }) {
		return // it was told before
	}
	last := set[len(set)-1]
	v := Violation{Rule: Overlap, Key: s.key, From: last.from.time, To: end.time, Certain: true}
	if c.opts.Skew > 0 {
		v.Certain = !c.counted && slices.ContainsFunc(set, func(h *hold) bool { return c.clashes(h, set) })
	}
	if !c.wants(v.Certain) {
		return
	}
	proof := set
	if !c.counted {
		proof = set[:2]
	}
	for i, h := range proof {
		if i == 0 || proof[i-1].from != h.from { // else a part of the same
			v.Events = append(v.Events, h.event())
		}
	}
	for _, h := range set {
		v.Clients = append(v.Clients, h.owner.client.name)
	}
	slices.Sort(v.Clients)
	v.Clients = slices.Compact(v.Clients)
	if c.counted {
		begun := last.event()
		v.Rule, v.Says = Permits, sayPermits(&begun, permitsOf(set), int64(c.limit))
	} else {
		v.Says = sayOverlap(&v)
	}
	c.violate(v)
}
