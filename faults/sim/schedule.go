package sim

import (
	"cmp"
	"container/heap"
	"time"
)

// item is something that will happen at a time. Two items of one time happen
// in the order of their rank, and only then in the order in which they were
// planned: goroutines that woke at one instant plan in any order, so what they
// plan must be told apart by what it is.
type item struct {
	due  time.Time
	rank string
	seq  uint64
	run  func() // called with World.mu held
	dead bool
}

// schedule is what will happen. The zero value is empty.
type schedule struct {
	items itemHeap
	seq   uint64
}

// plan adds an item; setting dead on what it returns takes it out again.
func (s *schedule) plan(due time.Time, rank string, run func()) *item {
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

type itemHeap []*item

func (h itemHeap) Len() int { return len(h) }
func (h itemHeap) Less(i, j int) bool {
	a, b := h[i], h[j]
	if c := a.due.Compare(b.due); c != 0 {
		return c < 0
	}
	return cmp.Or(cmp.Compare(a.rank, b.rank), cmp.Compare(a.seq, b.seq)) < 0
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
