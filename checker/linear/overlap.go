package linear

import (
	"slices"
	"time"
)

// ends notes that a hold which had to last until now has ended: if it began an
// overlap, or one began under it, the set of those who hold is at its largest.
func (c *Checker) ends(o *owner, at time.Duration) {
	for _, s := range o.slots {
		c.report(s, at)
	}
}

// again lets o count as a holder once more after its end was called off.
func (s *slot) again(o *owner, now time.Duration) {
	for _, h := range s.holders {
		if h != o && h.must(now) {
			if !s.fresh {
				s.pair = [2]Event{o.hold, h.hold}
			}
			s.fresh, s.since = true, max(o.hold.Time, h.hold.Time)
		}
	}
}

// expire ends the holds of an overlap whose leases are over. Where there is no
// overlap nothing depends on the moment, and must tells.
func (c *Checker) expire(s *slot) {
	if len(s.holders) < 2 {
		return
	}
	for {
		var next *owner
		for _, h := range s.holders {
			if h.lo > 0 && !h.over && h.until <= c.now && (next == nil || h.until < next.until) {
				next = h
			}
		}
		if next == nil {
			return
		}
		c.report(s, next.until)
		next.over = true
	}
}

// report reports the overlap of all who hold s until at, if it is a new one.
func (c *Checker) report(s *slot, at time.Duration) {
	if !s.fresh || c.done {
		return
	}
	s.fresh = false
	v := Violation{Rule: Overlap, Key: s.key, Events: s.pair[:], From: s.since, To: at, Certain: true}
	v.Events = slices.Clone(v.Events)
	for _, h := range s.holders {
		if h.lo > 0 && !h.over {
			v.Clients = append(v.Clients, h.client.name)
		}
	}
	slices.Sort(v.Clients)
	c.violate(c.weigh(v))
}

// overlap makes the violation that two holds overlap, each proven by an event.
func (c *Checker) overlap(o *owner, first, second *Event, from, to time.Duration) Violation {
	v := Violation{Rule: Overlap, Key: o.slots[0].key, Events: []Event{*first, *second}, From: from, To: max(from, to), Certain: true}
	v.Clients = []string{first.Client, second.Client}
	slices.Sort(v.Clients)
	return c.weigh(v)
}

// weigh says how certain an overlap is, and puts it into words.
func (c *Checker) weigh(v Violation) Violation {
	if c.opts.Skew > 0 {
		// Either end may be wrong by the skew.
		v.Certain = v.To-v.From > 2*c.opts.Skew
	}
	v.Says = sayOverlap(&v)
	return v
}
