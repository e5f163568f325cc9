package locktest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/lockfault/lockfault/checker"
	"github.com/lockfault/lockfault/internal/battery"
	"github.com/lockfault/lockfault/internal/leases"
	"github.com/lockfault/lockfault/reports"
)

// batteryFor is the real time after which the searches of [Run] end without a verdict. LOCKFAULT_FOR
// replaces it.
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
	if t.Failed() {
		return
	}
	limit := batteryFor
	if os.Getenv(envFor) != "" {
		limit = test.settings.search
	}
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	list := battery.Searches(test.cell.Strategy, test.cell.TTL)
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
	if f, in := all.Failure(); f != nil {
		t.Errorf("a script of the search with %s came to no verdict: %s\n\n%s", in, explain(f.Err), f.Script)
	}
	if leak := all.Leak(); leak != "" {
		t.Errorf("A goroutine outlives its client: %s; %s.", leak, reports.LeakRemedy)
	}
	tried := fmt.Sprintf("%d searches of %d states", len(all.Searched), all.States())
	if all.Stopped {
		tried += fmt.Sprintf(", stopped after %d scripts without a verdict (%d searches were planned)", all.Failures(), len(list))
	}
	if cut := all.Unfinished(); cut != "" {
		tried += ", " + cut
	}
	t.Log(tried)
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
