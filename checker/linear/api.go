package linear

import (
	"cmp"
	"slices"
	"time"
)

// A Spec says what kind of lock a history is judged against. Make one with
// [Mutex], [Reentrant], [Lease], [Fenced], [Multi], [Semaphore], [MutexTokens] or
// [ReadWrite]; the zero value is a mutex. docs/checker.md has the sequential semantics of each.
type Spec struct {
	kind   kind
	limit  int
	expiry Expiry
}

type kind uint8

const (
	mutexKind kind = iota
	reentrantKind
	leaseKind
	fencedKind
	multiKind
	semaphoreKind
	tokensKind
	readWriteKind
	servedKind
)

// Mutex is a lock that knows its owner: only who acquired it can release it.
func Mutex() Spec { return Spec{} }

// Reentrant is a mutex that its owner may acquire again, up to limit times in
// all; it is free when released as often. A limit below 1 means no limit.
func Reentrant(limit int) Spec { return Spec{kind: reentrantKind, limit: max(limit, 0)} }

// Lease is a mutex that may be lost by the passing of time.
func Lease(e Expiry) Spec {
	if e == ByServer {
		return Spec{kind: servedKind, expiry: e}
	}
	return Spec{kind: leaseKind, expiry: e}
}

// Fenced is a lock whose tokens strictly increase in the order of acquisition,
// together with a resource that accepts no token smaller than one that it has
// accepted. A hold is exclusive for as long as its acquire said, by Lease; of
// one that said nothing only the tokens are judged.
func Fenced() Spec { return Spec{kind: fencedKind} }

// Multi is a mutex over several keys at once: an operation's Key lists them,
// separated by spaces and in any order, and takes or frees all of them in one
// step.
func Multi() Spec { return Spec{kind: multiKind} }

// MaxPermits is the largest number of permits that a semaphore has and that an operation is about.
const MaxPermits = 1 << 30

// Semaphore has n permits; a client can release only permits that it acquired.
// An n below 1 means 1, and an n above [MaxPermits] means MaxPermits.
func Semaphore(n int) Spec { return Spec{kind: semaphoreKind, limit: min(max(n, 1), MaxPermits)} }

// MutexTokens is a mutex whose acquires give tokens that strictly increase, together with
// a resource that accepts no token smaller than one that it has accepted.
func MutexTokens() Spec { return Spec{kind: tokensKind} }

// ReadWrite is a lock for one writer or several readers. Each may acquire again; who
// writes may read beside, and who reads can't write before it has released. Event.Shared
// tells reading from writing.
func ReadWrite() Spec { return Spec{kind: readWriteKind} }

// An Expiry says what is known of when a lease ends. The zero value is
// Believed.
type Expiry uint8

// The kinds of expiry. Leases include their beginning and exclude their end.
const (
	// Believed: the lock is not lost before Event.Lease; it may last longer.
	// Where Event.Lease is 0, it may be lost at any time after the return.
	Believed Expiry = iota
	// Known: as Believed, and from Event.Lease on the client owns nothing.
	Known
	// NotKnown: Event.Lease is ignored; the lock may be lost at any
	// time after the return of its acquire or extend.
	NotKnown
	// ByServer: the lock is lost when an event says so whose Phase is Expired, and at no other
	// time. Event.Lease is ignored.
	ByServer
)

// Options change how strictly a history is judged. The zero value is valid.
type Options struct {
	// Strict demands that somebody held, or may have held, whenever a
	// TryAcquire returned fail.
	Strict bool
	// Skew is by how much any time stamp may be wrong, either way. A
	// violation that two clients' clocks could explain away is then only
	// possible, not certain. Negative values count as 0.
	Skew time.Duration
	// All asks for every violation, of which [MaxViolations] are listed; otherwise only
	// the first that is certain is reported or, if none is, the first.
	All bool
	// Found, if it is not nil, is called by [Checker.Add] with each violation that is to be
	// reported, once and as soon as it is proven and complete, even if it is not listed
	// any more; without All these are at most one that is only possible, and then one that is certain. It must not
	// change what it is given. What only the end of the history or a search tells, Result alone says.
	Found func(Violation)
	// Held, if it is not nil, is called with each time in which a client must have held, as far as the
	// rules know it: by [Checker.Add] when it is over and nothing can change that but a release that
	// fails, and by Result with those that go on at the end. One that lasted longer after all comes
	// again, with the same Event. What only a search finds out is not among them.
	Held func(Held)
	// Search settles what the rules leave open by looking for an order, within bounds that
	// docs/checker.md states. It keeps the events and costs much more time. [Check] does it
	// by itself where a question is open; it is for a [Checker]. Without it a violation of
	// a lock with an open question is not certain.
	Search bool
	// Locks are the only keys to search, such as those that [Result.Open] named before; with
	// none all are. It means nothing for a Multi.
	Locks []string
}

