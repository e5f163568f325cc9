package linear

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"time"
	"unicode"
)

// A Checker judges a history event by event. It keeps what is open (operations,
// holds, acquires with unknown outcome) and nothing of what is over; of fenced
// locks also each client's largest token, and the tokens that were issued while
// an acquire of unknown outcome or without a return exists. Make one with
// [New]. It is not safe for concurrent use.
type Checker struct {
	traits
	spec  Spec
	opts  Options
	limit int32
	seq   int64 // events so far
	now   time.Duration

	clients map[string]*client
	slots   map[string]*lockState
	recent  lookupCache[owner]
	owned   int // owners, and clients
	sweepAt int

	opened map[string]bool // locks of which the rules leave a question open, and whether it is about more than busy answers; "" for all
	buffer *eventBuffer    // with Options.Search

	result Result
	size   int // of its violations
	// A violation was told that is certain, or that is only possible.
	certain, possible bool
	found             bool   // the first that is certain, and Options.All was not asked for
	forgot            bool   // a client was forgotten whose hold another's had put an end to
	failed            error  // the event that could not be understood
	open              string // why the first of them is
	doubt             string // a question that no search can settle
	done              bool   // it is found, or there are no rules
	ending            bool   // this is what Result asks
}

// New returns a Checker that has seen no event.
func New(spec Spec, opts Options) *Checker {
	opts.Skew = max(opts.Skew, 0)
	c := &Checker{
		spec: spec, opts: opts, traits: spec.traits(), limit: int32(spec.often()), now: math.MinInt64,
		clients: map[string]*client{}, slots: map[string]*lockState{}, sweepAt: 1024,
	}
	if opts.Search {
		c.buffer = newKept(spec, opts.Strict)
		c.buffer.choose(opts.Locks)
	}
	if !c.ruled {
		c.done, c.open = true, "locks of this kind are judged by a search alone"
	}
	return c
}

// A client is a participant: what it has to do with each lock.
type client struct {
	name   string
	owners []*owner
	index  map[string]*owner // by key, if there are more than few
	keepAt int               // how many owners there are when those that are idle go
}

// few is how many owners of a client are searched one by one.
const few = 16

// An owner is one client at one lock.
type owner struct {
	client *client
	key    string
	slots  []*lockState // the one lock, or the several of a Multi
	lone   [1]*lockState

	// The operation under way; op is 0 if there is none.
	op      Op
	call    eventRef
	permits int32

	// The client owns the lock lo to hi times: at least lo if what is unknown
	// or under way has released it, hi if that did nothing.
	lo, hi int32
	// unsure counts acquires of unknown outcome that no evidence has used up.
	unsure int32
	// until is the end of the lease; without one it is the end of time.
	until time.Duration
	loose bool // the lease may last beyond until, since that was not said or an extend is unknown
	// held is what it must have held, or still holds, without what is explained: of
	// each slot one, of a semaphore the parts. lost says that another's hold has put an
	// end to it. What of spare is in no list can be used again.
	held, spare []*hold
	lost        bool

	// While a release is under way: loBefore is lo without it; credit says
	// that another's hold began meanwhile, so that this release, if it
	// succeeded, was before that; retro that it must have succeeded.
	loBefore      int32
	credit, retro bool

	tokens *tokens // of a fenced lock
}

// An eventRef is an event's place, and what of it its owner does not tell.
type eventRef struct {
	seq           int64
	Time          time.Duration
	Token         int64
	Lease         time.Duration
	Permits, Line int
	Phase         Phase
	Op            Op
	Shared        bool
}

// note writes down the event that is judged now.
func (c *Checker) note(n *eventRef, e *Event) {
	n.seq, n.Time, n.Token, n.Lease, n.Permits, n.Line = c.seq, e.Time, e.Token, e.Lease, e.Permits, e.Line
	n.Phase, n.Op, n.Shared = e.Phase, e.Op, e.Shared
}

// event returns the event of o that was noted.
func (o *owner) event(n *eventRef) Event {
	return Event{
		Time: n.Time, Client: o.client.name, Key: o.key, Phase: n.Phase, Op: n.Op, Shared: n.Shared,
		Token: n.Token, Lease: n.Lease, Permits: n.Permits, Line: n.Line,
	}
}

// A lockState is one lock.
type lockState struct {
	key string
	// holders own it, or may do so still. There is at most one that must,
	// except of a semaphore or after a violation.
	holders []*owner
	// free is the event just before which the lock was free last; now it is
	// free if no holder must own it.
	free int64
	// owners counts those who know the lock.
	owners int
	holds  holds

	gap    int64 // the last event just before which a reentrant lock may have been free under its owner
	unsure int32 // acquires of unknown outcome, or under way, that may yet count
	busy   failedTry
	tokens issued
	permit permits
}

// blur notes that something about o is not known: an outcome, or what a crash has left.
func (o *owner) blur() {
	for _, s := range o.slots {
		s.busy.blurred = true
	}
}

