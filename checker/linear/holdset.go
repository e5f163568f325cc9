package linear

import (
	"cmp"
	"math"
	"slices"
	"time"
)

// patience is how many holds of a lock are kept at most while a release is under way
// that decides about one of them. It may never return.
const patience = 64

// A stamp is a place in a history: an event, or the end of a lease, which comes
// before all events of its time.
type stamp struct {
	time time.Duration
	seq  int64 // twice the event's place, one more just after it; 0 before all events of the time
}

// outset is before all events.
var outset = stamp{time: math.MinInt64}

func (p stamp) compare(q stamp) int {
	return cmp.Or(cmp.Compare(p.time, q.time), cmp.Compare(p.seq, q.seq))
}

func (p stamp) before(q stamp) bool { return p.time < q.time || p.time == q.time && p.seq < q.seq }

// stamp is that of the event that is judged now.
func (c *Checker) stamp() stamp { return stamp{c.now, 2 * c.seq} }

func (n *eventRef) stamp() stamp { return stamp{n.Time, 2 * n.seq} }

// A hold is what a client must have held of a lock: all the time between two
// stamps, the first included.
type hold struct {
	owner   *owner
	slot    *lockState
	proof   eventRef // the event that proves it
	from    stamp
	until   time.Duration // the end of its lease
	called  stamp         // the call of the release that ended it; no seq if none did
	permits int32

	tentative bool // that release is under way
	brief     bool // it was for one instant only, somewhere between the stamps
	late      bool // it was taken to be over, and was not
	apart     bool // its client holds the lock by another list of keys, too, so it is in no set
	listed    bool
	// rivals held when this was taken to be over, since that explains them; pins counts the holds that have this one for a rival.
	rivals []*hold
	pins   int
	parts  []*hold // of a semaphore: what was made a hold of its own since this became somebody's rival
}

// event returns the event that proves it.
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

// undecided says whether the end depends on a release under way.
func (h *hold) undecided() bool { return h.tentative && h.called.before(stamp{time: h.until}) }

// holds are those holds of a lock that may still be part of a set that is to be
// reported: the current one, if the lock works. Sets of holds that have an instant
// in common are found by a sweep over their ends, which stays behind what is undecided.
type holds struct {
	list          []*hold // by their beginnings
	ends          []*hold // the same, by their ends
	swept         stamp   // the last end that the sweep has passed
	reportedUntil stamp   // until here sets were reported before some hold was known
	crowded       bool    // of a semaphore: there may have been too many
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

// ending changes where h ends.
func (h *hold) ending(called stamp, tentative bool, until time.Duration) {
	l := &h.slot.holds
	if h.listed && len(l.ends) > 1 {
		l.ends = remove(l.ends, h, endOrder)
		defer func() { l.ends = insert(l.ends, h, endOrder) }()
	}
	h.called, h.tentative, h.until = called, tentative, until
}

// newHold returns a hold of o at s that event e proves, from e on. It is not listed yet.
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
		rivals = nil // they are shared
	}
	*h = hold{owner: o, slot: s, from: c.stamp(), until: o.until, permits: 1, rivals: rivals}
	c.note(&h.proof, e)
	o.held = append(o.held, h)
	return h
}

// peekHold returns the hold of one instant that a release proves if its acquire
// has no known outcome.
func (c *Checker) peekHold(o *owner, s *lockState, e *Event) *hold {
	h := &hold{owner: o, slot: s, from: o.call.stamp(), until: math.MaxInt64, called: c.stamp(), permits: 1, brief: true}
	c.note(&h.proof, e)
	return h
}

// suspend notes that the release under way ends so many permits of o's holds,
// unless it fails; of other locks all.
func (c *Checker) suspend(o *owner, permits int32) {
	for i := len(o.held) - 1; i >= 0 && permits > 0; i-- {
		h := o.held[i]
		if h.called.seq != 0 {
			continue
		}
		if h.permits > permits { // a part of it
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

// resume notes that the release under way has failed, so that what it was to end went on.
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

// confirm notes that the release under way has not failed: what it ended is over.
func (c *Checker) confirm(o *owner) {
	for _, h := range o.held {
		if h.tentative {
			h.tentative = false
			c.advance(h.slot)
		}
	}
}

// forget notes that all that o held is over and explained.
func (c *Checker) forget(o *owner) {
	for _, h := range o.held {
		c.over(h)
	}
	o.spare, o.held, o.lost = append(o.spare, o.held...), o.held[:0], false
}

// over notes that h is over now, if it was not before.
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

// lose notes that what o may hold is taken to be over, in favour of rival.
func (c *Checker) lose(o *owner, rival *hold) {
	o.lost = true
	for _, h := range o.held {
		if h.slot == rival.slot {
			rival.pins++
			h.rivals = append(h.rivals, rival)
		}
	}
}

// prolonged returns the end of a hold that the event judged now has prolonged, for ending. Where that
// told nothing of its end it may be over at any time from now on.
func (c *Checker) prolonged(until time.Duration) (called stamp, tentative bool, end time.Duration) {
	if until <= c.now {
		return c.stamp(), false, math.MaxInt64
	}
	return stamp{}, false, until
}

// heldOn notes that so many permits that o was taken to have lost were its own
// until its release was called, or with until go on as long as that; of other locks
// all. It says whether there are such.
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

// relist takes back that h was over then. Its rivals overlap it, even if the
// sweep has passed them, and then it goes back.
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

// reportOverlaps reports that a release proves that o held when others did all the time. It says
// whether there are such.
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

// mayEndSoon says whether a hold that overlaps one with this end, and goes on, may yet be said to end so soon after it that a
// skew explains both.
func (c *Checker) mayEndSoon(end stamp) bool {
	return c.opts.Skew > 0 && c.now-end.time <= 2*c.opts.Skew
}

// advance sweeps as far as is decided, and reports what is complete.
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

// notify tells of a hold who wants to know of all.
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

// conclude sweeps to the end of the history, and leaves s as it was.
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

// around returns the holds that last all the time in which h was for an instant, and h.
func (l *holds) around(h *hold) []*hold {
	var set []*hold
	for _, o := range l.list {
		if !o.brief && !h.from.before(o.from) && !o.end().before(h.end()) {
			set = append(set, o)
		}
	}
	return append(set, h)
}

// pass reports the set of those that held just before h ended, unless it is part
// of one before.
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

// now returns the holds that go on at a stamp.
func (l *holds) now(at stamp) []*hold {
	var set []*hold
	for _, h := range l.list {
		if at.before(h.end()) {
			set = append(set, h)
		}
	}
	return set
}
