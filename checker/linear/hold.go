package linear

import (
	"math"
	"slices"
	"time"
)

// must says whether the owner owns the lock in every legal order, just before
// an event at time now.
func (o *owner) must(now time.Duration) bool {
	return o.lo > 0 && now < o.until
}

// called notes the call of an operation.
func (c *Checker) called(o *owner) {
	if c.spec.kind == semaphoreKind {
		c.semCalled(o)
		return
	}
	for _, s := range o.slots {
		c.expire(s)
	}
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
			if o.lo == 1 && o.must(c.now) {
				c.ends(o, c.now)
			}
			o.lo--
		}
	}
}

// returned notes the return of the operation under way.
func (c *Checker) returned(o *owner, e *Event) {
	if c.spec.kind == semaphoreKind {
		c.semReturned(o, e)
		return
	}
	for _, s := range o.slots {
		c.expire(s)
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
				c.told(o, e)
			}
		case ReturnUnknown:
			o.unsure++
			o.since = true
		}
	case Release:
		c.released(o, e)
	case Extend:
		c.extended(o, e)
	}
}

// lease returns until when a grant by event e is good.
func (s Spec) lease(e *Event) time.Duration {
	switch {
	case s.kind != leaseKind && s.kind != fencedKind:
		return math.MaxInt64
	case e.Lease == 0 || s.expiry == NotKnown:
		return e.Time // at any time from now on
	}
	return e.Lease
}

// stale says whether a grant was over before the client heard of it. It then
// begins no hold, and is judged no further.
func (s Spec) stale(e *Event) bool {
	if e.Lease == 0 {
		return s.kind == fencedKind
	}
	return s.expiry != NotKnown && s.lease(e) <= e.Time
}

// late says whether the operation under way was called when the lease was known
// to be over.
func (c *Checker) late(o *owner) bool {
	return c.spec.expiry == Known && !o.loose && o.call.Time >= o.until
}

func (c *Checker) acquired(o *owner, e *Event) {
	if c.spec.stale(e) {
		for _, s := range o.slots {
			s.busy.passed(c)
			if c.spec.kind == leaseKind && c.spec.expiry == Believed {
				s.unsure++ // the lock may have lasted longer than the client believed
			}
		}
		if c.spec.kind == leaseKind && c.spec.expiry == Believed {
			o.unsure++
		}
		return
	}
	if o.hi > 0 && !o.must(c.now) && o.until <= c.now {
		o.lo = 0 // the lease ran out
	}
	if o.lo >= c.limit {
		c.violate(Violation{Rule: Again, Key: o.key, Events: []Event{o.hold, *e}, Certain: true,
			Says: sayAgain(&o.hold, e, c.limit)})
		o.hold = *e
		return
	}
	if o.hi >= c.limit { // then some release, or the end of a lease, came first
		o.hi = c.limit - 1
	}
	if o.hi == 0 {
		c.unlean(o)
		c.drop(o)
		c.begin(o, e)
		return
	}
	o.since = true
	if o.lo == 0 {
		o.hold = *e
		// It acquired again, or for the first time after an unknown release:
		// then the lock was free just before.
		s := o.slots[0]
		s.gap = gap{o, c.seq, o.hi, s.gap.owner == o}
	}
	o.lo, o.hi = o.lo+1, o.hi+1
}

// begin lets o hold from event e on, which proves it. Who may still hold has
// stopped before; who must still hold overlaps.
func (c *Checker) begin(o *owner, e *Event) {
	o.lo, o.hi, o.hold, o.until, o.over = 1, 1, *e, c.spec.lease(e), false
	o.by, o.loose, o.since, o.leaned = Event{}, e.Lease == 0, false, false
	for _, s := range o.slots {
		var other *owner
		kept := s.holders[:0]
		for _, h := range s.holders {
			if h.must(c.now) {
				other = h
				kept = append(kept, h)
			} else if !slices.Contains(kept, h) {
				c.yield(h, e, s)
			}
		}
		s.holders = append(kept, o)
		s.gap = gap{}
		if other != nil {
			if !s.fresh {
				s.pair = [2]Event{other.hold, *e}
			}
			s.fresh, s.since = true, e.Time
		} else {
			s.free = c.seq
		}
		c.explained(s, o.call.seq)
	}
}

// yield lets h, which need not hold any more, have stopped just before event
// by, at s; it leaves its other slots here.
func (c *Checker) yield(h *owner, by *Event, s *slot) {
	c.unlean(h)
	if h.op == Release {
		sure := h.loBefore > 0 && c.now < h.until
		h.credit, h.retro = !c.late(h), sure
	}
	h.lo, h.hi, h.by, h.loBefore = 0, 0, *by, 0
	for _, other := range h.slots {
		if other != s {
			other.leave(h)
			other.busy.held = c.seq
		}
	}
}

func (s *slot) leave(o *owner) {
	if i := slices.Index(s.holders, o); i >= 0 {
		s.holders = slices.Delete(s.holders, i, i+1)
	}
}

