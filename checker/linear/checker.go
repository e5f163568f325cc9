package linear

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"time"
)

// A Checker judges a history event by event. It keeps what is open (operations,
// holds, acquires with unknown outcome) and nothing of what is over; of fenced
// locks also each client's largest token, and the tokens that were issued while
// an acquire of unknown outcome or without a return exists. Make one with
// [New]. It is not safe for concurrent use.
type Checker struct {
	spec   Spec
	opts   Options
	limit  int32
	seq    int64 // events so far
	now    time.Duration
	tokens bool // the specification has fencing tokens

	clients map[string]*client
	slots   map[string]*slot
	last    *client // of the last event: often of the next one, too
	sweepAt int

	search *searches // with Options.Search
	kept   *kept     // the same, of specifications that have no rules

	result Result
	failed error  // the event that could not be understood
	open   string // a question that this checker cannot settle
	doubt  string // one that no search can
	done   bool   // the first violation that is certain is complete, and All was not asked for
}

// New returns a Checker that has seen no event.
func New(spec Spec, opts Options) *Checker {
	opts.Skew = max(opts.Skew, 0)
	c := &Checker{
		spec: spec, opts: opts, limit: 1, now: math.MinInt64, tokens: spec.kind == fencedKind,
		clients: map[string]*client{}, slots: map[string]*slot{}, sweepAt: 1024,
	}
	switch {
	case spec.kind == reentrantKind && spec.limit == 0:
		c.limit = math.MaxInt32
	case spec.kind == reentrantKind || spec.kind == semaphoreKind:
		c.limit = int32(min(max(spec.limit, 1), math.MaxInt32))
	}
	if spec.kind == tokensKind || spec.kind == readWriteKind {
		c.giveUp("locks of this kind are judged by a search alone")
		if opts.Search {
			c.kept = newKept(spec, opts.Strict)
		}
		return c
	}
	if opts.Search && !c.tokens {
		c.search = newSearches(spec, c.limit, opts.Strict)
	}
	return c
}

// A client is a participant: what it has to do with each lock.
type client struct {
	name   string
	owners []*owner
}

// An owner is one client at one lock.
type owner struct {
	client *client
	key    string
	slots  []*slot // the one lock, or the several of a Multi

	// The operation under way; op is 0 if there is none.
	op      Op
	call    moment
	permits int32

	// The client owns the lock lo to hi times: at least lo if what is unknown
	// or under way has released it, hi if that did nothing.
	lo, hi int32
	// unsure counts acquires of unknown outcome that no evidence has used up.
	unsure int32
	// until is the end of the lease; without one it is the end of time.
	until time.Duration
	over  bool // until has passed, and the hold was taken out of its overlaps
	loose bool // the lease may last beyond until, since that was not said or an extend is unknown
	// since says that an acquire that did not fail was called after the last
	// release of unknown outcome, so that this has taken effect before or never;
	// leaned that a busy answer was explained by it having had no effect.
	since, leaned bool
	// hold is the evidence that the hold began.
	hold Event

	// While a release is under way: loBefore is lo without it; credit says
	// that another's hold began meanwhile, so that this release, if it
	// succeeded, was before that; retro that it must have succeeded.
	loBefore      int32
	credit, retro bool
	by            Event // the evidence that the hold was over, in favour of another

	bulk   bool    // of a semaphore: an operation without a known outcome was about several permits
	tokens *tokens // of a fenced lock
}

// A moment is an event's place and its copy.
type moment struct {
	seq int64
	Event
}

// A slot is one lock.
type slot struct {
	key string
	// holders own it, or may do so still. There is at most one that must,
	// except of a semaphore or after a violation.
	holders []*owner
	// free is the event just before which the lock was free last; now it is
	// free if no holder must own it.
	free int64
	// fresh says that a hold began since the last overlap was reported.
	fresh bool
	pair  [2]Event // the overlap's evidence
	since time.Duration

	gap    gap
	lapse  int64 // the last extend that may have been an acquire of unknown outcome
	unsure int32 // acquires of unknown outcome, or under way, that may yet count
	busy   busy
	tokens issued
	permit permits
}

