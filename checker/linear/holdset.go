package linear

import (
	"cmp"
	"math"
	"slices"
	"time"
)

// patience is the maximum number of holds of a lock that are kept while a release under way decides
// about one of them. The release may never return.
const patience = 64

// A stamp is a position in a history: an event, or the end of a lease, which comes before all
// events of its time.
type stamp struct {
	time time.Duration
	seq  int64 // twice the event's position, plus 1 for just after it; 0 before all events
}

// outset is before all events.
var outset = stamp{time: math.MinInt64}

func (p stamp) compare(q stamp) int {
	return cmp.Or(cmp.Compare(p.time, q.time), cmp.Compare(p.seq, q.seq))
}

func (p stamp) before(q stamp) bool { return p.time < q.time || p.time == q.time && p.seq < q.seq }

// stamp returns the stamp of the current event.
func (c *Checker) stamp() stamp { return stamp{c.now, 2 * c.seq} }

func (n *eventRef) stamp() stamp { return stamp{n.Time, 2 * n.seq} }

// A hold is an interval in which a client must have held a lock: between two stamps, including the
// first.
type hold struct {
	owner   *owner
	slot    *lockState
	proof   eventRef // the event that proves the hold
	from    stamp
	until   time.Duration // the end of its lease
	doubted time.Duration // if doubtful: when an extend without a known lease returned, from which on it may have been over
	called  stamp         // the invocation of the release that ended it; seq is 0 without one
	permits int32

	doubtful  bool // see doubted
	tentative bool // that release is under way
	brief     bool // it lasted an instant, somewhere between the stamps
	late      bool // it was assumed to be over, but was not
	apart     bool // its client also holds the lock by another list of keys, so it is in no set
	listed    bool
	// rivals are the holds in favour of which this hold was assumed to be over. pins is the number
	// of holds that have this one as a rival.
	rivals []*hold
	pins   int
	parts  []*hold // for a semaphore: the parts split off since this became a rival
}

// event returns the event that proves the hold.
func (h *hold) event() Event { return h.owner.event(&h.proof) }

func (h *hold) end() stamp {
	end := stamp{time: h.until}
	if h.called.seq != 0 && h.called.before(end) {
		end = h.called
	}
	if !h.from.before(end) { // it includes its beginning
		end = stamp{h.from.time, h.from.seq + 1}
	}
	return end
}

// undecided reports whether the end depends on a release under way.
func (h *hold) undecided() bool { return h.tentative && h.called.before(stamp{time: h.until}) }

// holds are the holds of a lock that may still be part of a set to be reported; for a correct lock,
// only the current hold. A sweep over the ends of the holds finds sets of holds that overlap. The
// sweep stops before an undecided end.
type holds struct {
	list          []*hold // by beginning
	ends          []*hold // the same holds, by end
	swept         stamp   // the last end that the sweep has passed
	reportedUntil stamp   // sets up to here were reported before a later discovered hold
	crowded       bool    // there may have been too many permits held
}

func fromOrder(h, o *hold) int { return h.from.compare(o.from) }
func endOrder(h, o *hold) int  { return cmp.Or(h.end().compare(o.end()), fromOrder(h, o)) }

func insert(list []*hold, h *hold, order func(h, o *hold) int) []*hold {
	i := len(list)
	if i > 0 && order(list[i-1], h) > 0 {
		i, _ = slices.BinarySearchFunc(list, h, order)
	}
	return slices.Insert(list, i, h)
}

func remove(list []*hold, h *hold, order func(h, o *hold) int) []*hold {
	i := 0
	if len(list) > 1 && list[0] != h {
		i, _ = slices.BinarySearchFunc(list, h, order)
		for list[i] != h { // parts of one hold have the same beginning
			i++
		}
	}
	return slices.Delete(list, i, i+1)
}

func (l *holds) add(h *hold) {
	if !h.listed && !h.apart {
		h.listed = true
		l.list, l.ends = insert(l.list, h, fromOrder), insert(l.ends, h, endOrder)
	}
}

func (l *holds) addWhole(h *hold) {
	l.add(h)
	for _, part := range h.parts {
		l.addWhole(part)
	}
}

func (l *holds) remove(h *hold) {
	l.list, l.ends = remove(l.list, h, fromOrder), remove(l.ends, h, endOrder)
}

// ending sets the end of h, and keeps the order of the list of ends.
func (h *hold) ending(called stamp, tentative bool, until time.Duration) {
	l := &h.slot.holds
	if h.listed && len(l.ends) > 1 {
		l.ends = remove(l.ends, h, endOrder)
		defer func() { l.ends = insert(l.ends, h, endOrder) }()
	}
	h.called, h.tentative, h.until = called, tentative, until
}

