package linear

import (
	"cmp"
	"math"
	"slices"
	"time"
)

// tooMany reports whether no correct lock allows all of these holds at once.
func (c *Checker) tooMany(set []*hold) bool {
	if !c.counted {
		first := set[0].owner.client
		return slices.ContainsFunc(set, func(h *hold) bool { return h.owner.client != first })
	}
	return permitsOf(set) > int64(c.limit)
}

// clash reports whether holds of two clients overlap for every possible clock error: each ended
// later than the other began by more than the errors of both times. Brief holds are ignored,
// because only other clients' holds prove them. The set is ordered by beginning.
func (c *Checker) clash(set []*hold) bool {
	// For the holds up to each position: the latest end, and the latest end of another client than
	// that one.
	type latest struct {
		end, other time.Duration
		client     *client
	}
	begun := make([]latest, 0, len(set))
	list := make([]*hold, 0, len(set))
	so := latest{math.MinInt64, math.MinInt64, nil}
	for _, h := range set {
		if h.brief {
			continue
		}
		switch end := c.surelyUntil(h); {
		case h.owner.client == so.client:
			so.end = max(so.end, end)
		case end > so.end:
			so = latest{end, so.end, h.owner.client}
		default:
			so.other = max(so.other, end)
		}
		begun, list = append(begun, so), append(list, h)
	}
	return slices.ContainsFunc(list, func(h *hold) bool {
		n, _ := slices.BinarySearchFunc(list, c.surelyUntil(h), func(o *hold, end time.Duration) int { return cmp.Compare(o.from.time, end) })
		if n == 0 {
			return false
		}
		others := begun[n-1].end
		if begun[n-1].client == h.owner.client {
			others = begun[n-1].other
		}
		return others > h.from.time
	})
}

// surelyUntil returns the time until which h lasted for every possible clock error.
func (c *Checker) surelyUntil(h *hold) time.Duration {
	end := h.end().time
	if h.doubtful {
		end = min(end, h.doubted)
	}
	if !c.ending {
		end = min(end, c.now) // the hold may end at any time
	}
	if end == math.MaxInt64 {
		return end
	}
	return end - 2*c.opts.Skew
}

// permitsOf returns the total number of permits of the holds.
func permitsOf(set []*hold) (n int64) {
	for _, h := range set {
		n += int64(h.permits)
	}
	return n
}

// report reports a set of holds, ordered by beginning, that lasted until end.
func (c *Checker) report(s *lockState, l *holds, set []*hold, end stamp) {
	if c.found || !c.tooMany(set) {
		return
	}
	if !l.reportedUntil.before(end) && !slices.ContainsFunc(set, func(h *hold) bool { return h.late }) {
		return // the set was reported before
	}
	last := set[len(set)-1]
	v := Violation{Rule: Overlap, Key: s.key, From: last.from.time, To: end.time, Certain: true}
	if c.opts.Skew > 0 {
		v.Certain = !c.counted && c.clash(set)
	}
	if !c.wants(v.Certain) {
		return
	}
	proof := set
	if !c.counted {
		proof = set[:2]
	}
	for i, h := range proof {
		if i == 0 || proof[i-1].from != h.from { // otherwise a part of the same hold
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
		v.Rule, v.Message = Permits, sayPermits(&begun, permitsOf(set), int64(c.limit))
	} else {
		v.Message = sayOverlap(&v)
	}
	c.violate(v)
}
