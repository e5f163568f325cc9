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

// item is a planned action. Items of one time run in the order of their rank, and then in the order
// in which they were planned. Goroutines that woke at one instant plan in any order, so the rank
// must distinguish their items by content.
type item struct {
	due  time.Time
	rank rank
	seq  uint64
	run  func() // called with World.mu held
	dead bool

	travels bool // the item is data on its way on a client's link
}

// rank describes the subject of an item.
type rank struct {
	who     string // a client, or a server's name after servers; servers sort after clients
	where   string // the node
	what    string
	message *message // nil if the item is not about a message
}

// servers precedes the name of a server in rank.who. servers sorts after the letters that begin the
// names of clients.
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

// compare orders two messages of one client and node by their content, and then by the other bytes
// written with them in a pipeline. A connection itself has no name, because goroutines that
// connect, or take a connection from a pool, at one instant do so in any order. If two goroutines
// of one client send identical requests at the same instant, their order is therefore undefined.
func (m *message) compare(other *message) int {
	return cmp.Or(
		m.sent.Compare(other.sent),
		strings.Compare(m.command, other.command),
		slices.Compare(m.words, other.words),
		bytes.Compare(m.bytes, other.bytes),
		cmp.Compare(m.trail, other.trail),
	)
}

// schedule is the queue of planned actions. The zero value is empty.
type schedule struct {
	items itemHeap
	seq   uint64
}

// plan adds an item. Setting dead on the returned item removes it.
func (s *schedule) plan(due time.Time, rank rank, run func()) *item {
	s.seq++
	it := &item{due: due, rank: rank, seq: s.seq, run: run}
	heap.Push(&s.items, it)
	return it
}

// peek returns the next item, and false if the schedule is empty.
func (s *schedule) peek() (*item, bool) {
	for len(s.items) > 0 {
		if !s.items[0].dead {
			return s.items[0], true
		}
		heap.Pop(&s.items)
	}
	return nil, false
}

// pop removes the item that peek returned.
func (s *schedule) pop() { heap.Pop(&s.items) }

// take removes the items that which selects, and returns them in order.
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