// newHold returns a hold of o at s from event e on, which proves it. The hold is not listed yet.
func (c *Checker) newHold(o *owner, s *lockState, e *Event) *hold {
	var h *hold
	if n := len(o.spare); n > 0 {
		h, o.spare = o.spare[n-1], o.spare[:n-1]
	}
	if h == nil || h.listed || h.pins > 0 {
		h = &hold{}
	}
	rivals := h.rivals[:0]
	if c.counted {
		rivals = nil // rivals are shared between holds
	}
	*h = hold{owner: o, slot: s, from: c.stamp(), until: o.until, permits: 1, rivals: rivals}
	c.note(&h.proof, e)
	o.held = append(o.held, h)
	return h
}

// peekHold returns the hold of one instant that a release proves if its acquire has an unknown
// outcome.
func (c *Checker) peekHold(o *owner, s *lockState, e *Event) *hold {
	h := &hold{owner: o, slot: s, from: o.call.stamp(), until: math.MaxInt64, called: c.stamp(), permits: 1, brief: true}
	c.note(&h.proof, e)
	return h
}

// suspend records that the release under way ends the given number of permits of o's holds unless
// it fails; for other locks than semaphores, it ends all holds.
func (c *Checker) suspend(o *owner, permits int32) {
	for i := len(o.held) - 1; i >= 0 && permits > 0; i-- {
		h := o.held[i]
		if h.called.seq != 0 {
			continue
		}
		if h.permits > permits { // split off a part
			part := *h
			part.listed, part.pins, part.rivals, part.parts, part.permits = false, h.pins, nil, nil, permits
			h.permits -= permits
			if h.pins > 0 {
				h.parts = append(h.parts, &part)
			}
			h = &part
			o.held = append(o.held, h)
			h.slot.holds.add(h)
		}
		h.ending(o.call.stamp(), true, h.until)
		if c.counted {
			permits -= h.permits
		}
	}
}

// resume records that the release under way has failed: the holds that it was to end went on.
func (c *Checker) resume(o *owner) {
	for _, h := range o.held {
		if h.tentative {
			was := h.end()
			h.ending(stamp{}, false, h.until)
			c.relist(h, was)
		}
	}
	o.lost = false
}

// confirm records that the release under way has not failed: the holds that it ended are over.
func (c *Checker) confirm(o *owner) {
	for _, h := range o.held {
		if h.tentative {
			h.tentative = false
			c.advance(h.slot)
		}
	}
}

// forget records that all holds of o are over and explained.
func (c *Checker) forget(o *owner) {
	for _, h := range o.held {
		c.over(h)
	}
	o.spare, o.held, o.lost = append(o.spare, o.held...), o.held[:0], false
}

// over ends h now, unless it has ended before.
func (c *Checker) over(h *hold) {
	if h.called.seq == 0 {
		h.ending(c.stamp(), false, h.until)
	}
	h.tentative = false
	c.unpin(h)
	c.advance(h.slot)
}

func (c *Checker) unpin(h *hold) {
	if c.counted {
		h.rivals = nil
		return
	}
	for _, r := range h.rivals {
		r.pins--
	}
	h.rivals = h.rivals[:0]
}

// lose records that the holds of o are assumed to be over, in favour of rival.
func (c *Checker) lose(o *owner, rival *hold) {
	o.lost = true
	for _, h := range o.held {
		if h.slot == rival.slot {
			rival.pins++
			h.rivals = append(h.rivals, rival)
		}
	}
}

// prolonged returns the arguments of ending for a hold that the current event has prolonged. If the
// event gave no end, the hold may be over at any time from now on.
func (c *Checker) prolonged(until time.Duration) (called stamp, tentative bool, end time.Duration) {
	if until <= c.now {
		return c.stamp(), false, math.MaxInt64
	}
	return stamp{}, false, until
}

// heldOn revises the assumption that o has lost the given number of permits: they were held until
// its release was invoked or, for an extend, until the time until. For other locks than semaphores,
// all holds are revised. The result reports whether there were such holds.
func (c *Checker) heldOn(o *owner, permits int32, until time.Duration) bool {
	if !o.lost {
		return false
	}
	called := o.call.stamp()
	if o.op != Release {
		called, _, until = c.prolonged(until)
	}
	for i := len(o.held) - 1; i >= 0 && permits > 0; i-- {
		if h := o.held[i]; h.called.seq != 0 && !h.tentative || !c.counted {
			was := h.end()
			h.ending(called, false, until)
			c.relist(h, was)
			if c.counted {
				permits -= h.permits
			}
		}
	}
	o.lost = false
	return true
}

