package checker

import (
	"container/heap"
	"time"
)

// An Ending is the reason why a [Hold] ended.
type Ending string

// The endings of a hold.
const (
	ByRelease  Ending = "release"  // the client called release as often as it had acquired
	ByLoss     Ending = "lost"     // the lock reported its loss to the client
	ByCrash    Ending = "crash"    // the client crashed
	ByValidity Ending = "validity" // the published validity ended, and clients honour it
	StillOpen  Ending = "open"     // the hold lasted until the end of the history
)

// A Hold is an interval in which one client believed that it held the lock. The interval includes
// its beginning and excludes its end: a hold that begins with the event that ends another hold does
// not overlap that hold, nor does a hold that begins at the same Time with a later event.
type Hold struct {
	Client string
	// Token is the fencing token of the hold; 0 means none.
	Token int64
	// Began is the index of the Return that began the hold, Start its time.
	Began int
	Start time.Duration
	// Ended is the index of the first event at which the hold no longer lasted: the release's
	// Invoke, Lost, Crash, or the first event after the validity ended. If By is StillOpen, Ended
	// is the number of events.
	Ended int
	// End is when the hold ended: the time of event Ended, or the end of the validity. If By is
	// StillOpen, End is the time of the last event. An End of 0 is a valid time; only By identifies
	// an open hold.
	End time.Duration
	By  Ending
}

// Holds returns all holds of all clients in the order in which they began. The holds of one client
// are disjoint. docs/anomalies.md has the exact rules.
func Holds(h History) []Hold {
	f := derive(h)
	all := make([]Hold, len(f.holds))
	for i, b := range f.holds {
		all[i] = Hold{
			Client: f.clients[b.client].name, Token: b.token,
			Began: b.begin, Start: b.from, Ended: b.end, End: b.to, By: b.by,
		}
	}
	return all
}

// hold is the index's representation of a [Hold].
type hold struct {
	client     int
	call       int // the call whose Return began it
	begin, end int
	from, to   time.Duration
	by         Ending
	release    int // the release that ended it, or -1
	token      int64
}

// granted records that call at of client c, an acquire or an extend, returned OK at event i.
func (f *index) granted(c *client, at int, i int, e *Event) {
	c.grant, c.hasGrant = e.Time, true
	until := time.Duration(0)
	if f.meta.HonourValidity {
		until = e.Until
	}
	if f.calls[at].op == Extend {
		switch {
		case until <= 0:
		case c.hold >= 0:
			f.validUntil(c, until)
		case c.lapsed: // the client stopped in time, and holds again
			f.believe(c, at, i, e, until)
		}
		return
	}
	c.acquired = i
	if c.hold < 0 {
		f.noteAcquired(at)
		f.calls[at].adopted = f.adopts(c)
	}
	if e.Token != 0 {
		c.token = e.Token
	}
	if c.hold < 0 {
		c.depth = 0
		f.believe(c, at, i, e, until)
	} else {
		c.since = i
		if until > 0 {
			f.validUntil(c, until)
		}
	}
	c.depth++
}

// believe begins a hold of c, unless the validity is already over.
func (f *index) believe(c *client, at, i int, e *Event, until time.Duration) {
	if until > 0 && until <= e.Time {
		c.lapsed = true
		return
	}
	c.since = i
	c.hold, c.last, c.until, c.lapsed = len(f.holds), len(f.holds), 0, false
	c.holds = append(c.holds, c.hold)
	f.holds = append(f.holds, hold{client: c.id, call: at, begin: i, from: e.Time, release: -1, token: e.Token})
	f.holding++
	if until > 0 {
		f.validUntil(c, until)
	}
}

func (f *index) validUntil(c *client, until time.Duration) {
	c.until = until
	heap.Push(&f.deadlines, deadline{until, c.id, c.hold})
}

// released records that client c called a release, which is call at, at event i.
func (f *index) released(c *client, at, i int, t time.Duration) {
	if c.depth == 0 {
		return
	}
	if c.depth--; c.depth > 0 {
		return
	}
	f.disbelieve(c, i, t, ByRelease, at)
	c.lapsed = false
}

// disbelieve ends the hold of c, if c has a hold.
func (f *index) disbelieve(c *client, i int, t time.Duration, by Ending, release int) {
	if c.hold < 0 {
		return
	}
	b := &f.holds[c.hold]
	b.end, b.to, b.by, b.release = i, t, by, release
	c.hold, c.until = -1, 0
	c.lapsed = by == ByValidity
	if by != StillOpen {
		f.holding--
		f.freeSince, f.freeFrom = i, t
		if by == ByValidity {
			f.freeSince-- // the hold was over before event i, at which lapse notices it
		}
	}
}

// lapse ends the holds whose validity is over at event i.
func (f *index) lapse(i int, t time.Duration) {
	for len(f.deadlines) > 0 && f.deadlines[0].until <= t {
		d := heap.Pop(&f.deadlines).(deadline)
		c := f.clients[d.client]
		if c.hold == d.hold && c.until == d.until { // otherwise the deadline was replaced meanwhile
			f.disbelieve(c, i, d.until, ByValidity, -1)
		}
	}
}

// A deadline is the end of a hold's validity as last published.
type deadline struct {
	until  time.Duration
	client int
	hold   int
}

type deadlines []deadline

func (d deadlines) Len() int { return len(d) }
func (d deadlines) Less(i, j int) bool {
	if d[i].until != d[j].until {
		return d[i].until < d[j].until
	}
	return d[i].client < d[j].client
}
func (d deadlines) Swap(i, j int) { d[i], d[j] = d[j], d[i] }
func (d *deadlines) Push(x any)   { *d = append(*d, x.(deadline)) }
func (d *deadlines) Pop() any {
	last := (*d)[len(*d)-1]
	*d = (*d)[:len(*d)-1]
	return last
}
