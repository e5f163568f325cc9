package linear

import (
	"cmp"
	"slices"
)

// held is what one actor holds of a lock: the number of times or permits, and the grant.
type held struct {
	actor   int32
	count   int32
	grant   int32 // the operation of its latest grant, or atOnce
	reading bool
}

// atOnce is the grant of a hold that may end as soon as it begins.
const atOnce = -1

// A model is the sequential specification of one kind of lock: whether an acquire can take effect
// with given holds, and whether a try may return busy. The effects are the same for all models: an
// acquire adds to the holds of its actor, a release removes from them. The comment of each model
// repeats its specification in docs/checker.md word for word; a test compares them.
type model interface {
	// room reports whether the acquire o can take effect.
	room(holds []held, o *operation) bool
	// busy reports whether the try o can return busy.
	busy(holds []held, o *operation) bool
	// stands reports whether a smaller h might let the acquire o take effect earlier.
	stands(h *held, o *operation) bool
}

// single is the model of a lock with one owner, which can acquire it up to limit times.
//
// Mutex. State: an owner, or none. acquire, try: no owner → owner c. release: owner c → none.
// crash: if owner c → nobody, who may release at any time.
//
// Reentrant(limit). State: an owner and a count. acquire, try: no owner → c, 1; or owner c and
// count < limit → count+1. release: owner c → count-1, at 0 no owner. crash: as Mutex. Mutex is
// Reentrant(1).
//
// Lease. As Mutex, and each grant (an acquire or extend that takes effect) may *expire*, which
// makes the owner none if the grant is still the latest. extend: owner c → a new grant. When a
// grant expires depends on what is known:
//
// Fenced. State: the last token, the tokens of each client, the largest accepted, and who holds, as
// Lease (Believed). acquire with token t: t > last, and nobody holds, not even c → last = t, t is
// c's, and c holds; without a `Lease` this hold may be over at once. An acquire of unknown outcome
// may give any token. use of t, accepted: t is c's, or no larger than one that an acquire returned
// to c, or may return yet (one that returned unknown, or whose client crashed, does not); and t ≥
// the largest accepted → that is t. It may come before the return of its acquire. A use that is
// turned away needs nothing, nor does a release, which ends what c holds, if anything. An extend
// needs that c holds. One order explains tokens and leases. An acquire that returned ok without a
// token is not taken for one with token 0: nothing is known of what it gave, so its client may use
// any, and the verdict is unknown at best.
//
// Mutex with tokens. As Mutex, and the tokens are as with Fenced.
//
// Lease by the server's clock. As Mutex, and the history has an event for each lease that ended, by
// the clock of the server that keeps it. extend: owner c → owner c. expired: owner c → none. So a
// lease ends when the server says so and at no other time, whatever was told of its end; neither
// renewals nor a clock that is set need a rule of their own. A crash leaves what the client held to
// nobody, as always.
type single struct{ limit int32 }

func (m single) room(holds []held, o *operation) bool {
	return len(holds) == 0 || holds[0].actor == o.actor && holds[0].count < m.limit
}
func (m single) busy(holds []held, o *operation) bool { return len(holds) > 0 }
func (m single) stands(h *held, o *operation) bool    { return true }

// several is the model of one mutex for each key, acquired together.
//
// Multi. State: an owner for each key. An operation's key lists several, in any order. acquire: all
// of them free → all are c's, by this list. release: all are c's by this list → all free. crash:
// all that are c's are nobody's, each of whom may release at any time.
type several struct{ actors []actor }

func (m several) room(holds []held, o *operation) bool { return !m.busy(holds, o) }
func (m several) busy(holds []held, o *operation) bool {
	return slices.ContainsFunc(holds, func(h held) bool { return m.stands(&h, o) })
}
func (m several) stands(h *held, o *operation) bool {
	a, b := m.actors[h.actor].keys, m.actors[o.actor].keys
	for len(a) > 0 && len(b) > 0 { // both are sorted
		switch c := cmp.Compare(a[0], b[0]); {
		case c == 0:
			return true
		case c < 0:
			a = a[1:]
		default:
			b = b[1:]
		}
	}
	return false
}

// out returns the total number of permits held.
func out(holds []held) (n int64) {
	for i := range holds {
		n += int64(holds[i].count)
	}
	return n
}

// permitted is the model of a semaphore with n permits.
//
// Semaphore(n). State: a count for each client. acquire of k permits: the sum of counts + k ≤ n →
// c's count + k. release of k: c's count ≥ k → count - k. crash: what c has is nobody's, who may
// release one permit at a time.
type permitted struct{ n int64 }

func (m permitted) room(holds []held, o *operation) bool {
	return int64(o.permits)+out(holds) <= m.n
}
func (m permitted) busy(holds []held, o *operation) bool { return !m.room(holds, o) }
func (m permitted) stands(h *held, o *operation) bool    { return true }

// readWrite is the model of a lock for one writer, which may also read, or for several readers.
//
// Read–write. State: a writer with a count, readers with counts. Operations are for writing or,
// with `Shared`, for reading. acquire to write: the writer is c → count+1; neither writer nor
// readers → c. acquire to read: no writer, or c → c reads once more. release: what is released c
// has → one less. crash: what c writes and what c reads is nobody's, each by itself. So who writes
// may read beside and go on reading; who reads can't write before it has released. It is
// Redisson's.
type readWrite struct{}

func (m readWrite) room(holds []held, o *operation) bool {
	writes := slices.ContainsFunc(holds, func(h held) bool { return !h.reading && h.actor == o.actor })
	for i := range holds {
		h := &holds[i]
		if h.actor == o.actor && !h.reading || h.reading && (o.reading || writes) {
			continue
		}
		return false
	}
	return true
}
func (m readWrite) busy(holds []held, o *operation) bool { return !m.room(holds, o) }
func (m readWrite) stands(h *held, o *operation) bool    { return !h.reading || !o.reading }
