package linear

import (
	"math"
	"slices"
	"time"
)

// must reports whether the owner owns the lock in every legal order, just before an event at time
// now.
func (o *owner) must(now time.Duration) bool {
	return o.lo > 0 && now < o.until
}

// called processes the invocation of an operation.
func (c *Checker) called(o *owner) {
	if c.counted {
		if !o.slots[0].permit.over {
			c.semCalled(o)
		}
		return
	}
	c.catchUp(o)
	switch o.op {
	case Acquire, TryAcquire:
		for _, s := range o.slots {
			s.unsure++
		}
		if c.tokens {
			c.tokensCalled(o)
		}
	case Release:
		o.credit, o.retro = false, false
		o.loBefore = o.lo
		if o.lo > 0 {
			o.lo--
			if o.lo == 0 {
				c.suspend(o, 1)
			}
		}
	}
}

// catchUp reports the holds that passing time has completed by ending leases.
func (c *Checker) catchUp(o *owner) {
	for _, s := range o.slots {
		if len(s.holds.list) > 1 {
			c.advance(s)
		}
	}
}

// returned processes the return of the operation under way.
func (c *Checker) returned(o *owner, e *Event) {
	if e.Phase == ReturnUnknown {
		o.blur()
	}
	if c.counted {
		if !o.slots[0].permit.over {
			c.semReturned(o, e)
		}
		return
	}
	c.catchUp(o)
	if c.tokens && e.Lease != 0 {
		c.bind(o, false, true)
	}
	switch o.op {
	case Acquire, TryAcquire:
		if e.Phase != ReturnUnknown {
			for _, s := range o.slots {
				s.unsure--
			}
		}
		if c.tokens {
			c.tokensReturned(o, e)
		}
		switch e.Phase {
		case ReturnOK:
			c.acquired(o, e)
		case ReturnFail:
			if c.opts.Strict && o.op == TryAcquire {
				c.judgeBusy(o, e)
			}
		case ReturnUnknown:
			o.unsure++
		}
	case Release:
		c.released(o, e)
	case Extend:
		c.extended(o, e)
	}
}

// lease returns the time until which a grant by event e is valid.
func (s Spec) lease(e *Event) time.Duration {
	switch {
	case !s.traits().leases:
		return math.MaxInt64
	case e.Lease == 0 || s.expiry == NotKnown:
		return e.Time // at any time from now on
	}
	return e.Lease
}

// stale reports whether a grant was over before the client received it. Such a grant begins no hold
// and is not judged further.
func (s Spec) stale(e *Event) bool {
	if e.Lease == 0 {
		return s.traits().lax
	}
	return s.expiry != NotKnown && s.lease(e) <= e.Time
}

// late reports whether the operation under way was invoked when the lease was known to be over.
func (c *Checker) late(o *owner) bool {
	return c.spec.expiry == Known && !o.loose && o.call.Time >= o.until
}

func (c *Checker) acquired(o *owner, e *Event) {
	if c.spec.stale(e) {
		o.blur()
		for _, s := range o.slots {
			if c.tokens && len(s.holders) > 0 {
				c.markUndecided(s, "whether an acquire that told no lease found the lock free is not settled")
				c.reportOverlaps(o, s, e)
			}
			if !c.lax && c.spec.expiry == Believed {
				s.unsure++ // the lock may have lasted longer than the client believed
			}
		}
		if !c.lax && c.spec.expiry == Believed {
			o.unsure++
		}
		return
	}
	if o.hi > 0 && !o.must(c.now) && o.until <= c.now {
		o.lo = 0 // the lease is over
	}
	if o.lo >= c.limit {
		c.reportReacquire(o.held[0], o.held[0].slot, e)
		return
	}
	if o.hi >= c.limit { // then a release, or the end of a lease, took effect before
		o.hi = c.limit - 1
	}
	if o.hi == 0 {
		c.drop(o)
		c.begin(o, e)
		return
	}
	if o.lo == 0 {
		c.forget(o)
		o.slots[0].holds.add(c.newHold(o, o.slots[0], e))
		// The client acquired again, or for the first time after an unknown release: in that case
		// the lock was free just before.
		o.slots[0].gap = c.seq
	}
	o.lo, o.hi = o.lo+1, o.hi+1
}

