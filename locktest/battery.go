package locktest

import (
	"context"
	"errors"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/lockfault/lockfault/checker"
	"github.com/lockfault/lockfault/internal/battery"
	"github.com/lockfault/lockfault/internal/leases"
)

// batteryFor is the real time after which the searches of [Run] end without a verdict: ten times what
// they should take. LOCKFAULT_FOR replaces it.
const batteryFor = 200 * time.Second

// searchAll makes the standard searches ([battery.Searches]). The scripts of earlier findings are played
// first, and there is no search while one of them fails. An anomaly that the test accepts under any
// scenario is accepted.
func (test *test) searchAll(t *testing.T) {
	t.Helper()
	kept, err := test.savedFindings()
	if err != nil {
		t.Fatalf("locktest: %v", err)
	}
	accepted := test.acceptedAnywhere()
	for _, script := range kept {
		test.playKept(t, script, accepted)
	}
	base, err := Search{}.bound(test.cell)
	if err != nil {
		t.Fatalf("locktest: that can't be searched: %v", err)
	}
	if t.Failed() {
		return
	}
	limit := batteryFor
	if os.Getenv(envFor) != "" {
		limit = test.settings.search
	}
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	singles, pairs := battery.Searches(base, test.cell.Strategy.Tags)
	list := append(slices.Clone(singles), pairs...)
	all, err := battery.Run(ctx, list, &player{t: t, name: test.name, cell: test.cell}, nil)
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		t.Errorf("the searches took longer than %v, and %d of %d were made: %s gives them more time, such as %[4]s=10m", limit, len(all.Searched), len(list), envFor)
	case err != nil:
		t.Fatalf("locktest: %v", err)
	}
	for _, f := range all.Findings {
		judged := leases.Finding{Anomaly: f.Anomaly, Outcome: f.Outcome, Reason: f.Reason}
		if f.Outcome != leases.Bug || slices.Contains(accepted, f.Anomaly) {
			t.Log(judged)
			continue
		}
		test.found(t, f.Finding, judged)
	}
	states, cut := 0, []string(nil)
	for i, s := range all.Searched {
		states += s.States
		if i < len(singles) && !s.Exhausted {
			cut = append(cut, s.String())
		}
		for _, f := range s.Failures {
			t.Errorf("a schedule of the search with %s came to nothing: %s\n\n%s", s, explain(f.Err), f.Script)
			return // the first failure is enough
		}
	}
	t.Logf("%d searches of %d states", len(all.Searched), states)
	if len(cut) > 0 {
		t.Logf("not searched to the end: %s", strings.Join(cut, ", "))
	}
}

// acceptedAnywhere returns the anomalies that the test's options or its file accept under some scenario.
func (test *test) acceptedAnywhere() (all []checker.Anomaly) {
	for _, p := range test.options.promises {
		all = append(all, p.may...)
	}
	if test.ratchet.said != nil {
		for _, script := range test.options.scripts {
			may, _ := test.ratchet.said.Of(test.cell.Strategy.Name, script.Key())
			all = append(all, may...)
		}
	}
	return all
}
