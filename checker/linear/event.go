// Package linear decides whether the results that clients got from a lock are linearizable: whether
// a correct lock could have given them. [Check] takes O(n log n) time for questions that general
// checkers answer by a search. docs/checker.md has the specifications and the proof.
//
// Events come in, from any history format that package history reads; a [Result] goes out. The
// package imports nothing else of this module.
package linear

import "time"

// An Event is one event of a history of lock operations: an invocation, a return, the crash of a
// client, the use of a fencing token, or the end of a lease. The zero value is not valid.
type Event struct {
	// Time is when the event happened, on the clock that recorded the history, since any fixed
	// moment.
	Time   time.Duration
	Client string
	Key    string // the lock; histories of one lock may leave it empty
	Phase  Phase
	Op     Op
	// Shared marks an operation on the read side of a read-write lock.
	Shared bool
	// Token is the fencing token that an acquire returned or that a use presented; 0 means none.
	Token int64
	// Lease is the end of the validity of an acquire or extend that returned OK, on the clock of
	// Time; 0 means unknown.
	Lease time.Duration
	// Permits is the number of semaphore permits of the operation; 0 means 1.
	Permits int
	// Line is the line of the event in its file, from 1; 0 means no file.
	Line int
}

// A Phase is the moment of an operation that an [Event] records.
type Phase uint8

// The phases. A return reports how the operation ended for its caller; ReturnUnknown means that the
// operation may or may not have taken effect. A client has at most one operation under way on a
// key. Crash ends the client's holds and its operations under way; the client may come back under
// the same name.
const (
	Invoke Phase = 1 + iota
	ReturnOK
	ReturnFail
	ReturnUnknown
	Crash
	// Expired is the end of a client's lease of Key by the server's clock, for [ByServer] only. The
	// event has no invocation and no Op.
	Expired
)

// An Op is an operation of a lock.
type Op uint8

// The operations. TryAcquire is an acquire that returns busy instead of waiting. Use is the
// protected resource's decision on a write with a token: it has no invocation, only ReturnOK
// (accepted) or ReturnFail (rejected).
const (
	Acquire Op = 1 + iota
	TryAcquire
	Release
	Extend
	Use
)

// String returns the operation's name, as in CSV; empty for an invalid operation.
func (o Op) String() string {
	names := [...]string{Acquire: "acquire", TryAcquire: "try", Release: "release", Extend: "extend", Use: "use"}
	if int(o) < len(names) {
		return names[o]
	}
	return ""
}
