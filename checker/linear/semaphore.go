package linear

import (
	"math"
	"slices"
)

// permits is the state of a semaphore in addition to its holders: lo permits must be held, and hi
// may be held.
type permits struct {
	lo, hi int64
	// pressure is the last event at which some holders must have stopped, but it was unknown which.
	pressure int64
	vague    int64 // the event before which a permit was last free, if all possible stops happened
	open     int64 // total number of permits of the acquires under way
	full     int64 // the event before which a try of one permit under way may have found none
	sure     int64 // the same, if every permit must have been held
	over     bool  // the rules judge this semaphore no further
}

// expirePending records, before the number of possible permits drops, whether they may have been
// too many for a try of one permit under way.
func (c *Checker) expirePending(s *lockState) {
	if s.permit.hi+s.permit.open > int64(c.limit) {
		s.permit.full = c.seq
	}
}

func (c *Checker) semCalled(o *owner) {
	s := o.slots[0]
	c.catchUp(o)
	switch o.op {
	case Acquire, TryAcquire:
		s.unsure++
		s.permit.open += int64(o.permits)
	case Release:
		o.credit, o.retro = false, false
		o.loBefore = o.lo
		if o.hi < o.permits {
			if o.unsure == 0 {
				return // the release cannot succeed
			}
			if o.permits > 1 {
				c.abandon(s)
				return
			}
		}
		c.suspend(o, min(o.lo, o.permits))
		c.semSet(o, max(0, o.lo-o.permits), o.hi)
	}
}

