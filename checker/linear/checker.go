package linear

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"time"
	"unicode"
)

// A Checker judges a history event by event. [New] returns one. Memory holds only what is open:
// operations, holds, and acquires of unknown outcome. For fenced locks, memory also holds each
// client's largest token, and the tokens issued while an acquire of unknown outcome or without a
// return exists. A Checker is not safe for concurrent use.
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
	owned   int // number of owners and clients
	sweepAt int

	opened map[string]bool // locks with an open question; true if not only about busy results; "" for all
	buffer *eventBuffer    // with Options.Search

	result Result
	size   int // size of the listed violations
	// certain and possible report that a certain, or a merely possible, violation was reported.
	certain, possible bool
	found             bool   // the first certain violation was found, without Options.All
	forgot            bool   // a client was dropped that had lost a hold to another client
	failed            error  // the error of the first invalid event
	open              string // the reason of the first open question
	doubt             string // a question that no search can decide
	done              bool   // the rules judge no further: found is set, or the lock has no rules
	ending            bool   // Result is being computed
}

// New returns a Checker with an empty history.
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

// client holds the owners of one client, one for each lock.
type client struct {
	name   string
	owners []*owner
	index  map[string]*owner // by key; nil for few owners
	keepAt int               // number of owners at which idle ones are dropped
}

// few is the number of owners up to which a linear search is used.
const few = 16

// owner is the state of one client at one lock.
type owner struct {
	client *client
	key    string
	slots  []*lockState // the lock, or the several locks of a Multi
	lone   [1]*lockState

	// The operation under way; op is 0 if there is none.
	op      Op
	call    eventRef
	permits int32

	// The client owns the lock lo to hi times: lo if every release that is unknown or under way
	// took effect, hi if none did.
	lo, hi int32
	// unsure is the number of acquires of unknown outcome that no evidence has used yet.
	unsure int32
	// until is the end of the lease; without a lease it is the end of time.
	until time.Duration
	loose bool // the lease may last beyond until: its end or an extend is unknown
	// held lists the holds that the client must have had or still has, except explained ones: one
	// hold for each slot, or the parts of a semaphore hold. lost reports that another client's hold
	// has ended them. Holds in spare that are in no list can be reused.
	held, spare []*hold
	lost        bool

	// While a release is under way: loBefore is lo without the release. credit reports that another
	// client's hold began meanwhile, so that a successful release took effect before it. retro
	// reports that the release must have succeeded.
	loBefore      int32
	credit, retro bool

	tokens *tokens // for fenced locks
}

// An eventRef is an event without the fields that its owner has, and with its position.
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

// note stores the current event in n.
func (c *Checker) note(n *eventRef, e *Event) {
	n.seq, n.Time, n.Token, n.Lease, n.Permits, n.Line = c.seq, e.Time, e.Token, e.Lease, e.Permits, e.Line
	n.Phase, n.Op, n.Shared = e.Phase, e.Op, e.Shared
}

// event returns the event stored in n, with the client and key of o.
func (o *owner) event(n *eventRef) Event {
	return Event{
		Time: n.Time, Client: o.client.name, Key: o.key, Phase: n.Phase, Op: n.Op, Shared: n.Shared,
		Token: n.Token, Lease: n.Lease, Permits: n.Permits, Line: n.Line,
	}
}

// lockState is the state of one lock.
type lockState struct {
	key string
	// holders own the lock, or may still own it. At most one of them must own it, except for a
	// semaphore and after a violation.
	holders []*owner
	// free is the event before which the lock was last free. The lock is free now if no holder must
	// own it.
	free int64
	// owners is the number of owners that refer to the lock.
	owners int
	holds  holds

	gap    int64 // the last event before which its reentrant owner may have freed it for a moment
	unsure int32 // number of acquires of unknown outcome, or under way, that may still take effect
	busy   failedTry
	tokens issued
	permit permits
}

// blur records that something about o is unknown: an outcome, or the effect of a crash.
func (o *owner) blur() {
	for _, s := range o.slots {
		s.busy.blurred = true
	}
}

// Add judges the next event. Add returns an error for an event that goes back in time or is
// inconsistent with the events before it. The verdict is then Unknown, unless earlier events prove
// a violation, and every later Add returns the same error.
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
		c.result.Unknown++ // decremented by a known return
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

// follow keeps the event for a search, if the Checker has a buffer.
func (c *Checker) follow(e *Event) {
	if c.buffer != nil && !c.found {
		c.buffer.add(e, c.seq)
	}
}

// refuses returns why the event is invalid for this kind of lock; empty if it is valid.
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

// canonical returns the event with its list of keys in canonical form.
func (e *Event) canonical() *Event {
	key := set(e.Key)
	if key == e.Key {
		return e
	}
	same := *e
	same.Key = key
	return &same
}

// set returns the canonical form of a list of keys: sorted, without duplicates, separated by single
// spaces.
func set(list string) string {
	last, more := "", true
	for rest := list; more; {
		var key string
		if key, rest, more = strings.Cut(rest, " "); key <= last || strings.IndexFunc(key, unicode.IsSpace) >= 0 {
			break // the list is not canonical
		}
		if last = key; !more {
			return list
		}
	}
	keys := strings.Fields(list)
	slices.Sort(keys)
	return strings.Join(slices.Compact(keys), " ")
}

// fail stops judging and returns the error. Every prefix of a legal history is legal, so violations
// proven before remain valid.
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
			// Clients usually use few locks at a time, so the last used owner is moved to the
			// front.
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

// keep drops the client's idle owners, and the locks that only they refer to.
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

// leave decrements the number of owners of s, and drops s if nothing depends on it.
func (c *Checker) leave(s *lockState) {
	s.owners--
	if s.owners > 0 || s.busy.ret != 0 || s.tokens.largest.Phase != 0 || s.tokens.accepted.Phase != 0 {
		return
	}
	if c.advance(s); len(s.holds.list) == 0 {
		delete(c.slots, s.key)
	}
}

// sweep drops idle owners of all clients, and clients without owners except stays. sweep runs when
// the number of owners has doubled, so each event pays a constant share.
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

// Until states that the history went on until the time at, so that open holds last at least until
// then. A time before the last event is ignored; the next event must not be earlier than at.
func (c *Checker) Until(at time.Duration) { c.now = max(c.now, at) }

// markUndecided records that the rules cannot decide a question about s. Later violations of s by
// the rules need to be confirmed by a search.
func (c *Checker) markUndecided(s *lockState, why string) { c.ask(s, why, true) }

// markBusyUndecided is markUndecided for the question whether a busy result can be explained. The
// rules continue as if the result did not exist, so their other violations do not depend on the
// question: a history that is illegal without the result is illegal with it.
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

// undecided reports whether a question about the lock with the given key is open.
func (c *Checker) undecided(key string) bool {
	_, open := c.opened[c.whole(key)]
	return open || !c.ruled
}

// depends reports whether the violation depends on an open question.
func (c *Checker) depends(v *Violation) bool {
	if v.Rule == Busy {
		return c.undecided(v.Key)
	}
	return c.opened[c.whole(v.Key)]
}

// settle answers the open questions by a search.
func (c *Checker) settle() {
	if c.buffer == nil || c.open == "" {
		return
	}
	refuted, lost := c.buffer.settle(c.undecided)
	for _, r := range refuted {
		if len(c.result.Violations) > 0 && (!c.opts.All || c.tied) {
			continue // a violation by the rules is more specific
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
