package checker

import (
	"cmp"
	"slices"
	"sort"
	"time"
)

// index is what one pass over a history derives from it. Clients, servers and
// calls are numbers; events are indices. An end that never came is the number
// of events, and its time that of the last event.
type index struct {
	meta   Meta
	events []Event
	last   time.Duration
	timed  bool // requests say when they set out
	terse  bool // nobody wants to know what a witness says

	clients []*client

	calls    []call      // by invoke
	acquires []int       // the calls of acquire and try, by end
	byID     []callID    // ascending
	odd      map[int]int // the calls whose numbers do not ascend, by number
	holds    []hold      // by begin
	writes   []write
	refusals []refusal

	servers    []*server
	nodes      []*node
	changes    []change
	ownerships []ownership
	departures []departure
	leftovers  []leftover
	unjudged   *Ambiguity // why servers don't tell whose the lock is, if they don't

	held intervals // holds, by begin: item i is holds[i]

	replies [][]int // where each client's replies are, once a verdict needs them

	// How things stand at the present event of the pass.
	deadlines deadlines
	holding   int           // how many clients hold
	freeSince int           // where the last hold ended, -1 if none did,
	freeFrom  time.Duration // and when
	newest    int           // the accepted write with the largest token, or -1

	// present is the latest State, and made the request that made its change, or -1.
	present, made int

	// names, places and groups find clients, servers and nodes once there are many.
	names  map[string]int
	places map[[2]string]int
	groups map[string]int
}

// few is the number of clients, servers or nodes up to which a list is searched faster than a map.
const few = 16

// client is one name that did something.
type client struct {
	id       int
	name     string
	holds    []int   // its holds, by begin
	acquires []int   // its calls of acquire and try, by invoke
	extends  []int   // its calls of extend, by invoke
	pauses   []pause // by time, disjoint
	replaced []int   // changes that put another's value in place of its own
	last     int     // its latest hold, or -1
	since    int     // the Return that began that hold or, inside it, acquired once more
	acquired int     // the Return of its latest acquire that succeeded, hold or not; never that of an extend
	token    int64   // its own: the latest that it got, until it is known to have given that up

	// How things stand at the present event of the pass.
	hold     int // or -1
	depth    int // how many acquires are not released yet
	until    time.Duration
	lapsed   bool // its hold ended by validity and was not released
	grant    time.Duration
	hasGrant bool
	open     int // its call under way, or -1
	paused   bool
	owned    int // on how many servers that count it owns the key
}

type pause struct {
	begin, end int
	from, to   time.Duration
}

// call is an operation from its Invoke to its Return, or to the crash of its
// client, or to the end.
type call struct {
	client     int
	op         Op
	invoke     int
	from       time.Duration
	end        int
	to         time.Duration
	result     Result // empty if there was no Return
	done       bool   // it returned, or its client crashed
	crashed    bool
	cancelled  bool          // its caller gave up,
	gaveUp     time.Duration // and when
	hold       int           // what its client held when it called, or -1
	grant      time.Duration
	hasGrant   bool  // grant is when the last acquire or extend before it returned OK
	idleAtExit bool  // its client was paused when the history ended
	token      int64 // its client's own when it called
}

func (o Op) takes() bool           { return o == Acquire || o == TryAcquire }
func (c *call) takes() bool        { return c.op.takes() }
func (c *call) failed() bool       { return c.result == Fail || c.result == Unknown }
func (f *index) endOf(c *call) int { return min(c.end, len(f.events)-1) }

// waited returns how long its caller waited: whoever has given up does not.
func (c *call) waited() timeRange {
	if c.cancelled {
		return timeRange{c.from, c.gaveUp}
	}
	return timeRange{c.from, c.to}
}

// write is a decision of the protected resource.
type write struct {
	at     int
	client int
	hold   int // its client's latest hold, or -1
	since  int // the Return that began it or, later, acquired once more
}

