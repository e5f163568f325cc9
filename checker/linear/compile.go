package linear

import (
	"container/heap"
	"math"
	"slices"
	"strings"
	"time"
)

// compiled is the history of one lock, or of all locks of a Multi, in the form for the search: the
// operations, each with the window in which it takes effect, and the points at which a result is
// returned. The meanings of outcomes, crashes and leases are decided once, in compile.
type compiled struct {
	actors   []actor
	ops      []operation
	points   []point
	at       []int32 // for each point, its event
	reserves []reserve
	nobodies map[string]int32
	of       map[string][]int32 // the actors of a client
}

// An actor is one client at one lock, or at one list of a Multi. A nobody actor gets the holds that
// clients had when they crashed.
type actor struct {
	client string
	keys   []string // for a Multi, sorted
	nobody bool

	orphans  []int32 // the actors that get its holds when it crashes
	crashes  []int32 // points
	used     []int64 // tokens of its accepted uses, sorted
	acquires []int32 // its reserve acquires
	releases []int32 // its reserve releases, by end; at most one is open at a time
}

// An operation takes effect between its invocation and its return if its outcome is certain, and at
// most once if it is in a reserve. A failed operation has no effect.
type operation struct {
	actor   int32
	op      Op
	outcome outcome
	reading bool
	permits int32
	token   int64
	reserve int32 // its reserve, or -1
	ret     int32 // the point of its return; without a return, the end
	// ripe is the point from which its grant may be over.
	ripe int32
}

type outcome uint8

const (
	failed outcome = iota
	unsure
	certain
)

// A reserve is a set of equivalent operations of unknown outcome of one actor. Each may take effect
// once, after its invocation and before end.
type reserve struct {
	calls []int32 // points
	end   int32   // a point, or farAway
	like  int32   // one of the operations
	grant int32   // its grant: atOnce, or the operation if its hold ends at a point
	yet   bool    // it may still return
}

// open returns the number of operations invoked before point pos; 0 at or after end.
func (s *reserve) open(pos int32) int32 {
	if pos >= s.end {
		return 0
	}
	n, _ := slices.BinarySearch(s.calls, pos)
	return int32(n)
}

// A point is a position in the history at which states are judged or changed.
type point struct {
	kind pointKind
	op   int32 // the actor for a crash and for a lease that ends by the server's clock
	cut  int32 // for a crash, the operation that was under way, or -1
}

type pointKind uint8

const (
	calledPoint pointKind = iota
	returnedPoint
	closingPoint // the last moment of an actor's reserve releases; op is the reserve
	endingPoint  // the last moment of the grant of an operation
	crashPoint
	expiredPoint
	usePoint
)

const farAway = math.MaxInt32

// A compiler turns events into operations and points.
type compiler struct {
	*compiled
	traits
	spec    Spec
	strict  bool
	numbers numbers
	under   []int32         // by actor: the operation under way, or -1
	holds   []int32         // by actor: the latest operation with a returned grant, or -1
	until   []time.Duration // by operation: the end of its grant in ends
	ends    ends
	event   int32
	loose   []bool  // by operation: its grant may outlast its end
	who     []int32 // by event: the number of its client at its lock or list
	acting  []int32 // by that number: the actor, or -1
}

// compile compiles events that a Checker has accepted, in order.
func compile(spec Spec, strict bool, events []Event) *compiled {
	c := &compiler{compiled: &compiled{nobodies: map[string]int32{}, of: map[string][]int32{}}, traits: spec.traits(), spec: spec, strict: strict,
		numbers: numbers{all: map[place]*numbered{}, of: map[string][]int32{}}}
	returns := c.returns(events)
	n := len(events)
	c.points, c.at = make([]point, 0, n+n/8), make([]int32, 0, n+n/8)
	c.ops, c.until, c.loose = make([]operation, 0, n/2+1), make([]time.Duration, 0, n/2+1), make([]bool, 0, n/2+1)
	for i := range events {
		c.event = int32(i)
		c.add(&events[i], returns[i], events)
	}
	for i := range c.ops {
		if c.ops[i].ret < 0 {
			c.ops[i].ret = farAway
		}
	}
	for i := range c.actors {
		used := &c.actors[i].used
		slices.Sort(*used)
		*used = slices.Compact(*used)
	}
	return c.compiled
}

