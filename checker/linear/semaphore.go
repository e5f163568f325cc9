package linear

import (
	"math"
	"slices"
)

// permits is what is kept of a semaphore beside its holders: how many permits
// must be out, and how many may be.
type permits struct {
	lo, hi int64
	// pressure is the last event at which some who need not have held had to
	// have stopped, and it was not clear who.
	pressure int64
	vague    int64 // the event just before which a permit was free last, if all who could have stopped had
	open     int64 // how many acquires under way are about
	full     int64 // the event just before which no permit may have been left for a try of one under way
	sure     int64 // the same, where every permit must have been out
}

// fade notes, before fewer permits may be out, if they may have been too many
// for a try of one, which is among those under way.
func (c *Checker) fade(s *slot) {
	if s.permit.hi+s.permit.open > int64(c.limit) {
		s.permit.full = c.seq
	}
}

func (c *Checker) semCalled(o *owner) {
	s := o.slots[0]
	switch o.op {
	case Acquire, TryAcquire:
		s.unsure++
		s.permit.open += int64(o.permits)
	case Release:
		o.credit, o.retro = false, false
		o.loBefore = o.lo
		if o.hi < o.permits {
			if o.unsure == 0 {
				return // it cannot succeed
			}
			o.bulk = o.bulk || o.permits > 1
		}
		c.semSet(o, max(0, o.lo-o.permits), o.hi)
	}
}

// semSet changes how many permits o must and may have.
func (c *Checker) semSet(o *owner, lo, hi int32) {
	s := o.slots[0]
	if hi < o.hi {
		c.fade(s)
	}
	if lo < o.lo && s.permit.lo >= int64(c.limit) {
		s.permit.sure = c.seq
	}
	s.permit.lo += int64(lo) - int64(o.lo)
	s.permit.hi += int64(hi) - int64(o.hi)
	switch {
	case o.hi == 0 && hi > 0:
		s.holders = append(s.holders, o)
	case o.hi > 0 && hi == 0:
		s.leave(o)
	}
	o.lo, o.hi = lo, hi
}

func (c *Checker) semReturned(o *owner, e *Event) {
	s := o.slots[0]
	if o.op == Release {
		c.semReleased(o, e)
		return
	}
	if e.Phase != ReturnUnknown {
		s.unsure--
	}
	if e.Phase != ReturnOK { // else they stay out
		c.fade(s)
	}
	s.permit.open -= int64(o.permits)
	switch e.Phase {
	case ReturnOK:
		c.semAcquired(o, e)
	case ReturnUnknown:
		o.unsure = add32(o.unsure, o.permits)
		o.bulk = o.bulk || o.permits > 1
	case ReturnFail:
		if c.opts.Strict && o.op == TryAcquire {
			c.semTold(o, e)
		}
	}
}

func add32(a, b int32) int32 { return int32(min(int64(a)+int64(b), math.MaxInt32)) }

func (c *Checker) semAcquired(o *owner, e *Event) {
	s := o.slots[0]
	n := int64(c.limit)
	if s.permit.lo+int64(o.permits) > n {
		c.overdrawn(s, e, s.permit.lo+int64(o.permits))
	}
	switch {
	case s.permit.hi < n || s.permit.lo < n && s.permit.lo+int64(o.permits) >= n:
		s.free = c.seq
	case s.permit.lo < n:
		s.permit.vague = c.seq
	}
	o.hold, o.by = *e, Event{}
	c.semSet(o, add32(o.lo, o.permits), add32(o.hi, o.permits))
	c.squeeze(s, e, n)
}

// squeeze lets those who need not hold have stopped, if at most room permits can
// be theirs and others' together and it is clear who must have.
func (c *Checker) squeeze(s *slot, by *Event, room int64) {
	if s.permit.hi <= room {
		return
	}
	if s.permit.lo < room {
		s.permit.pressure = c.seq
		if c.open == "" && slices.ContainsFunc(s.holders, (*owner).rough) {
			c.wonder("whether unknown operations on several permits have given up enough is not settled")
		}
		return
	}
	for i := len(s.holders) - 1; i >= 0; i-- {
		h := s.holders[i]
		if h.hi == h.lo {
			continue
		}
		if h.rough() {
			c.giveUp("how many permits unknown operations on several have moved is not settled")
			return
		}
		if h.op == Release {
			h.credit, h.retro = h.hi >= h.permits, h.loBefore > h.lo
		}
		h.by = *by
		c.semSet(h, h.lo, h.lo)
	}
}

