package sim

import (
	"bytes"
	"cmp"
	"container/heap"
	"slices"
	"sort"
	"strings"
	"time"
)

// item is something that will happen at a time. Two items of one time happen
// in the order of their rank, and only then in the order in which they were
// planned: goroutines that woke at one instant plan in any order, so what they
// plan must be told apart by what it is.
type item struct {
	due  time.Time
	rank rank
	seq  uint64
	run  func() // called with World.mu held
	dead bool

	travels bool // it is on its way over a link of a client
}

// rank says what an item is about.
type rank struct {
	who     string // a client, or one of the servers, which come after all clients
	where   string // the node
	what    string
	message *message // if it is one
}

// servers stands before the name of a server in rank.who: it sorts after the
// letters that clients' names begin with.
const servers = "~ "

func (r rank) compare(other rank) int {
	if c := cmp.Or(strings.Compare(r.who, other.who), strings.Compare(r.where, other.where), strings.Compare(r.what, other.what)); c != 0 {
		return c
	}
	switch {
	case r.message == other.message:
		return 0
	case r.message == nil:
		return -1
	case other.message == nil:
		return 1
	}
	return r.message.compare(other.message)
}

// compare tells two messages of one client and node apart by what they say, and
// then by what else was said with them on their connections, in a pipeline. A
// connection itself has no name: goroutines that connect, or take one from a
// pool, at one instant do so in any order. So where two goroutines of one client
// say the very same at the same instant, it is left open which of them is which.
func (m *message) compare(other *message) int {
	return cmp.Or(
		m.sent.Compare(other.sent),
		strings.Compare(m.command, other.command),
		slices.Compare(m.words, other.words),
		bytes.Compare(m.bytes, other.bytes),
		cmp.Compare(m.trail, other.trail),
	)
}

// schedule is what will happen. The zero value is empty.
type schedule struct {
	items itemHeap
	seq   uint64
}

// plan adds an item; setting dead on what it returns takes it out again.
func (s *schedule) plan(due time.Time, rank rank, run func()) *item {
	s.seq++
	it := &item{due: due, rank: rank, seq: s.seq, run: run}
	heap.Push(&s.items, it)
	return it
}

// peek returns the next item.
func (s *schedule) peek() (*item, bool) {
	for len(s.items) > 0 {
		if !s.items[0].dead {
			return s.items[0], true
		}
		heap.Pop(&s.items)
	}
	return nil, false
}

// pop takes the next item out.
func (s *schedule) pop() { heap.Pop(&s.items) }

// take takes some items out, in order.
func (s *schedule) take(which func(*item) bool) []*item {
	var taken itemHeap
	for _, it := range s.items {
		if !it.dead && which(it) {
			it.dead = true
			taken = append(taken, it)
		}
	}
	sort.Sort(taken)
	return taken
}

type itemHeap []*item

func (h itemHeap) Len() int { return len(h) }
func (h itemHeap) Less(i, j int) bool {
	a, b := h[i], h[j]
	if c := a.due.Compare(b.due); c != 0 {
		return c < 0
	}
	if c := a.rank.compare(b.rank); c != 0 {
		return c < 0
	}
	return a.seq < b.seq
}
func (h itemHeap) Swap(i, j int) { h[i], h[j] = h[j], h[i] }
func (h *itemHeap) Push(x any)   { *h = append(*h, x.(*item)) }
func (h *itemHeap) Pop() any {
	old := *h
	last := old[len(old)-1]
	old[len(old)-1] = nil
	*h = old[:len(old)-1]
	return last
}
