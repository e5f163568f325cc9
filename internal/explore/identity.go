package explore

import (
	"encoding/binary"
	"hash/fnv"
	"math"
	"slices"
	"time"

	"github.com/lockfault/lockfault/faults"
)

// This file decides what identifies a state of the search. The snapshot of a state is split into
// components (see [parts]), and each component is numbered by its key. Two components are equal if
// their keys are; a field that no key contains is not part of a state. TestKeys fails for a field
// of a snapshot that is in no key.

// An identity identifies a state: a 128-bit hash.
type identity [16]byte

// A stateKey is the encoding of a component. Every value is written with its length or as a varint, so
// different components have different keys.
type stateKey []byte

func (k *stateKey) text(s string) {
	k.number(int64(len(s)))
	*k = append(*k, s...)
}

func (k *stateKey) number(n int64) { *k = binary.AppendVarint(*k, n) }

func (k *stateKey) span(d time.Duration) { k.number(int64(d)) }

func (k *stateKey) flags(list ...bool) {
	for _, is := range list {
		n := byte(0)
		if is {
			n = 1
		}
		*k = append(*k, n)
	}
}

func (k *stateKey) held(list []faults.HeldView) {
	k.number(int64(len(list)))
	for i := range list {
		m := &list[i]
		k.text(m.Client)
		k.text(m.Node)
		k.text(string(m.Way))
		k.text(m.Command)
		k.text(m.Reply)
		k.span(m.Sent)
	}
}

// A keyed component has a key.
type keyed interface{ appendKey(k *stateKey) }

func (c common) appendKey(k *stateKey) {
	k.span(c.now)
	k.number(c.seen)
	k.text(c.owners)
}

func (n node) appendKey(k *stateKey) {
	k.number(int64(len(n)))
	for i := range n {
		s := &n[i]
		k.text(s.Name)
		k.flags(s.Up, s.Paused, s.Leads, s.Known)
		k.text(s.Data)
		k.text(s.Owner)
		k.text(s.Knows)
		k.number(int64(len(s.Talks)))
		for _, name := range s.Talks {
			k.text(name)
		}
		k.span(s.Next)
	}
}

func (c client) appendKey(k *stateKey) {
	k.text(c.Name)
	k.flags(c.Paused, c.Crashed, c.Busy, c.Holding)
	k.text(c.Observed)
	k.text(c.Watches)
	k.held(c.held)
	k.held(c.unread)
	k.number(int64(c.wrote))
}

// An interner assigns indexes from 0 to components with different keys.
type interner[T keyed] struct {
	numbers map[string]int32
	list    []T
	buffer  stateKey
}

func (s *interner[T]) index(thing T) int32 {
	s.buffer = s.buffer[:0]
	thing.appendKey(&s.buffer)
	n, ok := s.numbers[string(s.buffer)]
	if !ok {
		if s.numbers == nil {
			s.numbers = map[string]int32{}
		}
		n = int32(len(s.list))
		s.numbers[string(s.buffer)] = n
		s.list = append(s.list, thing)
	}
	return n
}

// late lists the faults that were added later: a state without them keeps the identity that it had
// before.
var late = []BudgetKind{Cancel, NodeClockBack, Hang}

// budgetKey encodes the spent budget for the identity of a state, in two parts: one before and one
// after the number of the faults that happened.
func budgetKey(spent map[BudgetKind]int) (text [2]string) {
	var early, after []byte
	for _, f := range BudgetKinds() {
		if !slices.Contains(late, f) {
			early = binary.AppendUvarint(early, uint64(spent[f]))
		}
	}
	for i, f := range late {
		if n := spent[f]; n > 0 {
			after = binary.AppendUvarint(after, uint64(-n-i*math.MaxInt32))
		}
	}
	return [2]string{string(early), string(after)}
}

// identify returns the identity of a state: a hash of everything that the continuation can depend
// on.
func (s *search) identify(p *searchNode) identity {
	b := make([]byte, 0, 256)
	number := func(n int) { b = binary.AppendUvarint(b, uint64(n)) }
	number(int(p.parts.common))
	for _, n := range p.parts.nodes {
		number(int(n))
	}
	for i, n := range p.parts.clients {
		number(int(n))
		number(p.rounds[i])
		begins := 0
		if s.bound.begins(p, i, &s.tables.clients.list[n].ClientView) {
			begins = 1
		}
		number(begins)
		if c := &s.tables.clients.list[n]; c.Busy || c.Holding {
			number(int(p.suffered[i]))
		}
	}
	b = append(b, p.budgetKey[0]...)
	number(int(p.words))
	b = append(b, p.budgetKey[1]...)
	if p.closed {
		number(0)
	}
	if p.shards != nil {
		number(p.shards.class())
	}
	h := fnv.New128a()
	h.Write(b)
	return identity(h.Sum(nil))
}