// begin begins a hold of o at event e, which proves it. Holders that may still hold have stopped
// before; holders that must still hold overlap.
func (c *Checker) begin(o *owner, e *Event) {
	o.lo, o.hi, o.until = 1, 1, c.spec.lease(e)
	o.loose = e.Lease == 0
	for _, s := range o.slots {
		hold := c.newHold(o, s, e)
		free := true
		kept := s.holders[:0]
		for _, h := range s.holders {
			if !h.must(c.now) {
				c.yield(h, hold)
				continue
			}
			free = false
			kept = append(kept, h)
			if h.client == o.client && !hold.apart {
				hold.apart = true
				c.reportReacquire(h.held[0], s, e)
			}
		}
		s.holders = append(kept, o)
		s.gap = 0
		if free {
			s.free = c.seq
		}
		s.holds.add(hold)
		c.advance(s)
		c.explained(s, o.call.seq)
	}
}

// yield assumes that h, which need not hold any more, stopped just before rival. yield removes h
// from its slots other than rival's.
func (c *Checker) yield(h *owner, rival *hold) {
	if h.op == Release {
		h.credit, h.retro = !c.late(h), h.loBefore > 0 && c.now < h.until
	}
	if !h.retro {
		h.loBefore = 0
	}
	h.lo, h.hi = 0, 0
	c.lose(h, rival)
	for _, other := range h.slots {
		if other != rival.slot {
			other.leave(h)
			other.busy.held = c.seq
		}
	}
}

func (s *lockState) join(o *owner) {
	if !slices.Contains(s.holders, o) {
		s.holders = append(s.holders, o)
	}
}

func (s *lockState) leave(o *owner) {
	if i := slices.Index(s.holders, o); i >= 0 {
		s.holders = slices.Delete(s.holders, i, i+1)
	}
}

// drop removes the hold of o, which is over, from its slots.
func (c *Checker) drop(o *owner) {
	o.lo, o.hi = 0, 0
	c.forget(o)
	for _, s := range o.slots {
		before := len(s.holders)
		s.leave(o)
		if before > len(s.holders) && len(s.holders) == 0 {
			if c.spec.expiry == Known && !o.loose && c.now >= o.until {
				s.busy.vague = c.seq
			} else {
				s.busy.held = c.seq
			}
		}
	}
}

func (c *Checker) released(o *owner, e *Event) {
	switch e.Phase {
	case ReturnFail: // without effect
		if o.retro || !o.credit && o.loBefore > o.lo {
			o.lo, o.hi = o.loBefore, max(o.hi, o.loBefore)
			c.resume(o)
			for _, s := range o.slots {
				s.join(o)
			}
		}
		o.credit, o.retro = false, false
		return
	case ReturnUnknown:
		o.credit, o.retro = false, false
		c.confirm(o)
		return
	}
	if o.credit {
		o.credit, o.retro = false, false
		c.forget(o)
		return
	}
	late := c.late(o)
	if o.hi > 0 && !late {
		o.lo, o.hi = max(o.loBefore, 1)-1, o.hi-1
		if o.hi == 0 {
			c.drop(o)
		} else {
			c.confirm(o)
		}
		return
	}
	if late {
		c.drop(o)
	}
	if c.tokens {
		return
	}
	c.evidence(o, e)
}

// evidence judges a successful release of a client that was not known to hold. An acquire of
// unknown outcome must have taken effect, at an instant during the release at which no other client
// held the lock.
func (c *Checker) evidence(o *owner, e *Event) {
	if o.unsure == 0 {
		if c.late(o) || !c.heldOn(o, 1, math.MaxInt64) {
			c.notHeld(o, e)
		}
		c.forget(o)
		return
	}
	if c.leases && !c.lax {
		c.markUndecided(o.slots[0], "whether an acquire of unknown outcome took effect in time is not settled")
	}
	past := false // an instant before the last hold began is enough
	for _, s := range o.slots {
		if s.busy.answered {
			c.markBusyUndecided(s, "whether a busy answer leaves room for an acquire of unknown outcome is not settled")
		}
		if len(s.holders) == 0 {
			continue
		}
		if s.free > o.call.seq {
			past = true
			continue
		}
		if s.gap > o.call.seq {
			c.markUndecided(s, "which unknown releases of a reentrant lock took effect is not settled")
		}
		for _, h := range s.holders {
			if h.must(c.now) {
				if h.client == o.client || !c.reportOverlaps(o, s, e) {
					c.notHeld(o, e)
				}
				return
			}
		}
	}
	if past && len(o.slots) > 1 {
		c.markUndecided(o.slots[0], "whether all keys of a release were free at one instant, which an acquire of unknown outcome needs, is not settled")
	}
	o.unsure--
	c.forget(o)
	for _, s := range o.slots {
		s.unsure--
		if past {
			continue
		}
		for len(s.holders) > 0 {
			h := s.holders[len(s.holders)-1]
			s.holders = s.holders[:len(s.holders)-1]
			c.yield(h, c.peekHold(o, s, e))
			s.busy.held = c.seq
		}
	}
}