// Add judges the next event. An event that goes back in time, or that makes no
// sense after those before it, is an error; the verdict is then Unknown unless
// the events before it prove a violation, and every later Add returns the
// same error.
func (c *Checker) Add(e Event) error { return c.add(&e) }

func (c *Checker) add(e *Event) error {
	if c.failed != nil {
		return c.failed
	}
	if e.Time < c.now {
		return c.fail(e, "its time is before the event before it; sort the events by time")
	}
	c.now = e.Time
	c.seq++
	if e.Phase == Crash {
		c.follow(e)
		if !c.done {
			c.crash(e)
		} else if cl := c.clients[e.Client]; cl != nil {
			for _, o := range cl.owners {
				o.op = 0
			}
		}
		return nil
	}
	if why := c.refuses(e); why != "" {
		return c.fail(e, why)
	}
	at := c.recent.place(e.Client, e.Key)
	o := *at
	if o == nil || o.key != e.Key || o.client.name != e.Client {
		if c.tied {
			e = e.canonical()
		}
		o = c.owner(e)
		*at = o
	}
	if e.Phase == Expired {
		c.follow(e)
		return nil
	}
	if e.Op == Use {
		c.result.Ops++
		c.follow(e)
		if !c.done && e.Phase == ReturnOK {
			c.use(o, e)
		}
		return nil
	}
	if e.Phase == Invoke {
		if o.op != 0 {
			return c.fail(e, "this client's call before it has not returned")
		}
		c.result.Ops++
		c.result.Unknown++ // until it returns
		o.op = e.Op
		c.note(&o.call, e)
		o.permits = int32(max(1, min(e.Permits, math.MaxInt32)))
		c.follow(e)
		if !c.done {
			c.called(o)
		}
		return nil
	}
	if o.op == 0 {
		return c.fail(e, "a return without its call")
	}
	if o.op != e.Op {
		return c.fail(e, "the return of another operation than the one called")
	}
	if e.Phase != ReturnUnknown {
		c.result.Unknown--
	}
	if c.tokens && c.doubt == "" && e.Phase == ReturnOK && e.Token == 0 && (e.Op == Acquire || e.Op == TryAcquire) {
		c.doubt = missing(e)
	}
	c.follow(e)
	if !c.done {
		c.returned(o, e)
	}
	o.op = 0
	return nil
}

// follow keeps an event for a search.
func (c *Checker) follow(e *Event) {
	if c.buffer != nil && !c.found {
		c.buffer.add(e, c.seq)
	}
}

// refuses says why an event has no meaning for this kind of lock, or "".
func (t traits) refuses(e *Event) string {
	switch {
	case e.Phase < Invoke || e.Phase > Expired:
		return "an unknown phase"
	case e.Phase == Expired && t.served:
		return ""
	case e.Phase == Expired:
		return "the end of a lease by the server's clock, which means nothing for this kind of lock"
	case e.Op < Acquire || e.Op > Use:
		return "an unknown operation"
	case e.Op == Use && !t.tokens:
		return "a use of a token, and only fenced locks have tokens"
	case e.Op == Use && e.Phase != ReturnOK && e.Phase != ReturnFail:
		return "a use that was neither accepted nor turned away"
	case t.tokens && (e.Token < 0 || e.Op == Use && e.Token == 0):
		return "a token that is not positive"
	case e.Op == Extend && !t.leases && !t.served:
		return "an extend, and only leases can be extended"
	case t.tied && strings.TrimSpace(e.Key) == "":
		return "an operation on no key"
	}
	return ""
}

// canonical returns the event with its list of keys as it is compared.
func (e *Event) canonical() *Event {
	key := set(e.Key)
	if key == e.Key {
		return e
	}
	same := *e
	same.Key = key
	return &same
}

// set writes a list of keys in the one way in which it is compared.
func set(list string) string {
	last, more := "", true
	for rest := list; more; {
		var key string
		if key, rest, more = strings.Cut(rest, " "); key <= last || strings.IndexFunc(key, unicode.IsSpace) >= 0 {
			break // it is not written so
		}
		if last = key; !more {
			return list
		}
	}
	keys := strings.Fields(list)
	slices.Sort(keys)
	return strings.Join(slices.Compact(keys), " ")
}

// fail ends the judging. A prefix of a legal history is legal, so what was
// proven before holds.
func (c *Checker) fail(e *Event, why string) error {
	where := ""
	if e.Line > 0 {
		where = fmt.Sprintf("line %d: ", e.Line)
	}
	c.failed = fmt.Errorf("%sevent of client %q at %v: %s", where, e.Client, e.Time, why)
	return c.failed
}