// A gap is an instant at which a reentrant lock may have been free under its
// owner: just before event seq, if extra of the times that it may own it
// were over.
type gap struct {
	owner   *owner
	seq     int64
	extra   int32
	several bool
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
	if why := c.spec.refuses(e); why != "" {
		return c.fail(e, why)
	}
	if c.spec.kind == multiKind {
		if key := set(e.Key); key != e.Key {
			same := *e
			same.Key = key
			e = &same
		}
	}
	o := c.owner(e)
	if e.Op == Use {
		c.result.Ops++
		if c.kept != nil {
			c.kept.add(e)
		}
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
		o.op, o.call = e.Op, moment{c.seq, *e}
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
	if c.spec.kind == tokensKind && c.doubt == "" && e.Phase == ReturnOK && e.Token == 0 && (e.Op == Acquire || e.Op == TryAcquire) {
		c.doubt = missing(e)
	}
	c.follow(e)
	if !c.done {
		c.returned(o, e)
	}
	o.op = 0
	return nil
}

// follow gives an event to who searches.
func (c *Checker) follow(e *Event) {
	if c.search != nil {
		c.search.add(e, c.seq)
	}
	if c.kept != nil {
		c.kept.add(e)
	}
}

// refuses says why an event has no meaning for this kind of lock, or "".
func (s Spec) refuses(e *Event) string {
	switch {
	case e.Phase < Invoke || e.Phase > Crash:
		return "an unknown phase"
	case e.Op < Acquire || e.Op > Use:
		return "an unknown operation"
	case e.Op == Use && s.kind != fencedKind && s.kind != tokensKind:
		return "a use of a token, and only fenced locks have tokens"
	case e.Op == Use && e.Phase != ReturnOK && e.Phase != ReturnFail:
		return "a use that was neither accepted nor turned away"
	case (s.kind == fencedKind || s.kind == tokensKind) && (e.Token < 0 || e.Op == Use && e.Token == 0):
		return "a token that is not positive"
	case e.Op == Extend && s.kind != leaseKind && s.kind != fencedKind:
		return "an extend, and only leases can be extended"
	case s.kind == multiKind && strings.TrimSpace(e.Key) == "":
		return "an operation on no key"
	}
	return ""
}

// set writes a list of keys in the one way in which it is compared.
func set(list string) string {
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
	cl := c.last
	if cl == nil || cl.name != e.Client {
		cl = c.clients[e.Client]
		if cl == nil {
			c.sweep()
			cl = &client{name: e.Client}
			c.clients[e.Client] = cl
		}
		c.last = cl
	}
	for i, o := range cl.owners {
		if o.key == e.Key {
			// Few locks at a time are usual; the last one used comes first.
			if i > 0 {
				copy(cl.owners[1:i+1], cl.owners[:i])
				cl.owners[0] = o
			}
			return o
		}
	}
	if len(cl.owners) >= 16 {
		cl.owners = c.keep(cl.owners)
	}
	o := &owner{client: cl, key: e.Key, until: math.MaxInt64}
	if c.spec.kind == multiKind {
		for _, key := range strings.Fields(e.Key) {
			o.slots = append(o.slots, c.slot(key))
		}
	} else {
		o.slots = []*slot{c.slot(e.Key)}
	}
	cl.owners = append(cl.owners, o)
	return o
}

func (c *Checker) slot(key string) *slot {
	s := c.slots[key]
	if s == nil {
		s = &slot{key: key}
		c.slots[key] = s
	}
	return s
}

func (o *owner) idle() bool {
	return o.op == 0 && o.hi == 0 && o.unsure == 0 && o.tokens == nil
}

// keep drops the owners that nothing depends on.
func (c *Checker) keep(owners []*owner) []*owner {
	kept := owners[:0]
	for _, o := range owners {
		if !o.idle() {
			kept = append(kept, o)
		}
	}
	clear(owners[len(kept):])
	return kept
}

// sweep forgets the clients that nothing depends on. It runs when their number
// has doubled, so each event pays a constant share.
func (c *Checker) sweep() {
	if len(c.clients) < c.sweepAt {
		return
	}
	for name, cl := range c.clients {
		if cl.owners = c.keep(cl.owners); len(cl.owners) == 0 {
			delete(c.clients, name)
		}
	}
	c.last = nil
	c.sweepAt = max(1024, 2*len(c.clients))
}

// violate notes a violation. Without Options.All one is kept: the first, or, if
// it is only possible, the first that is certain.
func (c *Checker) violate(v Violation) {
	if !c.opts.All && len(c.result.Violations) > 0 {
		if !v.Certain {
			return
		}
		c.result.Violations = c.result.Violations[:0]
	}
	c.result.Violations = append(c.result.Violations, v)
	c.done = v.Certain && !c.opts.All
}

// wonder notes that the events leave a question that is not settled here.
func (c *Checker) wonder(why string) {
	if c.open == "" {
		c.open = why
	}
}

// giveUp is wonder where nothing that follows could be judged either.
func (c *Checker) giveUp(why string) {
	c.wonder(why)
	c.done = true
}

// settle lets the search answer an open question.
func (c *Checker) settle() {
	var refuted []refutation
	var lost bool
	var witnesses map[string]Violation
	switch {
	case c.open != "" && c.search != nil:
		refuted, lost = c.search.settle()
	case c.kept != nil:
		refuted, lost = c.kept.settle()
		witnesses = c.kept.witnesses
	default:
		return
	}
	c.search, c.kept = nil, nil
	proven := map[string]bool{}
	for _, v := range c.result.Violations {
		proven[v.Key] = true
	}
	for _, r := range refuted {
		if proven[r.key] || len(c.result.Violations) > 0 && (!c.opts.All || c.spec.kind == multiKind) {
			continue // the rules say more
		}
		if v, ok := witnesses[r.key]; ok {
			v.Certain = c.opts.Skew == 0
			c.violate(v)
			continue
		}
		c.violate(Violation{Rule: NoOrder, Key: r.key, Events: []Event{*r.event}, Certain: c.opts.Skew == 0, Says: sayNoOrder(r.event)})
	}
	if lost {
		c.open += ", not even by a search, which would have had to follow too many states"
	} else {
		c.open = c.doubt
	}
}

// Result returns the verdict on the events so far, which are taken for the
// whole history: no Add may follow.
func (c *Checker) Result() Result {
	if !c.done {
		c.finish()
	}
	c.settle()
	r := c.result
	possible := false
	r.Verdict = Valid
	for i := range r.Violations {
		if r.Violations[i].Certain {
			r.Verdict = Invalid
		} else {
			possible = true
		}
	}
	if r.Verdict == Invalid {
		return r
	}
	switch {
	case c.failed != nil:
		r.Reason = c.failed.Error()
	case possible:
		r.Reason = fmt.Sprintf("clocks that are wrong by up to %v can explain every violation", c.opts.Skew)
	case c.open != "":
		r.Reason = c.open
	default:
		return r
	}
	r.Verdict = Unknown
	return r
}