// notHeld reports that o released or extended a lock that it cannot have held.
func (c *Checker) notHeld(o *owner, e *Event) {
	// If a client was dropped, it is unknown whether the violation depends on other clients'
	// clocks. If the release was late by less than the clock error, the lease may not have been
	// over.
	soon := c.late(o) && o.call.Time-o.until <= 2*c.opts.Skew
	c.violate(Violation{Rule: NotHeld, Key: o.key, Events: []Event{o.event(&o.call), *e}, Certain: c.opts.Skew == 0 || !c.forgot && !soon, Message: sayNotHeld(e)})
}

// reportReacquire reports that event e acquired s for a client that already held it.
func (c *Checker) reportReacquire(h *hold, s *lockState, e *Event) {
	first := h.event()
	c.violate(Violation{Rule: Reacquire, Key: s.key, Events: []Event{first, *e}, Certain: true, Message: sayAgain(&first, e, c.limit)})
}

func (c *Checker) extended(o *owner, e *Event) {
	if (e.Phase == ReturnUnknown || e.Phase == ReturnOK && c.spec.stale(e)) && o.call.Time < o.until {
		o.loose = true
		for _, h := range o.held {
			if !h.doubtful {
				h.doubtful, h.doubted = true, c.now
			}
		}
	}
	if e.Phase == ReturnOK && c.tokens && c.spec.stale(e) {
		c.markUndecided(o.slots[0], "what an extend granted that told no lease is not settled")
	}
	if e.Phase != ReturnOK || c.spec.stale(e) {
		return
	}
	if !o.must(c.now) && (c.tokens || o.unsure > 0) {
		c.markUndecided(o.slots[0], "whether a lease ran out before it was extended is not settled")
	}
	late := c.late(o)
	switch {
	case o.hi > 0 && !late:
		must := o.must(c.now)
		o.until, o.loose, o.lo, o.hi = c.spec.lease(e), e.Lease == 0, 1, 1
		if must || o.unsure == 0 && len(o.held) > 0 { // the hold went on
			for _, h := range o.held {
				was := h.end()
				h.ending(c.prolonged(o.until))
				c.relist(h, was)
			}
			return
		}
		c.forget(o)
		for _, s := range o.slots {
			s.holds.add(c.newHold(o, s, e))
		}
	case c.tokens:
	case o.unsure > 0:
		o.unsure--
		for _, s := range o.slots {
			s.unsure--
		}
		c.drop(o)
		c.begin(o, e)
	case !late && c.heldOn(o, 1, c.spec.lease(e)):
		o.until, o.loose, o.lo, o.hi = c.spec.lease(e), e.Lease == 0, 1, 1
		for _, s := range o.slots {
			s.join(o)
		}
	default:
		c.drop(o)
		c.notHeld(o, e)
	}
}

// crash ends the client's operations under way and its holds, on every key.
func (c *Checker) crash(e *Event) {
	cl := c.clients[e.Client]
	if cl == nil {
		return
	}
	for _, o := range cl.owners {
		if o.op != 0 || o.hi > 0 {
			o.blur()
		}
		if c.counted {
			if o.slots[0].permit.over {
				o.op = 0
			} else {
				c.semCrash(o)
			}
			continue
		}
		c.catchUp(o)
		if o.op == Acquire || o.op == TryAcquire {
			o.unsure++
			if c.tokens {
				o.tokens.unsure = append(o.tokens.unsure, o.tokens.called)
			}
		}
		o.op, o.credit, o.retro = 0, false, false
		c.drop(o)
	}
}