// rough says whether some number between lo and hi may not be possible.
func (o *owner) rough() bool {
	return o.hi > o.lo && (o.bulk || o.op == Release && o.permits > 1 && o.hi-o.lo != o.permits)
}

func (c *Checker) overdrawn(s *slot, e *Event, held int64) {
	v := Violation{Rule: Permits, Key: s.key, Certain: c.opts.Skew == 0, Says: sayPermits(e, held, int64(c.limit))}
	for _, h := range s.holders {
		if h.lo > 0 {
			v.Events = append(v.Events, h.hold)
		}
	}
	v.Events = append(v.Events, *e)
	c.violate(v)
}

func (c *Checker) semReleased(o *owner, e *Event) {
	s := o.slots[0]
	n, k := int64(c.limit), o.permits
	credit, retro := o.credit, o.retro
	o.credit, o.retro = false, false
	switch e.Phase {
	case ReturnUnknown:
		o.bulk = o.bulk || k > 1
		return
	case ReturnFail:
		if retro {
			c.violate(Violation{Rule: Permits, Key: s.key, Events: []Event{o.hold, o.by}, Certain: c.opts.Skew == 0,
				Says: sayPermits(&o.by, n+int64(o.loBefore-o.lo), n)})
			return
		}
		if credit {
			return
		}
		if s.permit.pressure > o.call.seq {
			c.wonder("who had given up permits before a release failed is not settled")
		}
		c.semSet(o, o.loBefore, o.hi)
		if s.permit.lo > n {
			c.overdrawn(s, e, s.permit.lo)
		}
		return
	}
	switch {
	case credit:
	case o.hi >= k:
		if o.loBefore < k && s.permit.pressure > 0 {
			c.wonder("who had given up permits before a release succeeded is not settled")
		}
		if o.loBefore < k && o.bulk {
			c.giveUp("how many permits unknown operations on several have moved is not settled")
		}
		c.semSet(o, max(o.loBefore, k)-k, o.hi-k)
	case int64(o.unsure)+int64(o.hi) < int64(k):
		if o.by.Phase != 0 {
			c.violate(Violation{Rule: Permits, Key: s.key, Events: []Event{o.hold, o.by, *e}, Certain: c.opts.Skew == 0,
				Says: sayPermits(&o.by, n+1, n)})
			return
		}
		c.violate(Violation{Rule: NotHeld, Key: o.key, Events: []Event{o.call.Event, *e}, Certain: true, Says: sayNotHeld(e)})
	case k > 1 || o.bulk:
		c.giveUp("which acquire of unknown outcome gave several permits is not settled")
	case s.permit.hi < n || s.free > o.call.seq:
		o.unsure--
	case s.permit.lo < n:
		o.unsure--
		c.squeeze(s, e, n-1)
	case s.permit.vague > o.call.seq:
		c.wonder("who had given up permits when an acquire of unknown outcome took effect is not settled")
	default:
		c.overdrawn(s, e, s.permit.lo+1)
	}
}

func (c *Checker) semCrash(o *owner) {
	if o.op == Acquire || o.op == TryAcquire {
		o.unsure = add32(o.unsure, o.permits)
		o.bulk = o.bulk || o.permits > 1
		c.fade(o.slots[0])
		o.slots[0].permit.open -= int64(o.permits)
	}
	o.op, o.credit, o.retro, o.by = 0, false, false, Event{}
	c.semSet(o, 0, 0)
}

func (c *Checker) semTold(o *owner, e *Event) {
	s := o.slots[0]
	n := int64(c.limit)
	switch {
	case s.permit.lo+int64(o.permits) > n || s.permit.sure > o.call.seq:
	case s.permit.hi+int64(o.permits) > n || s.permit.full > o.call.seq:
		c.wonder("a busy answer depends on when permits were taken and given up, which is not settled")
	case s.unsure > 0 || o.permits > 1:
		c.wonder("a busy answer can only be explained by an acquire without a known outcome, which is not settled")
	default:
		c.violate(Violation{Rule: Busy, Key: s.key, Events: []Event{*e}, Certain: c.opts.Skew == 0, Says: sayBusy(e)})
	}
}