// callID is by which number a history calls a call.
type callID struct{ id, call int }

func newFacts(meta Meta) index {
	return index{meta: meta, freeSince: -1, newest: -1, present: -1, made: -1}
}

func derive(h History) *index {
	f := newFacts(h.Meta)
	f.follow(h.upToEnd())
	f.finish()
	return &f
}

// follow takes the events that are all of a history so far.
func (f *index) follow(events []Event) {
	f.events = events
	f.timed = slices.ContainsFunc(events, timed)
	for i := range events {
		f.next(i)
	}
}

// timed reports whether an event shows that requests of its history say when they set out.
func timed(e Event) bool { return e.Kind == Request && e.Sent > 0 }

// next takes the next event.
func (f *index) next(i int) {
	e := &f.events[i]
	f.lapse(i, e.Time)
	f.take(i, e)
	f.last = e.Time
}

// client returns the client of that name; the empty name is nobody.
func (f *index) client(name string) *client {
	if name == "" {
		return nil
	}
	at, known := find(&f.names, name, f.clients, func(c *client) string { return c.name })
	if known {
		return f.clients[at]
	}
	c := &client{id: len(f.clients), name: name, last: -1, hold: -1, open: -1}
	f.clients = append(f.clients, c)
	return c
}

// find returns the place in a list, which only grows, of the element of a name. It keeps the
// index of a long list up to date.
func find[K comparable, T any](index *map[K]int, name K, list []T, nameOf func(T) K) (at int, known bool) {
	if len(list) <= few {
		at = slices.IndexFunc(list, func(t T) bool { return nameOf(t) == name })
		return at, at >= 0
	}
	if *index == nil {
		*index = map[K]int{}
	}
	for at := len(*index); at < len(list); at++ {
		(*index)[nameOf(list[at])] = at
	}
	at, known = (*index)[name]
	return at, known
}

// AffectsVerdict reports whether an event has any bearing on verdicts: without the others a
// history has the same anomalies. Requests and replies have it by what stands before
// them, changes of keys and calls, so that as the last events of a history they have none.
func (e Event) AffectsVerdict() bool {
	switch e.Kind {
	case State, Invoke, Return, Lost, Write, Pause, Resume, Crash, Restart, Cancel, Request, Reply:
		return true
	case Fault:
		return e.Node != "" // see led
	}
	return false
}

func (f *index) take(i int, e *Event) {
	switch e.Kind {
	case State:
		f.changed(i, e)
		return
	case Fault:
		f.led(i, e)
		return
	}
	c := f.client(e.Client)
	if c == nil {
		return
	}
	switch e.Kind {
	case Invoke:
		f.invoked(c, i, e)
	case Return:
		f.returned(c, i, e)
	case Lost:
		f.disbelieve(c, i, e.Time, ByLoss, -1)
	case Write:
		f.wrote(c, i, e)
	case Pause:
		if !c.paused {
			c.paused = true
			c.pauses = append(c.pauses, pause{begin: i, from: e.Time})
		}
	case Resume:
		c.wake(i, e.Time)
	case Crash, Restart:
		f.died(c, i, e.Time)
	case Cancel:
		if c.open >= 0 && !f.calls[c.open].cancelled {
			f.calls[c.open].cancelled, f.calls[c.open].gaveUp = true, e.Time
		}
	}
}

func (c *client) wake(i int, t time.Duration) {
	if c.paused {
		c.paused = false
		p := &c.pauses[len(c.pauses)-1]
		p.end, p.to = i, t
	}
}

func (f *index) died(c *client, i int, t time.Duration) {
	f.disbelieve(c, i, t, ByCrash, -1)
	c.depth, c.lapsed, c.hasGrant, c.token = 0, false, false, 0
	c.wake(i, t)
	if c.open >= 0 {
		open := &f.calls[c.open]
		open.end, open.to, open.done, open.crashed = i, t, true, true
		c.open = -1
	}
}

