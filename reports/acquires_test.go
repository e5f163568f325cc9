package reports

import (
	"slices"
	"testing"

	"github.com/lockfault/lockfault/checker"
	"github.com/lockfault/lockfault/internal/leases"
)

// TestAcquires checks which acquires succeeded, and which while another client held.
func TestAcquires(t *testing.T) {
	var h checker.History
	call := 0
	op := func(client string, op checker.Op, result checker.Result) {
		call++
		for _, kind := range []checker.Kind{checker.Invoke, checker.Return} {
			e := checker.Event{Index: len(h.Events), Kind: kind, Client: client, Op: op, Call: call}
			if kind == checker.Return {
				e.Result = result
			}
			h.Events = append(h.Events, e)
		}
	}
	h.Meta.Clients = []string{"A", "B", "C"}
	op("A", checker.Acquire, checker.OK)
	op("B", checker.Acquire, checker.Fail)
	op("A", checker.Release, checker.OK)
	op("A", checker.Acquire, checker.OK)
	op("B", checker.Acquire, checker.OK) // overlaps A's second
	op("B", checker.Release, checker.OK)
	op("A", checker.Release, checker.OK)
	op("C", checker.Acquire, checker.OK)
	got := acquiresOf(h, checker.Holds(h))
	if want := []string{"A1", "A2", "B2", "C1"}; !slices.Equal(got.Acquired, want) {
		t.Errorf("%q succeeded, want %q", got.Acquired, want)
	}
	if want := []string{"B2"}; !slices.Equal(got.Beside, want) {
		t.Errorf("%q beside another, want %q", got.Beside, want)
	}
}

// TestEarned checks that a lock that does less is no better.
func TestEarned(t *testing.T) {
	bug := []leases.Finding{{Anomaly: checker.Unavailable, Outcome: leases.Bug}}
	a, ab := Acquires{Acquired: []string{"A1"}}, Acquires{Acquired: []string{"A1", "B1"}}
	for _, c := range []struct {
		name         string
		better, than Cell
		want         bool
	}{
		{"more", Cell{Acquires: ab}, Cell{Acquires: a}, true},
		{"less", Cell{Acquires: a}, Cell{Acquires: ab}, false},
		{"another", Cell{Acquires: Acquires{Acquired: []string{"B1"}}}, Cell{Acquires: a}, false},
		{"what came beside another there", Cell{Acquires: a}, Cell{Acquires: Acquires{Acquired: ab.Acquired, Beside: []string{"B1"}}}, true},
		{"a bug", Cell{Acquires: ab, Findings: bug}, Cell{Acquires: a}, false},
	} {
		if is := earned(c.better, c.than); is != c.want {
			t.Errorf("%s: %t", c.name, is)
		}
	}
}

// TestNotBetter checks what the absence of an anomaly is worth.
func TestNotBetter(t *testing.T) {
	ab := Acquires{Acquired: []string{"A1", "B1"}}
	for _, c := range []struct {
		name      string
		acquires  Acquires
		reference *ReferenceLock
		want      string
	}{
		{"as much", ab, &ReferenceLock{Strategy: "plain", Acquires: ab}, "better: no overlap"},
		{"less", Acquires{Acquired: []string{"A1"}}, &ReferenceLock{Strategy: "plain", Acquires: ab}, "different: no overlap, but the acquire B1 failed, which succeeds with plain"},
		{"as documented", Acquires{}, &ReferenceLock{Strategy: "plain", Refuses: "it waits", Acquires: ab}, "refused: no overlap, but the acquire A1 failed, which succeeds with plain: it waits"},
		{"nothing to compare", ab, nil, "different: no overlap, but it was compared with no other lock of its class"},
	} {
		cell := Cell{Verdict: Held, Expected: []checker.Anomaly{checker.Overlap}, AtMost: true, Acquires: c.acquires, Reference: c.reference}
		cell.Settle()
		if got := cell.Improvement(); got != c.want || !cell.AsExpected {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
}
