package linear

import "math"

// traits are what kinds of lock differ in, beside who can acquire, which is the model's.
type traits struct {
	ruled   bool // there are rules, and a search answers what they leave open; others are judged by searches alone
	tokens  bool // acquires give tokens that grow
	leases  bool // grants may end by themselves, and can be extended
	tied    bool // an operation is about several keys, so that no key can be judged apart
	counted bool // an operation is about permits, and what is nobody's ends one by one
	shares  bool // an operation is for writing or for reading
	served  bool // the server tells when leases end, as events
	lax     bool // a release needs nothing, and a grant that tells no lease may be over at once
}

// whole returns the key of the lock that a key is judged as part of: tied ones are one.
func (t traits) whole(key string) string {
	if t.tied {
		return ""
	}
	return key
}

// The one place that knows which kind has which.
func (s Spec) traits() traits {
	switch s.kind {
	case leaseKind:
		return traits{ruled: true, leases: true}
	case fencedKind:
		return traits{ruled: true, leases: true, tokens: true, lax: true}
	case multiKind:
		return traits{ruled: true, tied: true}
	case semaphoreKind:
		return traits{ruled: true, counted: true}
	case tokensKind:
		return traits{tokens: true}
	case readWriteKind:
		return traits{shares: true}
	case servedKind:
		return traits{served: true}
	}
	return traits{ruled: true}
}

// model returns the specification of who can acquire. Actors are those of the history.
func (s Spec) model(actors []actor) model {
	switch s.kind {
	case reentrantKind:
		return single{int32(min(s.often(), farAway))}
	case multiKind:
		return several{actors}
	case semaphoreKind:
		return permitted{int64(max(s.limit, 1))}
	case readWriteKind:
		return readWrite{}
	}
	return single{1}
}

// often is how often one client may hold, or how many permits there are.
func (s Spec) often() int {
	switch {
	case s.kind == reentrantKind && s.limit == 0:
		return math.MaxInt32
	case s.kind == reentrantKind || s.kind == semaphoreKind:
		return min(max(s.limit, 1), math.MaxInt32)
	}
	return 1
}

// A term is from when on a grant may end by itself.
type term uint8

const (
	endless   term = iota
	whenSaid       // the end that its return told
	onceTold       // its return
	onceBegun      // its beginning
)

// term is that of a grant whose return is e.
func (s Spec) term(e *Event) term {
	t := s.traits()
	switch said := e.Lease != 0 && s.expiry != NotKnown; {
	case !t.leases:
		return endless
	case said && !s.over(e):
		return whenSaid
	case t.lax && e.Op != Extend:
		return onceBegun
	}
	return onceTold
}

// over says whether what an event grants is over before its client hears of it.
func (s Spec) over(e *Event) bool {
	return s.traits().leases && s.expiry != NotKnown && e.Lease != 0 && e.Lease <= e.Time
}
