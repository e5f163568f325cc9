package linear

import (
	"cmp"
	"encoding/binary"
	"slices"
)

// A state is the state of the locks at one instant of one legal order of the events so far. Its
// slices are shared and must not be changed.
type state struct {
	holds []held  // by actor; within an actor, reading last
	done  []int32 // operations under way that have taken effect
	seen  []int32 // tries under way that must fail and have found the lock taken
	used  []use   // for each reserve, the number of operations that have taken effect

	last, accepted int64        // the largest issued token, and the largest accepted token
	given          []tokenGrant // tokens that actors have got
}

type use struct{ reserve, n int32 }

func (st *state) held(actor int32, reading bool) (int, bool) {
	return slices.BinarySearchFunc(st.holds, held{actor: actor, reading: reading}, func(a, b held) int {
		if c := cmp.Compare(a.actor, b.actor); c != 0 || a.reading == b.reading {
			return c
		}
		if a.reading {
			return 1
		}
		return -1
	})
}

// count returns the number of times, or of permits, that an actor holds.
func (st *state) count(actor int32, reading bool) int32 {
	if i, ok := st.held(actor, reading); ok {
		return st.holds[i].count
	}
	return 0
}

// taking returns the state with n added to a hold; n may be negative.
func (st state) taking(actor int32, reading bool, n, grant int32) state {
	i, ok := st.held(actor, reading)
	holds := make([]held, 0, len(st.holds)+1)
	holds = append(holds, st.holds[:i]...)
	h := held{actor: actor, grant: grant, reading: reading}
	if ok {
		h.count = st.holds[i].count
		i++
	}
	if h.count += n; h.count > 0 {
		holds = append(holds, h)
	}
	st.holds = append(holds, st.holds[i:]...)
	return st
}

func including(list []int32, x int32) []int32 {
	i, ok := slices.BinarySearch(list, x)
	if ok {
		return list
	}
	return append(append(append(make([]int32, 0, len(list)+1), list[:i]...), x), list[i:]...)
}

func without(list []int32, x int32) []int32 {
	i, ok := slices.BinarySearch(list, x)
	if !ok {
		return list
	}
	return append(append(make([]int32, 0, len(list)), list[:i]...), list[i+1:]...)
}

func has(list []int32, x int32) bool {
	_, ok := slices.BinarySearch(list, x)
	return ok
}

func (st *state) uses(reserve int32) int32 {
	for _, u := range st.used {
		if u.reserve == reserve {
			return u.n
		}
	}
	return 0
}

func (st state) using(reserve int32) state {
	used := slices.Clone(st.used)
	i, ok := slices.BinarySearchFunc(used, reserve, func(u use, s int32) int { return cmp.Compare(u.reserve, s) })
	if ok {
		used[i].n++
	} else {
		used = slices.Insert(used, i, use{reserve, 1})
	}
	st.used = used
	return st
}

// forgetting returns the state without a reserve whose time is over.
func (st state) forgetting(reserve int32) state {
	if st.uses(reserve) > 0 {
		st.used = slices.DeleteFunc(slices.Clone(st.used), func(u use) bool { return u.reserve == reserve })
	}
	return st
}

// key appends an encoding of the state: two states are equal if their keys are.
func (st *state) key(to []byte) []byte {
	to = binary.AppendUvarint(to, uint64(len(st.holds)))
	for i := range st.holds {
		h := &st.holds[i]
		mode := uint64(0)
		if h.reading {
			mode = 1
		}
		to = binary.AppendUvarint(to, uint64(h.actor)<<1|mode)
		to = binary.AppendUvarint(to, uint64(h.count))
		to = binary.AppendVarint(to, int64(h.grant))
	}
	for _, list := range [][]int32{st.done, st.seen} {
		to = binary.AppendUvarint(to, uint64(len(list)))
		for _, x := range list {
			to = binary.AppendUvarint(to, uint64(x))
		}
	}
	to = binary.AppendUvarint(to, uint64(len(st.used)))
	for _, u := range st.used {
		to = binary.AppendUvarint(to, uint64(u.reserve))
		to = binary.AppendUvarint(to, uint64(u.n))
	}
	to = binary.AppendVarint(to, st.last)
	to = binary.AppendVarint(to, st.accepted)
	for _, g := range st.given {
		known := uint64(0)
		if g.known {
			known = 1
		}
		to = binary.AppendUvarint(to, uint64(g.actor)<<1|known)
		to = binary.AppendVarint(to, g.token)
	}
	return to
}