// semSet sets the numbers of permits that o must hold (lo) and may hold (hi).
func (c *Checker) semSet(o *owner, lo, hi int32) {
	s := o.slots[0]
	if hi < o.hi {
		c.expirePending(s)
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
	c.catchUp(o)
	if o.op == Release {
		c.semReleased(o, e)
		return
	}
	if e.Phase != ReturnUnknown {
		s.unsure--
	}
	if e.Phase != ReturnOK { // otherwise they stay held
		c.expirePending(s)
	}
	s.permit.open -= int64(o.permits)
	switch e.Phase {
	case ReturnOK:
		c.semAcquired(o, e)
	case ReturnUnknown:
		c.unsure(o)
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
	switch {
	case s.permit.hi < n || s.permit.lo < n && s.permit.lo+int64(o.permits) >= n:
		s.free = c.seq
	case s.permit.lo < n:
		s.permit.vague = c.seq
	}
	c.semSettle(o)
	h := c.newHold(o, s, e)
	h.permits = o.permits
	s.holds.add(h)
	c.semSet(o, add32(o.lo, o.permits), add32(o.hi, o.permits))
	s.holds.crowded = s.holds.crowded || s.permit.lo > n
	c.tightenPermits(s, nil, n)
}

// semSettle drops the released holds of o, except as many as o may still hold.
func (c *Checker) semSettle(o *owner) {
	maybe := o.hi - o.lo
	for i := len(o.held) - 1; i >= 0; i-- {
		h := o.held[i]
		switch {
		case h.called.seq == 0 || h.tentative:
			continue
		case maybe > 0:
			maybe -= h.permits
			continue
		}
		c.over(h)
		o.spare, o.held = append(o.spare, h), slices.Delete(o.held, i, i+1)
	}
	o.lost = false
}

// tightenPermits assumes that holders that need not hold have stopped, if at most room permits can
// be held and it is certain which holders stopped. The holders stop in favour of all current holds,
// and of rival.
func (c *Checker) tightenPermits(s *lockState, rival *hold, room int64) {
	if s.permit.hi <= room {
		return
	}
	if s.permit.lo < room {
		s.permit.pressure = c.seq
		return
	}
	var rivals []*hold
	for i := len(s.holders) - 1; i >= 0; i-- {
		h := s.holders[i]
		if h.hi == h.lo {
			continue
		}
		if rivals == nil {
			rivals = s.holds.now(c.stamp())
			if rival != nil {
				rivals = append(rivals, rival)
			}
			for _, r := range rivals {
				r.pins++
			}
		}
		if h.rough() {
			c.abandon(s)
			return
		}
		if h.op == Release {
			h.credit, h.retro = h.hi >= h.permits, h.loBefore > h.lo
		}
		h.lost = true
		for _, own := range h.held {
			if own.called.seq != 0 {
				own.rivals = rivals
			}
		}
		c.semSet(h, h.lo, h.lo)
	}
}

// unsure records an acquire of unknown outcome.
func (c *Checker) unsure(o *owner) {
	o.unsure = add32(o.unsure, o.permits)
	if o.permits > 1 {
		c.abandon(o.slots[0])
	}
}

// abandon records that the rules judge a semaphore no further.
func (c *Checker) abandon(s *lockState) {
	s.permit.over = true
	c.markUndecided(s, "how many permits operations of unknown outcome on several have moved is not settled")
}

// rough reports whether some number of permits between lo and hi may be impossible.
func (o *owner) rough() bool {
	return o.hi > o.lo && o.op == Release && o.permits > 1 && o.hi-o.lo != o.permits
}

func (c *Checker) semReleased(o *owner, e *Event) {
	s := o.slots[0]
	n, k := int64(c.limit), o.permits
	credit, retro := o.credit, o.retro
	o.credit, o.retro = false, false
	switch e.Phase {
	case ReturnUnknown:
		c.confirm(o)
		if k > 1 {
			c.abandon(s)
		}
		return
	case ReturnFail:
		switch {
		case retro:
		case credit:
			return
		case s.permit.pressure > o.call.seq:
			c.markUndecided(s, "who had given up permits before a release failed is not settled")
		}
		c.semSet(o, o.loBefore, max(o.hi, o.loBefore))
		c.resume(o)
		return
	}
	c.confirm(o)
	switch {
	case credit:
		c.semSettle(o)
	case o.hi >= k:
		if o.loBefore < k && s.permit.pressure > 0 {
			c.markUndecided(s, "who had given up permits before a release succeeded is not settled")
		}
		c.semSet(o, max(o.loBefore, k)-k, o.hi-k)
		c.semSettle(o)
	case int64(o.unsure)+int64(o.hi) < int64(k):
		if !c.heldOn(o, k-o.hi-o.unsure, math.MaxInt64) {
			c.notHeld(o, e)
		}
	case k > 1:
		c.abandon(s)
	case s.permit.hi < n || s.free > o.call.seq:
		o.unsure--
	case s.permit.lo < n:
		o.unsure--
		c.tightenPermits(s, c.peekHold(o, s, e), n-1)
	case s.permit.vague > o.call.seq:
		c.markUndecided(s, "who had given up permits when an acquire of unknown outcome took effect is not settled")
	case !c.reportOverlaps(o, s, e):
		c.notHeld(o, e)
	}
}

func (c *Checker) semCrash(o *owner) {
	if o.op == Acquire || o.op == TryAcquire {
		c.unsure(o)
		c.expirePending(o.slots[0])
		o.slots[0].permit.open -= int64(o.permits)
	}
	o.op, o.credit, o.retro = 0, false, false
	c.forget(o)
	c.semSet(o, 0, 0)
}

func (c *Checker) semTold(o *owner, e *Event) {
	s := o.slots[0]
	n := int64(c.limit)
	switch {
	case s.permit.lo+int64(o.permits) > n || s.permit.sure > o.call.seq:
	case s.permit.hi+int64(o.permits) > n || s.permit.full > o.call.seq || s.busy.blurred:
		c.markBusyUndecided(s, "a busy answer depends on when permits were taken and given up, which is not settled")
	case s.unsure > 0 || o.permits > 1:
		c.markBusyUndecided(s, "a busy answer can only be explained by an acquire without a known outcome, which is not settled")
	default:
		c.violate(Violation{Rule: Busy, Key: s.key, Events: []Event{*e}, Certain: c.opts.Skew == 0, Message: sayBusy(e)})
	}
}
