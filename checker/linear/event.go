// Package linear decides whether what clients were told by a lock can be
// explained by a lock that works: linearizability of locks, in O(n log n) time
// where general checkers search. docs/checker.md has the specifications and the
// proof.
//
// Events come in, in any history format that package histories reads; a
// [Result] goes out. Of this module it imports nothing.
package linear

import "time"

// An Event is one line of a history of lock operations: a call, its return, the
// death of a client, the use of a fencing token, or the end of a lease. The zero value is not valid.
type Event struct {
	// Time is when it happened, on the one clock that the history was
	// recorded with, since any fixed moment.
	Time   time.Duration
	Client string
	Key    string // the lock; histories of one lock may leave it empty
	Phase  Phase
	Op     Op
	// Shared says that an operation of a read-write lock is about reading.
	Shared bool
	// Token is the fencing token that an acquire returned or a use
	// presented; 0 means none.
	Token int64
	// Lease is until when an acquire or extend that returned OK is good, on
	// the clock of Time; 0 means that it is not known.
	Lease time.Duration
	// Permits is how many permits of a semaphore an operation is about; 0
	// means 1.
	Permits int
	// Line is where the event stands in its file, from 1; 0 means nowhere.
	Line int
}

// A Phase says which moment of an operation an [Event] is.
type Phase uint8

// The phases. A return says how the operation ended, as its caller learned it:
// Unknown means that it may or may not have taken effect. A client has at most
// one operation under way on a key; Crash ends the client's holds and whatever
// it had under way, and it may come back under the same name.
const (
	Invoke Phase = 1 + iota
	ReturnOK
	ReturnFail
	ReturnUnknown
	Crash
	// Expired is the server's word that a client's lease of Key has ended, by its own clock: for
	// [ByServer] alone. It has no call, and no Op.
	Expired
)

// An Op is an operation of a lock.
type Op uint8

// The operations. TryAcquire is an acquire that says busy instead of waiting.
// Use is the protected resource's answer to a write with a token: it has no
// call, only ReturnOK (accepted) or ReturnFail (turned away).
const (
	Acquire Op = 1 + iota
	TryAcquire
	Release
	Extend
	Use
)

// String returns the operation's name, as in CSV; empty if it is none.
func (o Op) String() string {
	switch o {
	case Acquire:
		return "acquire"
	case TryAcquire:
		return "try"
	case Release:
		return "release"
	case Extend:
		return "extend"
	case Use:
		return "use"
	}
	return ""
}
