package battery

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/lockfault/lockfault/internal/explore"
	"github.com/lockfault/lockfault/internal/leases"
	"github.com/lockfault/lockfault/strategies"
)

// TestSearches checks that each kind of fault is in one search alone and in one with a step of time, and
// that the bounds are those of the lock.
func TestSearches(t *testing.T) {
	plain := Searches(strategies.Strategy{}, 0)
	var names []string
	for _, s := range plain {
		names = append(names, s.String())
		if err := s.Bound.Check(); err != nil {
			t.Errorf("%s: %v", s, err)
		}
		if s.Bound.Runs == 0 || s.Bound.Nodes != 1 || s.Bound.TTL != 30*time.Second || s.Bound.Extend || s.Bound.Reenter {
			t.Errorf("%s: %+v", s, s.Bound)
		}
	}
	if len(slices.Compact(slices.Sorted(slices.Values(names)))) != len(names) {
		t.Errorf("two searches have one name: %q", names)
	}
	for _, f := range explore.BudgetKinds() {
		if f != explore.Tick && slices.Contains(names, string(f)) != slices.Contains(names, string(f)+" and tick") {
			t.Errorf("%s is searched alone or with a step of time, and not both", f)
		}
	}
	renewing := Searches(strategies.Strategy{Nodes: 3, Tags: []string{strategies.TagRenewing, strategies.TagExtending, string(leases.Reentrant)}}, time.Second)
	if b := renewing[0].Bound; b.Runs >= plain[0].Bound.Runs || b.Nodes != 3 || b.TTL != time.Second || !b.Extend || !b.Reenter {
		t.Errorf("for a renewing, extending and reentrant lock on three nodes: %+v", b)
	}
}

// TestResult checks what is said of the searches together.
func TestResult(t *testing.T) {
	cut := explore.Result{States: 2, Leak: "in f"}
	failed := explore.Result{States: 3, Exhausted: true, Failures: []explore.Failure{{Err: "why"}}}
	crash, both := Search{Faults: []explore.BudgetKind{explore.Crash}}, Search{Faults: []explore.BudgetKind{explore.Crash, explore.Tick}}
	r := Result{Searched: []Searched{{crash, cut}, {both, cut}, {crash, failed}}}
	if n := r.States(); n != 7 {
		t.Errorf("%d states, want 7", n)
	}
	for _, c := range []struct {
		searched []Searched
		want     string
	}{
		{r.Searched, "not finished: crash"},
		{r.Searched[:2], "not finished: all 1 with at most one kind of fault"},
		{r.Searched[2:], ""},
	} {
		if got := (Result{Searched: c.searched}).Unfinished(); got != c.want {
			t.Errorf("%q, want %q", got, c.want)
		}
	}
	if f, in := r.Failure(); f == nil || f.Err != "why" || in.String() != "crash" {
		t.Errorf("the failure is %v of %s", f, in)
	}
	if r.Leak() != "in f" {
		t.Errorf("the leak is %q", r.Leak())
	}
	if f, _ := (Result{}).Failure(); f != nil {
		t.Errorf("nothing was searched, and the failure is %v", f)
	}
}

// hopeless is a player for which no script has a verdict.
type hopeless struct{}

func (hopeless) Play(_ context.Context, trials []explore.Trial) ([]explore.Outcome, error) {
	return slices.Repeat([]explore.Outcome{{Err: "virtual time stands still"}}, len(trials)), nil
}

func (hopeless) PlayAlone(context.Context, explore.Trial) (explore.Outcome, error) {
	return explore.Outcome{Err: "virtual time stands still"}, nil
}

// TestStopped checks that a lock whose scripts have no verdict is not searched to the end.
func TestStopped(t *testing.T) {
	list := slices.Repeat(Searches(strategies.Strategy{}, 0), 2)
	r, err := Run(t.Context(), list, hopeless{}, nil)
	if err != nil || !r.Stopped || r.Failures() != mostFailures || len(r.Searched) == len(list) {
		t.Errorf("stopped: %t, %d failures in %d of %d searches, %v", r.Stopped, r.Failures(), len(r.Searched), len(list), err)
	}
}
