package linear

import (
	"cmp"
	"slices"
	"time"
)

// A Spec is the kind of lock that a history is judged against. [Mutex], [Reentrant], [Lease],
// [Fenced], [Multi], [Semaphore], [MutexTokens] and [ReadWrite] return one; the zero value is a
// mutex. docs/checker.md has the sequential semantics of each.
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

// Mutex returns the specification of a lock that only its owner can release.
func Mutex() Spec { return Spec{} }

// Reentrant returns the specification of a mutex that its owner may hold up to limit times. The
// lock is free when its owner has released it as often. A limit below 1 means no limit.
func Reentrant(limit int) Spec { return Spec{kind: reentrantKind, limit: max(limit, 0)} }

// Lease returns the specification of a mutex that may be lost when time passes.
func Lease(e Expiry) Spec {
	if e == ByServer {
		return Spec{kind: servedKind, expiry: e}
	}
	return Spec{kind: leaseKind, expiry: e}
}

// Fenced returns the specification of a lock with strictly increasing tokens and of a resource that
// rejects tokens smaller than one that it has accepted. Tokens increase in the order of
// acquisition. A hold is exclusive until the Lease of its acquire; for an acquire without a Lease,
// only the tokens are judged.
func Fenced() Spec { return Spec{kind: fencedKind} }

// Multi returns the specification of a mutex over several keys at once. The Key of an operation
// lists the keys, separated by spaces and in any order; the operation takes or frees all of them in
// one step.
func Multi() Spec { return Spec{kind: multiKind} }

// MaxPermits is the largest number of permits of a semaphore and of an operation.
const MaxPermits = 1 << 30

// Semaphore returns the specification of a semaphore with n permits. A client can release only
// permits that it acquired. An n below 1 means 1, and an n above [MaxPermits] means MaxPermits.
func Semaphore(n int) Spec { return Spec{kind: semaphoreKind, limit: min(max(n, 1), MaxPermits)} }

// MutexTokens returns the specification of a mutex with strictly increasing tokens and of a
// resource that rejects tokens smaller than one that it has accepted.
func MutexTokens() Spec { return Spec{kind: tokensKind} }

// ReadWrite returns the specification of a lock for one writer or several readers. Every holder may
// acquire again. A writer may also read; a reader cannot write before it has released. Event.Shared
// distinguishes reading from writing.
func ReadWrite() Spec { return Spec{kind: readWriteKind} }

// An Expiry is what the history says about the end of leases. The zero value is Believed.
type Expiry uint8

// The kinds of expiry. Leases include their beginning and exclude their end.
const (
	// Believed: the lock is not lost before Event.Lease, and may last longer. If Event.Lease is 0,
	// the lock may be lost at any time after the return.
	Believed Expiry = iota
	// Known: as Believed, and the client owns nothing from Event.Lease on.
	Known
	// NotKnown: Event.Lease is ignored; the lock may be lost at any time after the return of its
	// acquire or extend.
	NotKnown
	// ByServer: the lock is lost at an event with the phase Expired, and at no other time.
	// Event.Lease is ignored.
	ByServer
)

// Options set how strictly a history is judged and what is reported. The zero value is valid.
type Options struct {
	// Strict requires that another client held, or may have held, the lock whenever a TryAcquire
	// returned fail.
	Strict bool
	// Skew is the maximum error of any timestamp, in either direction. A violation that clock
	// errors of two clients could explain is then possible, not certain. Negative values count as
	// 0.
	Skew time.Duration
	// All requests every violation; a Result lists at most [MaxViolations] of them. Without All,
	// only the first certain violation is reported or, if none is certain, the first.
	All bool
	// Found, if not nil, is called by [Checker.Add] with each reported violation: once, as soon as
	// the violation is proven and complete, even if the list is full. Without All, Found is called
	// at most once with a possible violation and then at most once with a certain one. Found must
	// not change the violation. Violations found only at the end of the history or by a search
	// appear only in Result.
	Found func(Violation)
	// Held, if not nil, is called with each interval in which, by the rules, a client must have
	// held the lock. [Checker.Add] calls Held when the interval is over and only a failing release
	// can change it; Result calls Held with the intervals that are open at the end. An interval
	// that turns out to be longer is reported again, with the same Event. Intervals that only a
	// search can find are not reported.
	Held func(Held)
	// Search makes a [Checker] answer the questions that the rules leave open by searching for an
	// order, within the bounds that docs/checker.md states. The search keeps all events and takes
	// much more time. Without Search, a violation of a lock with an open question is not certain.
	// [Check] searches without this option where a question is open.
	Search bool
	// Locks are the only keys to search, such as those of [Result.Open] of an earlier run; empty
	// means all keys. Locks is ignored for a Multi.
	Locks []string
}

