package checker

import (
	"slices"
	"sort"
	"time"
)

// An interval is a range of event indices of one client: it covers the events after begin and
// before end.
type interval struct {
	client     int
	begin, end int
}

// intervals answers whether a client other than a given client has an interval in a range. The zero
// value is empty; newIntervals returns a filled one.
type intervals struct {
	items []interval // by begin
	// top[i] is the index of the interval in items[:i+1] that ends last. next[i] is the index of
	// the interval that ends last among those of clients other than top's; -1 if there are none.
	top, next []int
}

func newIntervals(items []interval) intervals {
	slices.SortStableFunc(items, func(a, b interval) int { return a.begin - b.begin })
	s := intervals{items: items, top: make([]int, len(items)), next: make([]int, len(items))}
	top, next := -1, -1
	for i, item := range items {
		switch {
		case top < 0:
			top = i
		case item.client == items[top].client:
			if item.end > items[top].end {
				top = i
			}
		case item.end > items[top].end:
			top, next = i, top
		case next < 0 || item.end > items[next].end:
			next = i
		}
		s.top[i], s.next[i] = top, next
	}
	return s
}

// other returns an interval of a client other than x that begins before to and ends after from, or
// -1. The result ends last of all such intervals.
func (s intervals) other(x, from, to int) int {
	p := sort.Search(len(s.items), func(i int) bool { return s.items[i].begin >= to }) - 1
	if p < 0 {
		return -1
	}
	at := s.top[p]
	if s.items[at].client == x {
		at = s.next[p]
	}
	if at < 0 || s.items[at].end <= from {
		return -1
	}
	return at
}

// A timeRange is an interval of time.
type timeRange struct{ from, to time.Duration }

func (s timeRange) length() time.Duration { return s.to - s.from }

// within returns the part of s that lies in o; its length may be negative.
func (s timeRange) within(o timeRange) timeRange {
	return timeRange{max(s.from, o.from), min(s.to, o.to)}
}

// longEnough returns the first part of s outside the given pauses that is at least bound long. The
// pauses must be disjoint and in order.
func (s timeRange) longEnough(bound time.Duration, pauses []pause) (timeRange, bool) {
	first := sort.Search(len(pauses), func(i int) bool { return pauses[i].to > s.from })
	for _, p := range pauses[first:] {
		if p.from >= s.to {
			break
		}
		if part := (timeRange{s.from, p.from}); part.length() >= bound {
			return part, true
		}
		s.from = max(s.from, p.to)
	}
	return s, s.length() >= bound
}
