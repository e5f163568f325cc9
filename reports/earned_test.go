package reports

import (
	"testing"

	"github.com/lockfault/lockfault/checker"
	"github.com/lockfault/lockfault/internal/leases"
)

// TestSoleHolds checks which holds overlap no other.
func TestSoleHolds(t *testing.T) {
	var h checker.History
	call := 0
	op := func(client string, op checker.Op) {
		call++
		for _, kind := range []checker.Kind{checker.Invoke, checker.Return} {
			e := checker.Event{Index: len(h.Events), Kind: kind, Client: client, Op: op, Call: call}
			if kind == checker.Return {
				e.Result = checker.OK
			}
			h.Events = append(h.Events, e)
		}
	}
	h.Meta.Clients = []string{"A", "B", "C"}
	op("A", checker.Acquire)
	op("A", checker.Release) // sole
	op("A", checker.Acquire)
	op("B", checker.Acquire) // two that overlap
	op("B", checker.Release)
	op("A", checker.Release)
	op("C", checker.Acquire) // sole
	if n := soleHolds(checker.Holds(h)); n != 2 {
		t.Errorf("%d holds overlap no other, want 2", n)
	}
}

// TestEarned checks that a lock that does less is no better.
func TestEarned(t *testing.T) {
	bug := []leases.Finding{{Anomaly: checker.Unavailable, Outcome: leases.Bug}}
	for _, c := range []struct {
		better, than Cell
		want         bool
	}{
		{Cell{SoleHolds: 3}, Cell{SoleHolds: 2}, true},
		{Cell{SoleHolds: 1}, Cell{SoleHolds: 2}, false},
		{Cell{SoleHolds: 3, Findings: bug}, Cell{SoleHolds: 2}, false},
	} {
		if is := earned(c.better, c.than); is != c.want {
			t.Errorf("earned(%+v, %+v) is %t", c.better, c.than, is)
		}
	}
}
