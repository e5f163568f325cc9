package histories_test

import (
	"bytes"
	"context"
	"os"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/lockfault/lockfault/checker"
	"github.com/lockfault/lockfault/checker/linear"
	"github.com/lockfault/lockfault/harness"
	"github.com/lockfault/lockfault/histories"
	"github.com/lockfault/lockfault/scenarios"
	"github.com/lockfault/lockfault/strategies/all"
)

type quiet struct{}

func (quiet) Printf(context.Context, string, ...any) {}

// go-redis logs each connection that it can't make, and here many can't be.
func TestMain(m *testing.M) {
	redis.SetLogger(quiet{})
	os.Exit(m.Run())
}

// What was recorded here, written to a file and read as anybody's history, is as
// linearizable as it was, says a checker that shares no code with the first. They
// differ in two things, which are made equal here: the first knows neither uses
// nor extends, and to it a hold is over when its release is called, even if the
// lock then said that it had no effect.
func TestRoundTrip(t *testing.T) {
	library, err := scenarios.Library()
	if err != nil {
		t.Fatal(err)
	}
	valid, invalid := 0, 0
	for _, script := range library {
		for _, name := range []string{"set-nx-px-lua", "getset-timestamp", "fenced", "redsync-5"} {
			strategy, ok := all.Registry().Lookup(name)
			if !ok {
				t.Fatalf("there is no strategy %s", name)
			}
			cell := harness.Cell{Strategy: strategy, Script: script, Seed: 1}
			outcome := harness.Play(t, cell)
			if outcome.Status == harness.NotApplicable {
				continue
			}
			var file bytes.Buffer
			if err := checker.Encode(&file, outcome.History); err != nil {
				t.Fatal(err)
			}
			var events []linear.Event
			for e, err := range histories.New(&file, histories.Options{}).Events() {
				if err != nil {
					t.Fatalf("%s under %s: %v", strategy.Name, script.Name, err)
				}
				switch {
				case e.Op == linear.Use || e.Op == linear.Extend:
					continue
				case e.Op == linear.Release && e.Phase == linear.ReturnFail:
					e.Phase = linear.ReturnUnknown
				}
				events = append(events, e)
			}
			got := linear.Check(linear.Reentrant(0), events, linear.Options{})
			if (got.Verdict == linear.Valid) != outcome.Verdict.Linearizable {
				t.Errorf("%s under %s: %s (%v), but Linearizable was %v", strategy.Name, script.Name, got.Verdict, got.Violations, outcome.Verdict.Linearizable)
			}
			if got.Verdict == linear.Valid {
				valid++
			} else {
				invalid++
			}
		}
	}
	if valid == 0 || invalid == 0 {
		t.Errorf("%d histories were valid and %d were not: the test needs both", valid, invalid)
	}
	t.Logf("%d histories were valid, %d not", valid, invalid)
}
