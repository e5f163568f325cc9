package linear

import (
	"cmp"
	"slices"
)

// What one actor has of a lock is held: so many times or permits, and by which grant.
type held struct {
	actor   int32
	count   int32
	grant   int32 // the operation that granted it last, or atOnce
	reading bool
}

// atOnce is the grant of a hold that may end as soon as it has begun.
const atOnce = -1

// A model is the sequential specification of one kind of lock: who can acquire when
// these hold, and when a try may be told busy. The rest is the same for all
// of them: an acquire adds to what its actor has, a release takes away. docs/checker.md
// has each in words.
type model interface {
	// room says whether the acquire o can take effect.
	room(holds []held, o *operation) bool
	// busy says whether the try o can be told that somebody holds.
	busy(holds []held, o *operation) bool
	// stands says whether the acquire o might take effect sooner if h were less.
	stands(h *held, o *operation) bool
}

// single is a lock of one owner, who can acquire it up to limit times.
type single struct{ limit int32 }

func (m single) room(holds []held, o *operation) bool {
	return len(holds) == 0 || holds[0].actor == o.actor && holds[0].count < m.limit
}
func (m single) busy(holds []held, o *operation) bool { return len(holds) > 0 }
func (m single) stands(h *held, o *operation) bool    { return true }

// several is a mutex for each key, acquired together.
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

// out counts permits.
func out(holds []held) (n int64) {
	for i := range holds {
		n += int64(holds[i].count)
	}
	return n
}

// permitted is a semaphore with n permits.
type permitted struct{ n int64 }

func (m permitted) room(holds []held, o *operation) bool {
	return int64(o.permits)+out(holds) <= m.n
}
func (m permitted) busy(holds []held, o *operation) bool { return !m.room(holds, o) }
func (m permitted) stands(h *held, o *operation) bool    { return true }

// readWrite is a lock of one writer, who may read beside, or of several readers.
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