// A Verdict is what is known about a history. The zero value is not valid.
type Verdict string

// The verdicts. Invalid wins over Unknown, and Unknown over Valid: a history that
// was not understood is never valid.
const (
	Valid   Verdict = "valid"
	Invalid Verdict = "invalid"
	Unknown Verdict = "unknown"
)

// A Rule is what a [Violation] violates.
type Rule string

// The rules.
const (
	// Overlap: two holds that must have lasted have an instant in common.
	Overlap Rule = "overlap"
	// Reacquire: a client acquired what it held already, as often as allowed.
	Reacquire Rule = "again"
	// NotHeld: a release or extend succeeded that had nothing to act on.
	NotHeld Rule = "not-held"
	// Busy: a try was told busy, and nobody can have held (Options.Strict).
	Busy Rule = "busy"
	// Permits: more permits were out than the semaphore has.
	Permits Rule = "permits"
	// TokenOrder: a token is not larger than one of an earlier acquire.
	TokenOrder Rule = "token-order"
	// TokenBack: the resource accepted a token smaller than one before.
	TokenBack Rule = "token-back"
	// TokenNotIssued: the resource accepted a token that its client cannot have got.
	TokenNotIssued Rule = "token-not-issued"
	// NoOrder: a search has found that no order explains the events up to one;
	// it explains those before.
	NoOrder Rule = "no-order"
)

// A Violation is a proof that a history has no legal order.
type Violation struct {
	Rule Rule
	Key  string
	// Events are copies of the events that prove it, in their order. Of an
	// overlap they are the evidence of two holds, one event each; of permits
	// that of all holds.
	Events []Event
	// Clients are, of an overlap and of permits, the largest set of clients that held together
	// at that time, sorted. From is when the last of them began, and To when
	// the first of them ended, or the history did. From is part of it, To
	// is not. Of a hold that only its release proves, which is for one instant, they are
	// when that was called and when it returned.
	Clients  []string
	From, To time.Duration
	// Certain says that it survives any error of the clocks up to
	// Options.Skew.
	Certain bool
	Message string // one sentence
}

// A Held is a time in which a client must have held a lock, or some permits of it.
type Held struct {
	Client, Key string
	// Event is what proves it: the return of its acquire or, if that is of unknown outcome, the
	// release that would have failed without it.
	Event Event
	// From is part of it, To is not. Open says that the history, which ends at To, ended first.
	From, To time.Duration
	Open     bool
	// Brief says that it was for an instant at least, somewhere between the two.
	Brief   bool
	Permits int
}

// A Result is what [Check] found.
type Result struct {
	Verdict    Verdict
	Violations []Violation // in the order in which they were proven, and complete
	Omitted    int         // how many more there are than are listed
	Ops        int         // calls, and uses of tokens
	Unknown    int         // how many of them have no known outcome
	Reason     string      // why the verdict is Unknown; empty otherwise
	// Unsettled says that only a search can tell more, and Open of which keys, sorted; if there are
	// none it is all.
	Unsettled bool
	Open      []string
}

// Check judges events in any order; those with equal times happened in the
// order in which they are given. Keys are judged separately, since locks are
// local. It never changes the events and never panics, and it may be called
// concurrently. It takes O(n log n) time for n events, O(n) if they are sorted,
// and if a question is open a bounded number of steps of a search for each event.
func Check(spec Spec, events []Event, opts Options) Result {
	for i := 1; i < len(events); i++ {
		if events[i].Time < events[i-1].Time {
			events = slices.Clone(events)
			slices.SortStableFunc(events, func(a, b Event) int { return cmp.Compare(a.Time, b.Time) })
			break
		}
	}
	c := run(spec, events, opts)
	r, open := c.conclusion()
	if !open || opts.Search || r.Verdict != Unknown && !opts.All {
		return r
	}
	if len(r.Violations) > 0 || c.failed != nil {
		// What the rules say is to be confirmed, too.
		opts.Search, opts.Locks, opts.Found = true, r.Open, nil
		r, _ = run(spec, events, opts).conclusion()
		return r
	}
	c.buffer = newKept(spec, opts.Strict)
	c.buffer.choose(r.Open)
	c.buffer.fill(events)
	r, _ = c.conclusion()
	return r
}

// run judges sorted events.
func run(spec Spec, events []Event, opts Options) *Checker {
	c := New(spec, opts)
	for i := range events {
		if c.add(&events[i]) != nil {
			break
		}
	}
	return c
}