// returns returns, for each invocation, the index of its return; -1 if it will never return, and -2
// if it may still return.
func (c *compiler) returns(events []Event) []int32 {
	of := make([]int32, len(events)) // -2 for an operation that has not returned yet
	c.who = make([]int32, len(events))
	var called []int32 // by number: the call under way, or -1
	for i := range events {
		e := &events[i]
		of[i] = -1
		if e.Phase == Crash {
			for _, w := range c.numbers.of[e.Client] {
				if called[w] >= 0 {
					of[called[w]], called[w] = -1, -1
				}
			}
			continue
		}
		w := c.numbers.index(e.Client, e.Key)
		if c.who[i] = w; int(w) == len(called) {
			called = append(called, -1)
		}
		switch {
		case e.Op == Use, e.Phase == Expired:
		case e.Phase == Invoke:
			called[w], of[i] = int32(i), -2
		case called[w] >= 0:
			of[called[w]], called[w] = int32(i), -1
		}
	}
	c.acting = make([]int32, len(called))
	for i := range c.acting {
		c.acting[i] = -1
	}
	return of
}

// numbers assigns numbers to pairs of a client and a lock.
type numbers struct {
	all    map[place]*numbered
	recent lookupCache[numbered]
	of     map[string][]int32 // by client
}

type numbered struct {
	place
	number int32
}

func (n *numbers) index(client, key string) int32 {
	at := n.recent.place(client, key)
	if x := *at; x != nil && x.client == client && x.key == key {
		return x.number
	}
	p := place{client, key}
	x := n.all[p]
	if x == nil {
		x = &numbered{p, int32(len(n.all))}
		n.all[p] = x
		n.of[client] = append(n.of[client], x.number)
	}
	*at = x
	return x.number
}

// actor returns the actor of the current event's client.
func (c *compiler) actor(client, key string) int32 {
	p := c.acting[c.who[c.event]]
	if p >= 0 {
		return p
	}
	p = int32(len(c.actors))
	c.acting[c.who[c.event]] = p
	c.actors = append(c.actors, actor{client: client})
	c.under, c.holds = append(c.under, -1), append(c.holds, -1)
	if c.tied {
		c.actors[p].keys = strings.Fields(key)
	}
	c.of[client] = append(c.of[client], p)
	// After a crash, its holds go to one nobody for each key.
	lists := []string{key}
	if c.tied {
		lists = c.actors[p].keys
	}
	for _, key := range lists {
		c.actors[p].orphans = append(c.actors[p].orphans, c.nobody(key))
	}
	return p
}

func (c *compiler) nobody(key string) int32 {
	p, ok := c.nobodies[key]
	if !ok {
		p = int32(len(c.actors))
		c.nobodies[key] = p
		c.actors = append(c.actors, actor{nobody: true})
		if c.tied {
			c.actors[p].keys = []string{key}
		}
		c.under, c.holds = append(c.under, -1), append(c.holds, -1)
	}
	return p
}

func (c *compiler) point(kind pointKind, op int32) {
	c.points = append(c.points, point{kind: kind, op: op, cut: -1})
	c.at = append(c.at, c.event)
}

func (c *compiler) add(e *Event, ret int32, events []Event) {
	c.pass(e.Time)
	if e.Phase == Crash {
		for _, p := range c.of[e.Client] {
			c.point(crashPoint, p)
			c.points[len(c.points)-1].cut = c.under[p]
			c.actors[p].crashes = append(c.actors[p].crashes, int32(len(c.points)-1))
			c.under[p], c.holds[p] = -1, -1
		}
		return
	}
	p := c.actor(e.Client, e.Key)
	if e.Phase == Expired {
		c.point(expiredPoint, p)
		return
	}
	if e.Op == Use {
		if e.Phase == ReturnOK {
			c.point(usePoint, c.operation(operation{actor: p, op: Use, token: e.Token, reserve: -1}))
			c.actors[p].used = append(c.actors[p].used, e.Token)
		}
		return
	}
	if e.Phase != Invoke {
		c.returned(p, e)
		return
	}
	o := operation{actor: p, op: e.Op, reading: e.Shared, permits: 1, reserve: -1, ret: -1}
	if c.counted {
		o.permits = int32(max(1, min(e.Permits, math.MaxInt32)))
	}
	var back *Event
	if ret >= 0 {
		back = &events[ret]
	}
	stale := back != nil && back.Phase == ReturnOK && e.Op != Release && c.spec.over(back)
	switch {
	case back == nil || back.Phase == ReturnUnknown:
		o.outcome = unsure
	case back.Phase == ReturnFail:
		o.outcome = failed
	case stale && !(c.lax && e.Op != Extend):
		o.outcome = unsure
	default:
		o.outcome = certain
		o.token = back.Token
	}
	at := c.operation(o)
	c.under[p] = at
	if o.outcome == certain && e.Op != Release {
		c.closing(p)
	}
	if e.Op == Extend && o.outcome == unsure {
		if g := c.holds[p]; g >= 0 && e.Time < c.until[g] {
			c.loose[g] = true
		}
	}
	c.point(calledPoint, at)
	if o.outcome == unsure && e.Op != Extend {
		c.reserve(at, stale && c.spec.expiry == Known, ret == -2)
	}
}