// A Verdict is the conclusion about a history. The zero value is not valid.
type Verdict string

// The verdicts. Invalid takes precedence over Unknown, and Unknown over Valid: a history that was
// not understood is never valid.
const (
	Valid   Verdict = "valid"
	Invalid Verdict = "invalid"
	Unknown Verdict = "unknown"
)

// A Rule is the rule that a [Violation] breaks.
type Rule string

// The rules.
const (
	// Overlap: two holds that must have lasted overlap.
	Overlap Rule = "overlap"
	// Reacquire: a client acquired a lock that it already held as often as allowed.
	Reacquire Rule = "again"
	// NotHeld: a release or extend succeeded without a hold.
	NotHeld Rule = "not-held"
	// Busy: a try returned busy, and no client can have held the lock (Options.Strict).
	Busy Rule = "busy"
	// Permits: more permits were held than the semaphore has.
	Permits Rule = "permits"
	// TokenOrder: a token is not larger than the token of an earlier acquire.
	TokenOrder Rule = "token-order"
	// TokenBack: the resource accepted a token smaller than an accepted one.
	TokenBack Rule = "token-back"
	// TokenNotIssued: the resource accepted a token that its client cannot have got.
	TokenNotIssued Rule = "token-not-issued"
	// NoOrder: a search found that no order explains the events up to this event. An order explains
	// the events before it.
	NoOrder Rule = "no-order"
)

// A Violation is a proof that a history has no legal order.
type Violation struct {
	Rule Rule
	Key  string
	// Events are copies of the events that prove the violation, in order. An overlap has one event
	// for each of two holds; Permits has one for each hold.
	Events []Event
	// Clients is set for Overlap and Permits: the largest set of clients that held at the same
	// time, sorted. From is when the last of the holds began; To is when the first of them, or the
	// history, ended. The interval includes From and excludes To. For a hold that only its release
	// proves, which lasts an instant, From is the invocation and To the return of the release.
	Clients  []string
	From, To time.Duration
	// Certain reports whether the violation remains for every clock error up to Options.Skew.
	Certain bool
	Message string // one sentence
}

// A Held is an interval in which a client must have held a lock, or permits of a semaphore.
type Held struct {
	Client, Key string
	// Event proves the hold: the return of its acquire or, if the acquire has an unknown outcome,
	// the release that would have failed without the hold.
	Event Event
	// The interval includes From and excludes To. Open reports that the hold lasted at the end of
	// the history, which is To.
	From, To time.Duration
	Open     bool
	// Brief reports that the hold lasted at least an instant somewhere between From and To.
	Brief   bool
	Permits int
}

// A Result is the result of [Check] or [Checker.Result].
type Result struct {
	Verdict    Verdict
	Violations []Violation // in the order in which they were proven complete
	Omitted    int         // number of violations found but not listed
	Ops        int         // number of invocations and uses of tokens
	Unknown    int         // number of them with an unknown outcome
	Reason     string      // reason for the verdict Unknown; empty otherwise
	// Unsettled reports that only a search can decide more. Open lists the keys concerned, sorted;
	// empty means all keys.
	Unsettled bool
	Open      []string
}

// Check returns the verdict on events in any order. Events with equal times are ordered as given.
// Keys are judged separately, because linearizability is local. Check never changes the events and
// never panics, and may be called concurrently. Check takes O(n log n) time for n events, O(n) if
// they are sorted, and, if a question is open, a bounded number of search steps for each event.
func Check(spec Spec, events []Event, opts Options) Result {
	events = inOrder(events)
	c := run(spec, events, opts)
	r, open := c.conclusion()
	if !open || opts.Search || r.Verdict != Unknown && !opts.All {
		return r
	}
	if len(r.Violations) > 0 || c.failed != nil {
		// A search must confirm the violations that depend on open questions.
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

// inOrder returns events in the order of their times; the list itself if it is in order.
func inOrder(events []Event) []Event {
	for i := 1; i < len(events); i++ {
		if events[i].Time < events[i-1].Time {
			events = slices.Clone(events)
			slices.SortStableFunc(events, func(a, b Event) int { return cmp.Compare(a.Time, b.Time) })
			break
		}
	}
	return events
}

// run returns a Checker after the sorted events; it stops at the first invalid event.
func run(spec Spec, events []Event, opts Options) *Checker {
	c := New(spec, opts)
	for i := range events {
		if c.add(&events[i]) != nil {
			break
		}
	}
	return c
}