// relist revises the assumption that h was over at was. Its rivals overlap it; if the sweep has
// passed them, it goes back.
func (c *Checker) relist(h *hold, was stamp) {
	l := &h.slot.holds
	for _, r := range h.rivals {
		if r.owner.client == h.owner.client && c.tied {
			e := r.event()
			c.reportReacquire(h, h.slot, &e)
			c.unpin(h)
			return
		}
		l.addWhole(r)
	}
	c.unpin(h)
	l.add(h)
	l.crowded, h.late = true, true
	if was.before(l.swept) {
		if l.reportedUntil.before(l.swept) {
			l.reportedUntil = l.swept
		}
		l.swept = was
	}
	c.advance(h.slot)
}

// reportOverlaps reports the violation that a release proves: o held the lock at an instant at
// which other clients held it all the time. The result reports whether there are such clients.
func (c *Checker) reportOverlaps(o *owner, s *lockState, e *Event) bool {
	h := c.peekHold(o, s, e)
	if !c.tooMany(s.holds.around(h)) {
		return false
	}
	s.holds.crowded = true
	s.holds.add(h)
	c.advance(s)
	return true
}

// mayEndSoon reports whether a hold that overlaps this end may still end so soon after it that
// clock errors explain the overlap.
func (c *Checker) mayEndSoon(end stamp) bool {
	return c.opts.Skew > 0 && c.now-end.time <= 2*c.opts.Skew
}

// advance sweeps as far as ends are decided, and reports complete sets.
func (c *Checker) advance(s *lockState) {
	l := &s.holds
	for len(l.ends) > 0 {
		h := l.ends[0]
		end := h.end()
		if c.now < end.time || end.time == c.now && 2*c.seq+1 < end.seq || (h.undecided() || c.mayEndSoon(end)) && len(l.list) <= patience {
			return
		}
		if len(l.list) > 1 || l.crowded {
			c.pass(s, l, h, end)
		}
		l.remove(h)
		h.listed = false
		c.notify(h, false)
	}
	l.crowded = false
}

// notify calls Options.Held with a hold.
func (c *Checker) notify(h *hold, open bool) {
	if c.opts.Held == nil {
		return
	}
	end := h.end().time
	if open {
		end = c.now
	}
	c.opts.Held(Held{Client: h.owner.client.name, Key: h.slot.key, Event: h.event(), From: h.from.time, To: end, Open: open, Brief: h.brief, Permits: int(h.permits)})
}

// conclude sweeps to the end of the history without changing s.
func (c *Checker) conclude(s *lockState, now stamp) {
	l := s.holds
	l.list, l.ends = slices.Clone(l.list), slices.Clone(l.ends)
	for len(l.ends) > 0 {
		h := l.ends[0]
		end := h.end()
		if now.before(end) {
			end = now
		}
		c.pass(s, &l, h, end)
		l.remove(h)
	}
}

// around returns h and the holds that last for all the time in which h had its instant.
func (l *holds) around(h *hold) []*hold {
	var set []*hold
	for _, o := range l.list {
		if !o.brief && !h.from.before(o.from) && !o.end().before(h.end()) {
			set = append(set, o)
		}
	}
	return append(set, h)
}

// pass reports the set of holds just before the end of h, unless it is part of an earlier set.
func (c *Checker) pass(s *lockState, l *holds, h *hold, end stamp) {
	if h.brief {
		c.report(s, l, l.around(h), end)
		return
	}
	swept := l.swept
	l.swept = end
	n := len(l.list)
	for n > 0 && (!l.list[n-1].from.before(end) || l.list[n-1].brief) {
		n--
	}
	if n == 0 || !swept.before(l.list[n-1].from) || c.counted && !l.crowded {
		return
	}
	set := l.list[:n]
	if slices.ContainsFunc(set, func(h *hold) bool { return h.brief }) {
		set = slices.DeleteFunc(slices.Clone(set), func(h *hold) bool { return h.brief })
	}
	c.report(s, l, set, end)
}

// now returns the holds that continue after a stamp.
func (l *holds) now(at stamp) []*hold {
	var set []*hold
	for _, h := range l.list {
		if at.before(h.end()) {
			set = append(set, h)
		}
	}
	return set
}