func (c *compiler) operation(o operation) int32 {
	o.ripe = farAway
	c.ops, c.until, c.loose = append(c.ops, o), append(c.until, 0), append(c.loose, false)
	return int32(len(c.ops) - 1)
}

// closing ends the actor's open reserve releases: each takes effect before this point or never.
func (c *compiler) closing(p int32) {
	pt := &c.actors[p]
	first := len(c.points)
	for i := len(pt.releases) - 1; i >= 0 && c.reserves[pt.releases[i]].end == farAway; i-- {
		c.point(closingPoint, pt.releases[i])
	}
	for _, at := range c.points[first:] {
		c.reserves[at.op].end = int32(len(c.points))
	}
}

// reserve records an operation of unknown outcome. If ends is true, its hold is over when it
// returns; if open is true, it may still return.
func (c *compiler) reserve(at int32, ends, open bool) {
	o := &c.ops[at]
	pt := &c.actors[o.actor]
	list := &pt.acquires
	if o.op == Release {
		list = &pt.releases
	}
	call := int32(len(c.points)) - 1
	if !ends && !open {
		for _, s := range *list {
			sp := &c.reserves[s]
			like := &c.ops[sp.like]
			alike := len(pt.crashes) == 0 || pt.crashes[len(pt.crashes)-1] < sp.calls[0] // else a crash separates them
			if alike && sp.end == farAway && sp.grant == atOnce && !sp.yet && like.permits == o.permits && like.reading == o.reading {
				sp.calls = append(sp.calls, call)
				o.reserve = s
				return
			}
		}
	}
	o.reserve = int32(len(c.reserves))
	s := reserve{calls: []int32{call}, end: farAway, like: at, grant: atOnce, yet: open}
	if ends {
		s.grant, o.ripe = at, 0
	}
	c.reserves = append(c.reserves, s)
	*list = append(*list, o.reserve)
}

// returned records a return, and when its grant may be over.
func (c *compiler) returned(p int32, e *Event) {
	at := c.under[p]
	o := &c.ops[at]
	c.under[p] = -1
	o.ret = int32(len(c.points))
	if o.reserve >= 0 && c.reserves[o.reserve].grant == at {
		c.point(endingPoint, at)
		c.reserves[o.reserve].end = int32(len(c.points))
		o.ret = int32(len(c.points))
	}
	c.point(returnedPoint, at)
	if o.outcome != certain || o.op == Release {
		return
	}
	if c.leases {
		c.holds[p] = at
	}
	switch c.spec.term(e) {
	case onceTold:
		o.ripe = int32(len(c.points))
	case onceBegun:
		o.ripe = 0
	case whenSaid:
		c.until[at] = e.Lease
		heap.Push(&c.ends, end{e.Lease, at})
	}
}

// pass ends the leases that are over at time now.
func (c *compiler) pass(now time.Duration) {
	for len(c.ends) > 0 && c.ends[0].at <= now {
		g := heap.Pop(&c.ends).(end).grant
		if c.spec.expiry == Known && !c.loose[g] {
			c.point(endingPoint, g)
		}
		c.ops[g].ripe = int32(len(c.points))
	}
}

// ends is a heap of the ends of leases, the earliest first.
type ends []end

type end struct {
	at    time.Duration
	grant int32
}

func (e ends) Len() int { return len(e) }
func (e ends) Less(i, j int) bool {
	return e[i].at < e[j].at || e[i].at == e[j].at && e[i].grant < e[j].grant
}
func (e ends) Swap(i, j int) { e[i], e[j] = e[j], e[i] }
func (e *ends) Push(x any)   { *e = append(*e, x.(end)) }
func (e *ends) Pop() any {
	last := (*e)[len(*e)-1]
	*e = (*e)[:len(*e)-1]
	return last
}
