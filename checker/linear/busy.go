package linear

import "slices"

// busy is what Options.Strict keeps of a lock: the busy answer that nobody's
// hold explains so far. Of several the one that returned first is the hardest
// to explain, so one is enough.
type busy struct {
	held    int64 // the event with which the last hold was over
	early   int64 // the event that proved the last hold which began before an answer, to explain it
	vague   int64 // the event by which a hold was over that may have lasted a while
	ret     int64 // the answer's place; 0 if there is none
	answer  Event
	unsure  bool // an acquire of unknown outcome may explain it
	settled bool // a hold that was never named passed since
}

// told judges that o was told busy by event e.
func (c *Checker) told(o *owner, e *Event) {
	if len(o.slots) > 1 {
		c.wonder("a busy answer about several keys at once is not settled")
		return
	}
	s := o.slots[0]
	if c.tokens {
		if !slices.ContainsFunc(s.holders, func(h *owner) bool { return h.must(c.now) }) {
			c.wonder("a busy answer of a fenced lock that nobody's lease explains is not settled")
		}
		return
	}
	for _, h := range s.holders {
		if h.op == Extend && h.until <= o.call.Time {
			c.wonder("a busy answer depends on an extend under way, which is not settled")
			return
		}
		if h.lo == 0 && (h.since || h.op == Acquire || h.op == TryAcquire) {
			h.leaned = true
		}
		if c.spec.expiry != Known || h.loose || h.until > o.call.Time {
			return
		}
	}
	if s.busy.held > o.call.seq || s.busy.ret != 0 {
		return
	}
	s.busy.ret, s.busy.answer, s.busy.unsure, s.busy.settled = c.seq, *e, s.unsure > 0 || s.busy.vague > o.call.seq, false
}

// explained notes that the next hold began, with an acquire called at call.
func (c *Checker) explained(s *slot, call int64) {
	if s.busy.ret == 0 {
		return
	}
	if call > s.busy.ret || s.busy.settled {
		c.unexplained(s)
	} else {
		s.busy.early = c.seq
	}
	s.busy.ret = 0
}

// unlean notes that h need not hold any more.
func (c *Checker) unlean(h *owner) {
	if h.leaned {
		c.wonder("a busy answer depends on when an unknown release took effect, which is not settled")
	}
}

// finished judges the answers that no later hold explained.
func (c *Checker) finished(s *slot) {
	if s.busy.ret != 0 {
		c.unexplained(s)
	}
}

// passed notes that an acquire of unknown outcome took effect and was released.
func (b *busy) passed(c *Checker) {
	b.settled = b.settled || b.ret != 0
	b.vague = c.seq
}

func (c *Checker) unexplained(s *slot) {
	if s.busy.unsure || s.busy.settled {
		c.wonder("a busy answer can only be explained by an acquire of unknown outcome, which is not settled")
		return
	}
	c.violate(Violation{Rule: Busy, Key: s.key, Events: []Event{s.busy.answer}, Certain: c.opts.Skew == 0, Says: sayBusy(&s.busy.answer)})
}
