package checker

import (
	"cmp"
	"slices"
	"sort"
	"time"
)

// index is the result of one pass over a history. Clients, servers and calls are identified by
// numbers, events by indices. An end that never came is the number of events, and its time is that
// of the last event.
type index struct {
	meta   Meta
	events []Event
	last   time.Duration
	timed  bool // requests have send times
	terse  bool // messages of witnesses are not needed

	clients []*client

	calls    []call      // by invocation
	acquires []int       // the calls of acquire and try, by end
	byID     []callID    // ascending
	odd      map[int]int // calls whose IDs do not ascend, by ID
	holds    []hold      // by begin
	writes   []write
	refusals []refusal

	servers    []*server
	nodes      []*node
	changes    []change
	ownerships []ownership
	departures []departure
	leftovers  []leftover
	unjudged   *Ambiguity // why the keys do not identify the lock's owner, or nil

	held intervals // holds, by begin: item i is holds[i]

	replies [][]int // each client's Reply events; built by answered on first use

	// The state at the current event of the pass.
	deadlines deadlines
	holding   int           // number of clients that hold
	freeSince int           // where the last hold ended, -1 if no hold has ended
	freeFrom  time.Duration // when the last hold ended
	newest    int           // the accepted write with the largest token, or -1
	keys      int           // servers that have a key of the lock
	keyed     int           // the event that last removed or replaced a key; 0 if none has

	keyedCall bool // a server had a key during some successful outermost acquire

	// present is the latest State event; made is the request that made its change, or -1.
	present, made int

	// names, places and groups look up clients, servers and nodes by name once there are more than
	// few.
	names  map[string]int
	places map[[2]string]int
	groups map[string]int
}

// few is the number of clients, servers or nodes up to which a linear search is faster than a map.
const few = 16

// client is the state of one named client.
type client struct {
	id       int
	name     string
	holds    []int   // its holds, by begin
	acquires []int   // its calls of acquire and try, by invocation
	extends  []int   // its calls of extend, by invocation
	pauses   []pause // by time, disjoint
	replaced []int   // changes that replaced its value with another owner's
	last     int     // its latest hold, or -1
	since    int     // the Return that began that hold or, for a nested acquire, the latest Return
	acquired int     // the Return of its latest successful acquire (not extend), with or without a hold
	token    int64   // its latest token, until it is known to have released the lock

	// The state at the current event of the pass.
	hold     int // or -1
	depth    int // number of acquires not yet released
	until    time.Duration
	lapsed   bool // its hold ended by validity and was not released
	grant    time.Duration
	hasGrant bool
	open     int // its call under way, or -1
	paused   bool
	owned    int  // number of counting servers on which it owns the key
	released bool // its latest call is a release that returned OK
}

type pause struct {
	begin, end int
	from, to   time.Duration
}

// call is an operation from its Invoke to its Return, to the crash of its client, or to the end of
// the history.
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
	cancelled  bool          // its caller gave up
	gaveUp     time.Duration // when its caller gave up
	hold       int           // the hold of its client at the invocation, or -1
	grant      time.Duration
	hasGrant   bool  // grant is when the last acquire or extend before this call returned OK
	idleAtExit bool  // its client was paused when the history ended
	token      int64 // the client's token at the invocation
	keyless    bool  // a successful outermost acquire during which no server had a key
	adopted    int   // the client that had released and owned the key by which the call succeeded, or -1
}

func (o Op) takes() bool           { return o == Acquire || o == TryAcquire }
func (c *call) takes() bool        { return c.op.takes() }
func (c *call) failed() bool       { return c.result == Fail || c.result == Unknown }
func (f *index) endOf(c *call) int { return min(c.end, len(f.events)-1) }

// waited returns the interval in which the caller waited; the interval ends when the caller gives
// up.
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

// callID maps the ID of a call in the history to its number in index.calls.
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

// follow processes the events, which are the whole history so far.
func (f *index) follow(events []Event) {
	f.events = events
	f.timed = slices.ContainsFunc(events, timed)
	for i := range events {
		f.next(i)
	}
}

// timed reports whether the event is a request with a send time.
func timed(e Event) bool { return e.Kind == Request && e.Sent > 0 }

// next processes event i.
func (f *index) next(i int) {
	e := &f.events[i]
	f.lapse(i, e.Time)
	f.take(i, e)
	f.last = e.Time
}

// client returns the client with the given name and adds it if it is new; nil if the name is empty.
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

// find returns the position of the element with the given name in a list that only grows. For lists
// longer than few, find keeps the map up to date and uses it.
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

// AffectsVerdict reports whether an event can influence a verdict: a history without the other
// events has the same anomalies. Requests and replies matter only through the changes of keys and
// the calls around them, so they have no influence as the last events of a history.
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
		client: c.id, op: e.Op, invoke: i, from: e.Time, adopted: -1,
		hold: c.hold, grant: c.grant, hasGrant: c.hasGrant, token: c.token,
	})
	f.callIs(e.Call, at)
	c.open = at
	c.released = false
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
	c.released = ret.op == Release && e.Result == OK
	switch {
	case e.Result == OK && (ret.takes() || ret.op == Extend):
		f.granted(c, at, i, e)
	case ret.takes() && ret.failed():
		f.leave(at)
	case ret.op == Release && e.Result != Unknown && c.depth == 0:
		c.token = 0
	}
}

// findCall returns the latest call with the given ID.
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

// callIs records the ID of a call. In a well-formed history, IDs ascend.
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

// finish closes calls, holds, pauses and ownerships that are open at the end of the history, and
// sorts acquires by end.
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

// acquiring returns the client's latest acquire or try that was invoked before event i, and whether
// it was under way then; -1 if the client had called none.
func (f *index) acquiring(c *client, i int) (at int, underWay bool) {
	n := sort.Search(len(c.acquires), func(k int) bool { return f.calls[c.acquires[k]].invoke >= i })
	if n == 0 {
		return -1, false
	}
	at = c.acquires[n-1]
	return at, !f.calls[at].done || f.calls[at].end > i
}

// pausedDuring reports whether the caller was paused during a part of the call.
func (f *index) pausedDuring(c *call) bool {
	pauses := f.clients[c.client].pauses
	i := sort.Search(len(pauses), func(i int) bool { return pauses[i].end > c.invoke })
	return i < len(pauses) && pauses[i].begin < c.end
}

func (f *index) name(client int) string { return f.clients[client].name }
