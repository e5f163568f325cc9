package history_test

import (
	"bytes"
	"context"
	"os"
	"slices"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/lockfault/lockfault/checker"
	"github.com/lockfault/lockfault/checker/history"
	"github.com/lockfault/lockfault/checker/linear"
	"github.com/lockfault/lockfault/internal/harness"
	"github.com/lockfault/lockfault/internal/racetest"
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

// sameEvents checks that a history that is written to a file and read as anybody's is
// what checker.Operations makes of it.
func sameEvents(t *testing.T, h checker.History) {
	t.Helper()
	var file bytes.Buffer
	if err := checker.Encode(&file, h); err != nil {
		t.Fatal(err)
	}
	var events []linear.Event
	for e, err := range history.New(&file, history.Options{}).Events() {
		if err != nil {
			t.Fatalf("%s under %s: %v", h.Meta.Strategy, h.Meta.Scenario, err)
		}
		e.Line-- // the first says what the history is
		events = append(events, e)
	}
	if want := checker.Operations(h); !slices.Equal(events, want) {
		t.Errorf("%s under %s: read\n%v\nwant\n%v", h.Meta.Strategy, h.Meta.Scenario, events, want)
	}
}

func TestRoundTrip(t *testing.T) {
	racetest.Skip(t)
	library, err := scenarios.Library()
	if err != nil {
		t.Fatal(err)
	}
	for _, script := range library {
		for _, name := range []string{"set-nx-px-lua", "getset-timestamp", "fenced", "redsync-5"} {
			strategy, ok := all.Registry().Lookup(name)
			if !ok {
				t.Fatalf("there is no strategy %s", name)
			}
			outcome := harness.Play(t, harness.Cell{Strategy: strategy, Script: script, Seed: 1})
			if outcome.Status == harness.NotApplicable {
				continue
			}
			sameEvents(t, outcome.History)
		}
	}
}

// Whoever gave up was not told that somebody has the lock.
func TestRoundTripOfACancelledTry(t *testing.T) {
	h := checker.History{Meta: checker.Meta{Format: checker.Format}}
	for i, e := range []checker.Event{
		{Kind: checker.Invoke, Op: checker.TryAcquire, Call: 1}, {Kind: checker.Cancel}, {Kind: checker.Return, Op: checker.TryAcquire, Call: 1, Result: checker.Fail},
		{Kind: checker.Invoke, Op: checker.TryAcquire, Call: 2}, {Kind: checker.Return, Op: checker.TryAcquire, Call: 2, Result: checker.Fail},
	} {
		e.Index, e.Client = i, "A"
		h.Events = append(h.Events, e)
	}
	sameEvents(t, h)
}
