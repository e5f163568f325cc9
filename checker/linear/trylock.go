package linear

import "slices"

// failedTry is the state that Options.Strict needs for a lock: the first busy result that no hold
// explains so far. The result that returned first is the hardest to explain, so one is enough.
type failedTry struct {
	held     int64 // the event at which the last hold was over
	vague    int64 // the event by which a hold was over that may have ended earlier
	ret      int64 // position of the result; 0 if there is none
	answer   Event
	unsure   bool // an operation without a return, or a lease, may explain it
	blurred  bool // an outcome is unknown, or a crash may have left a hold
	answered bool // a result depends on when an operation takes effect
}

// judgeBusy judges the busy result e of o.
func (c *Checker) judgeBusy(o *owner, e *Event) {
	s := o.slots[0]
	if c.tokens {
		if !slices.ContainsFunc(s.holders, func(h *owner) bool { return h.must(c.now) }) {
			c.markBusyUndecided(s, "a busy answer of a fenced lock that nobody's lease explains is not settled")
		}
		return
	}
	for _, s := range o.slots {
		for _, h := range s.holders {
			if h.lo > 0 && h.until > o.call.Time {
				return
			}
		}
	}
	if c.tied {
		c.markBusyUndecided(s, "a busy answer depends on when several keys were free at once, which is not settled")
		return
	}
	s.busy.answered = true
	if s.busy.blurred {
		c.markBusyUndecided(s, "a busy answer depends on what has no known outcome, which is not settled")
		return
	}
	for _, h := range s.holders {
		if h.op == Extend && h.until <= o.call.Time {
			c.markBusyUndecided(s, "a busy answer depends on an extend under way, which is not settled")
			return
		}
		if c.spec.expiry != Known || h.loose || h.until > o.call.Time {
			return
		}
	}
	if s.busy.held > o.call.seq || s.busy.ret != 0 {
		return
	}
	s.busy.ret, s.busy.answer, s.busy.unsure = c.seq, *e, s.unsure > 0 || s.busy.vague > o.call.seq
}

// explained records that the next hold began, by an acquire invoked at call.
func (c *Checker) explained(s *lockState, call int64) {
	if s.busy.ret == 0 {
		return
	}
	if call > s.busy.ret {
		c.unexplained(s)
	}
	s.busy.ret = 0
}

func (c *Checker) unexplained(s *lockState) {
	if s.busy.unsure {
		c.markBusyUndecided(s, "a busy answer can only be explained by what has no known outcome, which is not settled")
		return
	}
	c.violate(Violation{Rule: Busy, Key: s.key, Events: []Event{s.busy.answer}, Certain: c.opts.Skew == 0, Message: sayBusy(&s.busy.answer)})
}