func (c *Checker) owner(e *Event) *owner {
	cl := c.clients[e.Client]
	if cl == nil {
		cl = &client{name: e.Client}
		c.clients[e.Client] = cl
		c.owned++
	}
	if cl.index != nil {
		if o := cl.index[e.Key]; o != nil {
			return o
		}
	}
	for i, o := range cl.owners {
		if cl.index != nil {
			break
		}
		if o.key == e.Key {
			// Few locks at a time are usual; the last one used comes first.
			if i > 0 {
				copy(cl.owners[1:i+1], cl.owners[:i])
				cl.owners[0] = o
			}
			return o
		}
	}
	c.sweep(cl)
	if len(cl.owners) >= max(few, cl.keepAt) {
		c.keep(cl)
	}
	c.owned++
	o := &owner{client: cl, key: e.Key, until: math.MaxInt64}
	if c.tied {
		for key := range strings.FieldsSeq(e.Key) {
			o.slots = append(o.slots, c.slot(key))
		}
	} else {
		o.lone[0] = c.slot(e.Key)
		o.slots = o.lone[:]
	}
	cl.owners = append(cl.owners, o)
	if cl.index != nil {
		cl.index[o.key] = o
	}
	return o
}

func (c *Checker) slot(key string) *lockState {
	s := c.slots[key]
	if s == nil {
		s = &lockState{key: key}
		s.holds.swept, s.holds.reportedUntil = outset, outset
		c.slots[key] = s
	}
	s.owners++
	return s
}

func (o *owner) idle() bool {
	return o.op == 0 && o.hi == 0 && o.unsure == 0 && o.tokens == nil
}

// keep drops a client's owners that nothing depends on, and locks that only they know.
func (c *Checker) keep(cl *client) {
	kept := cl.owners[:0]
	for _, o := range cl.owners {
		if !o.idle() {
			kept = append(kept, o)
			continue
		}
		c.forgot = c.forgot || o.lost
		for _, s := range o.slots {
			c.leave(s)
		}
	}
	if len(kept) < len(cl.owners) {
		clear(c.recent[:])
		c.owned -= len(cl.owners) - len(kept)
	}
	clear(cl.owners[len(kept):])
	cl.owners, cl.keepAt, cl.index = kept, 2*len(kept), nil
	if len(kept) >= few {
		cl.index = make(map[string]*owner, 2*len(kept))
		for _, o := range kept {
			cl.index[o.key] = o
		}
	}
}

// leave notes that one owner fewer knows s, and forgets it if nothing depends on it.
func (c *Checker) leave(s *lockState) {
	s.owners--
	if s.owners > 0 || s.busy.ret != 0 || s.tokens.largest.Phase != 0 || s.tokens.accepted.Phase != 0 {
		return
	}
	if c.advance(s); len(s.holds.list) == 0 {
		delete(c.slots, s.key)
	}
}

// sweep forgets what nothing depends on of clients and of what they had to do with locks, but not the client that stays. It runs
// when that has doubled, so each event pays a constant share.
func (c *Checker) sweep(stays *client) {
	if c.owned < c.sweepAt {
		return
	}
	for name, cl := range c.clients {
		if c.keep(cl); len(cl.owners) == 0 && cl != stays {
			delete(c.clients, name)
			c.owned--
		}
	}
	c.sweepAt = max(1024, 2*c.owned)
}

// Until says that the history went on until then, so that what goes on lasts until then at least. A time before the last event's
// says nothing; the next event must not be before it.
func (c *Checker) Until(at time.Duration) { c.now = max(c.now, at) }

// markUndecided notes that the events leave a question about s that is not settled here. What the rules
// say of s from now on is to be confirmed.
func (c *Checker) markUndecided(s *lockState, why string) { c.ask(s, why, true) }

// markBusyUndecided is the same if the question is whether a busy answer can be explained. The rules go on as if there had been none, so of
// what else they say from now on nothing depends on it: what is illegal without the answer is illegal with it.
func (c *Checker) markBusyUndecided(s *lockState, why string) { c.ask(s, why, false) }

func (c *Checker) ask(s *lockState, why string, more bool) {
	if c.open == "" {
		c.open = why
	}
	key := c.whole(s.key)
	if c.opened == nil {
		c.opened = map[string]bool{}
	}
	c.opened[key] = c.opened[key] || more
}

// undecided says whether a question about a lock is open.
func (c *Checker) undecided(key string) bool {
	_, open := c.opened[c.whole(key)]
	return open || !c.ruled
}

// depends says whether what the rules say of a lock depends on a question that is open.
func (c *Checker) depends(v *Violation) bool {
	if v.Rule == Busy {
		return c.undecided(v.Key)
	}
	return c.opened[c.whole(v.Key)]
}

// settle lets a search answer what is open.
func (c *Checker) settle() {
	if c.buffer == nil || c.open == "" {
		return
	}
	refuted, lost := c.buffer.settle(c.undecided)
	for _, r := range refuted {
		if len(c.result.Violations) > 0 && (!c.opts.All || c.tied) {
			continue // the rules say more
		}
		v := Violation{Rule: NoOrder, Key: r.lock.key, Events: []Event{*r.event}, Message: sayNoOrder(r.event)}
		if plain, ok := c.buffer.plain(r.lock.events[:r.at+1]); ok {
			v = plain
		}
		v.Certain = c.opts.Skew == 0
		c.list(v)
	}
	if lost {
		c.open += ", not even by a search, which would have had to follow too many states"
	} else {
		c.open = ""
	}
}
