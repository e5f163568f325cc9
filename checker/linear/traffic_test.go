package linear

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"
)

// A traffic is what clients that always want a lock make of it: the histories that are measured.
type traffic struct {
	spec    Spec
	ops     int
	tries   bool // half of the acquires are tries, and told busy
	never   int  // so many acquires never return, spread evenly
	percent int  // of a hundred outcomes so many are unknown; half of them took effect
	wrong   bool // at nine tenths the lock does what it must not
	several bool // of a semaphore: operations are about up to three permits
	seed    uint64
}

// A trafficClient is one of those who use it.
type trafficClient struct {
	name   string
	under  Event // the call that has not returned; no Op if there is none
	held   []Event
	unsure *Event // an acquire or release of unknown outcome, which it releases to be sure
}

// A crossing is a lock that works, and those who use it.
type crossing struct {
	traffic
	r       *rand.Rand
	clients []*trafficClient
	out     map[string]int // permits, or how often somebody holds, by client and list of keys
	events  []Event
	begun   int
	token   int64
	stuck   int // calls that never return
}

// history plays the traffic.
func (t traffic) history() []Event {
	c := &crossing{traffic: t, r: rand.New(rand.NewPCG(t.seed, 4)), out: map[string]int{}}
	n := 5
	if t.spec.kind == semaphoreKind && t.spec.limit > 3 {
		n = 2 * t.spec.limit
	}
	for i := range n {
		c.clients = append(c.clients, &trafficClient{name: string('A' + rune(i))})
	}
	for wrong := t.wrong; c.begun < t.ops || wrong; {
		if c.stuck < t.never && c.begun*(t.never+1) > t.ops*(c.stuck+1) {
			c.tell(Event{Client: fmt.Sprint("U", c.stuck), Op: Acquire, Phase: Invoke, Key: c.list()})
			c.begun, c.stuck = c.begun+1, c.stuck+1
		}
		if wrong && c.begun >= t.ops*9/10 && c.lie() {
			wrong = false
		}
		if t.spec.kind == servedKind && c.r.IntN(50) == 0 {
			c.expire()
		}
		c.step(one(c.r, c.clients...))
	}
	return c.events
}

func (c *crossing) tell(e Event) {
	e.Time = time.Duration(len(c.events))
	c.events = append(c.events, e)
}

func (c *crossing) list() string {
	if c.spec.kind == multiKind {
		return one(c.r, "x", "y", "z", "x y", "y z")
	}
	return ""
}

func (c *crossing) step(cl *trafficClient) {
	if cl.under.Op != 0 {
		c.back(cl)
		return
	}
	e := Event{Client: cl.name, Phase: Invoke, Op: Acquire}
	again := (c.spec.kind == reentrantKind || c.spec.kind == readWriteKind) && len(cl.held) == 1 && cl.unsure == nil && c.r.IntN(4) == 0
	switch {
	case cl.unsure != nil:
		e.Op, e.Key, e.Shared, e.Permits = Release, cl.unsure.Key, cl.unsure.Shared, cl.unsure.Permits
	case again:
		e.Shared = cl.held[0].Shared
	case len(cl.held) > 0:
		last := cl.held[len(cl.held)-1]
		e.Op, e.Key, e.Shared, e.Permits = Release, last.Key, last.Shared, last.Permits
		if (c.spec.kind == leaseKind || c.spec.kind == fencedKind || c.spec.kind == servedKind) && c.r.IntN(4) == 0 {
			e.Op = Extend
		}
		if (c.spec.kind == fencedKind || c.spec.kind == tokensKind) && last.Token != 0 && c.r.IntN(3) == 0 {
			c.tell(Event{Client: cl.name, Phase: ReturnOK, Op: Use, Token: last.Token})
			return
		}
	default:
		if c.tries && c.r.IntN(2) == 0 {
			e.Op = TryAcquire
		}
		e.Key = c.list()
		e.Shared = c.spec.kind == readWriteKind && c.r.IntN(2) == 0
		if c.several {
			e.Permits = between(c.r, 1, min(3, c.spec.limit))
		}
	}
	c.begun++
	cl.under = e
	c.tell(e)
}

// expire lets the lease of whoever holds end.
func (c *crossing) expire() {
	for _, cl := range c.clients {
		e := Event{Client: cl.name, Phase: Expired}
		if at := placeOf(&e); c.out[at] > 0 {
			delete(c.out, at)
			c.tell(e)
		}
	}
}