func (f *index) invoked(c *client, i int, e *Event) int {
	at := len(f.calls)
	f.calls = append(f.calls, call{
		client: c.id, op: e.Op, invoke: i, from: e.Time,
		hold: c.hold, grant: c.grant, hasGrant: c.hasGrant, token: c.token,
	})
	f.callIs(e.Call, at)
	c.open = at
	switch e.Op {
	case Acquire, TryAcquire:
		c.acquires = append(c.acquires, at)
	case Extend:
		c.extends = append(c.extends, at)
	case Release:
		f.released(c, at, i, e.Time)
	}
	return at
}

func (f *index) returned(c *client, i int, e *Event) {
	at, known := f.findCall(e.Call)
	if !known {
		at = f.invoked(c, i, e)
	}
	ret := &f.calls[at]
	if ret.done || ret.client != c.id {
		return
	}
	ret.end, ret.to, ret.result, ret.done = i, e.Time, e.Result, true
	if c.open == at {
		c.open = -1
	}
	switch {
	case e.Result == OK && (ret.takes() || ret.op == Extend):
		f.granted(c, at, i, e)
	case ret.takes() && ret.failed():
		f.leave(at)
	case ret.op == Release && e.Result != Unknown && c.depth == 0:
		c.token = 0
	}
}

// findCall returns the latest call of a number.
func (f *index) findCall(id int) (call int, known bool) {
	if call, known = f.odd[id]; known {
		return call, true
	}
	n, known := slices.BinarySearchFunc(f.byID, id, func(c callID, id int) int { return cmp.Compare(c.id, id) })
	if !known {
		return 0, false
	}
	return f.byID[n].call, true
}

// callIs notes the number of a call. In a well-formed history it is larger than those before.
func (f *index) callIs(id, call int) {
	if n := len(f.byID); n == 0 || id > f.byID[n-1].id {
		f.byID = append(f.byID, callID{id, call})
		return
	}
	if f.odd == nil {
		f.odd = map[int]int{}
	}
	f.odd[id] = call
}

// finish closes what is open at the end of the history, and sorts.
func (f *index) finish() {
	end := len(f.events)
	for at := range f.calls {
		c := &f.calls[at]
		if !c.done {
			c.end, c.to = end, f.last
			c.idleAtExit = f.clients[c.client].paused
			if c.takes() {
				f.leave(at)
			}
		}
		if c.takes() {
			f.acquires = append(f.acquires, at)
		}
	}
	slices.SortStableFunc(f.acquires, func(a, b int) int { return f.calls[a].end - f.calls[b].end })
	for _, c := range f.clients {
		f.disbelieve(c, end, f.last, StillOpen, -1)
		c.wake(end, f.last)
	}
	for i := range f.ownerships {
		if f.ownerships[i].end < 0 {
			f.ownerships[i].end = end
		}
	}
	f.held = newIntervals(spans(f.holds))
	f.unjudged = f.doubtful()
}

func spans(holds []hold) []interval {
	items := make([]interval, len(holds))
	for i, b := range holds {
		items[i] = interval{b.client, b.begin, b.end}
	}
	return items
}

// acquiring returns the client's latest acquire or try that was called before
// event i and whether it was under way then; -1 if there was none.
func (f *index) acquiring(c *client, i int) (at int, underWay bool) {
	n := sort.Search(len(c.acquires), func(k int) bool { return f.calls[c.acquires[k]].invoke >= i })
	if n == 0 {
		return -1, false
	}
	at = c.acquires[n-1]
	return at, !f.calls[at].done || f.calls[at].end > i
}

// pausedDuring reports whether the caller stood still for a part of the call.
func (f *index) pausedDuring(c *call) bool {
	pauses := f.clients[c.client].pauses
	i := sort.Search(len(pauses), func(i int) bool { return pauses[i].end > c.invoke })
	return i < len(pauses) && pauses[i].begin < c.end
}

func (f *index) name(client int) string { return f.clients[client].name }
