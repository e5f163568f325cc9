package linear

import "math"

// traits are the properties of a kind of lock, except for the condition of an acquire, which is the
// model's.
type traits struct {
	ruled   bool // the kind has rules; a search decides only what they leave open
	tokens  bool // acquires return increasing tokens
	leases  bool // grants may end without a release, and can be extended
	tied    bool // operations have several keys, so keys cannot be judged separately
	counted bool // operations have permits, and a nobody releases them one by one
	shares  bool // operations are for writing or for reading
	served  bool // events report when leases end by the server's clock
	lax     bool // a release needs no hold, and a grant without a lease may be over at once
}

// whole returns the key of the lock that is judged for a key: with tied keys, all keys are one
// lock.
func (t traits) whole(key string) string {
	if t.tied {
		return ""
	}
	return key
}

// traits returns the traits of the kind. No other place maps kinds to traits.
func (s Spec) traits() traits { return traitsOf[s.kind] }

// traitsOf holds the traits of each kind.
var traitsOf = [...]traits{
	mutexKind:     {ruled: true},
	reentrantKind: {ruled: true},
	leaseKind:     {ruled: true, leases: true},
	fencedKind:    {ruled: true, leases: true, tokens: true, lax: true},
	multiKind:     {ruled: true, tied: true},
	semaphoreKind: {ruled: true, counted: true},
	tokensKind:    {tokens: true},
	readWriteKind: {shares: true},
	servedKind:    {served: true},
}

// model returns the model for the actors of a history.
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

// often returns how many times one client may hold the lock, or the number of permits.
func (s Spec) often() int {
	switch {
	case s.kind == reentrantKind && s.limit == 0:
		return math.MaxInt32
	case s.kind == reentrantKind || s.kind == semaphoreKind:
		return min(max(s.limit, 1), math.MaxInt32)
	}
	return 1
}

// A term is the moment from which a grant may end without a release.
type term uint8

const (
	endless   term = iota
	whenSaid       // the end in its return
	onceTold       // its return
	onceBegun      // its beginning
)

// term returns the term of a grant with the return e.
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

// over reports whether the grant of an event is over before its client receives it.
func (s Spec) over(e *Event) bool {
	return s.traits().leases && s.expiry != NotKnown && e.Lease != 0 && e.Lease <= e.Time
}