// placeOf is where a client's holds are counted.
func placeOf(e *Event) string {
	mode := "w"
	if e.Shared {
		mode = "r"
	}
	return e.Client + mode + e.Key
}

func (c *crossing) room(e *Event) bool {
	switch c.spec.kind {
	case semaphoreKind:
		sum := max(1, e.Permits)
		for _, n := range c.out {
			sum += n
		}
		return sum <= c.spec.limit
	case multiKind:
		for at := range c.out {
			for _, k := range strings.Fields(e.Key) {
				if strings.Contains(at[2:], k) {
					return false
				}
			}
		}
		return true
	case readWriteKind:
		for at := range c.out {
			mine := at[:1] == e.Client && at[1] == 'w'
			if !mine && !(e.Shared && at[1] == 'r') {
				return false
			}
		}
		return true
	case reentrantKind:
		return len(c.out) == 0 || c.out[placeOf(e)] > 0
	}
	return len(c.out) == 0
}

// back lets a call return, unless it has to wait.
func (c *crossing) back(cl *trafficClient) {
	e := cl.under
	lost := c.percent > 0 && c.r.IntN(100) < c.percent && e.Op != Extend
	took := !lost || c.r.IntN(2) == 0
	e.Phase = ReturnOK
	at := placeOf(&e)
	switch e.Op {
	case Acquire, TryAcquire:
		switch {
		case !took:
		case c.room(&e):
			c.out[at] += max(1, e.Permits)
		case e.Op == TryAcquire:
			e.Phase, lost = ReturnFail, false
		default:
			return // it waits
		}
		if took && e.Phase == ReturnOK && (c.spec.kind == fencedKind || c.spec.kind == tokensKind) {
			if c.token++; !lost {
				e.Token = c.token
			}
		}
	case Extend:
		if c.spec.kind == servedKind && c.out[at] == 0 {
			e.Phase = ReturnFail
		}
	case Release:
		switch {
		case !took:
		case c.out[at] >= max(1, e.Permits):
			if c.out[at] -= max(1, e.Permits); c.out[at] == 0 {
				delete(c.out, at)
			}
		default:
			e.Phase, lost = ReturnFail, false
		}
	}
	cl.under = Event{}
	if lost {
		e.Phase = ReturnUnknown
	}
	if e.Phase == ReturnOK && e.Op != Release && (c.spec.kind == leaseKind || c.spec.kind == fencedKind) {
		e.Lease = time.Duration(len(c.events) + 1000)
	}
	if e.Phase != ReturnUnknown && e.Op == Release {
		if i := slices.IndexFunc(cl.held, func(h Event) bool { return h.Key == e.Key }); i >= 0 && (cl.unsure == nil || cl.unsure.Op == Release) {
			cl.held = slices.Delete(cl.held, i, i+1)
		}
		cl.unsure = nil
	}
	switch {
	case e.Phase == ReturnUnknown && (e.Op != Release || cl.unsure == nil):
		cl.unsure = &e
	case e.Phase == ReturnOK && e.Op != Release && e.Op != Extend:
		cl.held = append(cl.held, e)
	}
	c.tell(e)
}

// lie lets the lock do what it must not, if it can be told at this moment.
func (c *crossing) lie() bool {
	e := Event{Client: "X", Phase: Invoke, Op: Acquire}
	switch {
	case c.spec.kind == fencedKind || c.spec.kind == tokensKind:
		if c.token < 2 {
			return false
		}
		e.Token = 1
	case c.spec.kind == leaseKind && c.spec.expiry == NotKnown:
		e.Op = Release
	case c.spec.kind == multiKind:
		e.Key = "x y z"
	}
	if e.Op == Acquire && e.Token == 0 { // all that is out is held for certain
		known := map[string]int{}
		for _, cl := range c.clients {
			if cl.under.Op == Release || cl.unsure != nil {
				continue
			}
			for _, h := range cl.held {
				known[placeOf(&h)] += max(1, h.Permits)
			}
		}
		if c.room(&e) {
			return false
		}
		for at, n := range c.out {
			if known[at] != n {
				return false
			}
		}
	}
	c.tell(Event{Client: e.Client, Phase: Invoke, Op: e.Op, Key: e.Key})
	e.Phase = ReturnOK
	if c.spec.kind == leaseKind && e.Op == Acquire || c.spec.kind == fencedKind {
		e.Lease = time.Duration(len(c.events) + 1000)
	}
	c.tell(e)
	return true
}