// drop takes a hold that is over out of its slots.
func (c *Checker) drop(o *owner) {
	o.lo, o.hi = 0, 0
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
		if o.credit || o.retro {
			if o.retro {
				c.violate(c.overlap(o, &o.hold, &o.by, o.by.Time, min(c.now, o.until)))
			}
			o.credit, o.retro = false, false
			return
		}
		if o.loBefore > o.lo {
			o.lo = o.loBefore
			for _, s := range o.slots {
				s.again(o, c.now)
			}
		}
		return
	case ReturnUnknown:
		o.credit, o.retro, o.since = false, false, false
		return
	}
	if o.credit {
		o.credit, o.retro, o.by = false, false, Event{}
		return
	}
	late := c.late(o)
	if o.hi > 0 && !late {
		o.lo, o.hi = max(o.loBefore, 1)-1, o.hi-1
		if o.hi == 0 {
			c.drop(o)
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

// evidence judges a release that succeeded although its client was not known to
// hold: an acquire of unknown outcome must have taken effect, at an instant
// during the release at which nobody else held.
func (c *Checker) evidence(o *owner, e *Event) {
	if o.unsure == 0 {
		c.notHeld(o, e)
		return
	}
	past := false // an instant before the last hold began will do
	for _, s := range o.slots {
		if len(s.holders) == 0 {
			continue
		}
		if s.free > o.call.seq {
			if s.busy.early == s.free {
				c.wonder("whether a hold began before a busy answer that it explains, or after an acquire of unknown outcome, is not settled")
			}
			past = true
			continue
		}
		if g := s.gap; g.owner != nil && g.seq > o.call.seq {
			if g.several {
				c.wonder("which of several unknown releases of a reentrant lock took effect is not settled")
			}
			if h := g.owner; h.hi-g.extra >= h.lo {
				c.unlean(h)
				h.hi -= g.extra
				s.gap = gap{}
				past = true
				continue
			}
		}
		if s.lapse > o.call.seq {
			c.wonder("whether a lease ran out before it was extended, and an acquire of unknown outcome took its place, is not settled")
		}
		for _, h := range s.holders {
			if h.must(c.now) {
				if s.lapse > o.call.seq {
					return
				}
				c.violate(c.overlap(o, &h.hold, e, o.call.Time, c.now))
				return
			}
		}
	}
	if past && len(o.slots) > 1 {
		c.wonder("whether all keys of a release were free at one instant, which an acquire of unknown outcome needs, is not settled")
	}
	o.unsure--
	o.by = Event{}
	for _, s := range o.slots {
		s.unsure--
		s.busy.passed(c)
		if past {
			continue
		}
		for len(s.holders) > 0 {
			h := s.holders[len(s.holders)-1]
			s.holders = s.holders[:len(s.holders)-1]
			c.yield(h, e, s)
			s.busy.held = c.seq
		}
	}
}

func (c *Checker) notHeld(o *owner, e *Event) {
	if o.by.Phase != 0 {
		c.violate(c.overlap(o, &o.hold, &o.by, o.by.Time, o.call.Time))
		o.by = Event{}
		return
	}
	c.violate(Violation{Rule: NotHeld, Key: o.key, Events: []Event{o.call.Event, *e}, Certain: true, Says: sayNotHeld(e)})
}

func (c *Checker) extended(o *owner, e *Event) {
	if (e.Phase == ReturnUnknown || e.Phase == ReturnOK && c.spec.stale(e)) && o.call.Time < o.until {
		o.loose = true
	}
	if e.Phase != ReturnOK || c.spec.stale(e) {
		return
	}
	late := c.late(o)
	switch {
	case o.hi > 0 && !late:
		if o.unsure > 0 && !o.must(c.now) {
			o.slots[0].lapse = c.seq
		}
		o.until, o.over, o.loose, o.lo, o.hi = c.spec.lease(e), false, e.Lease == 0, 1, 1
		for _, s := range o.slots {
			s.again(o, c.now)
		}
	case c.tokens:
	case o.unsure > 0:
		o.unsure--
		for _, s := range o.slots {
			s.unsure--
		}
		c.drop(o)
		c.begin(o, e)
	default:
		c.drop(o)
		c.notHeld(o, e)
	}
}

// crash ends what a client had under way and what it held, on every key.
func (c *Checker) crash(e *Event) {
	cl := c.clients[e.Client]
	if cl == nil {
		return
	}
	for _, o := range cl.owners {
		if c.spec.kind == semaphoreKind {
			c.semCrash(o)
			continue
		}
		for _, s := range o.slots {
			c.expire(s)
		}
		if o.op == Acquire || o.op == TryAcquire {
			o.unsure++
			if c.tokens {
				o.tokens.unsure = append(o.tokens.unsure, o.tokens.called)
			}
		}
		if o.must(c.now) {
			c.ends(o, c.now)
		}
		o.op, o.credit, o.retro, o.by = 0, false, false, Event{}
		c.drop(o)
	}
}

// finish judges what only the end of the history can tell, key by key.
func (c *Checker) finish() {
	var keys []string
	for key, s := range c.slots {
		if s.fresh || s.busy.ret != 0 || len(s.holders) > 1 {
			keys = append(keys, key)
		}
	}
	slices.Sort(keys)
	for _, key := range keys {
		c.expire(c.slots[key])
		c.report(c.slots[key], c.now)
		if !c.done {
			c.finished(c.slots[key])
		}
		if c.done {
			return
		}
	}
}
