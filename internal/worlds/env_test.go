package worlds_test

import (
	"os"
	"slices"
	"testing"

	"github.com/lockfault/lockfault/internal/harness"
	"github.com/lockfault/lockfault/internal/worlds"
	"github.com/lockfault/lockfault/scenarios"
	"github.com/lockfault/lockfault/strategies/all"
)

// What one cell does to its servers the next one, on the same servers, doesn't see.
func TestSlowCellsOnOneVenue(t *testing.T) {
	needServer(t)
	temp := t.TempDir()
	place := worlds.Place{World: worlds.Process, Temp: temp}
	v := venue(t, place)
	if other := (worlds.Place{World: worlds.Process, RedisServer: "other", Temp: temp}); !v.Is(place) || v.Is(other) {
		t.Error("a venue is another place's")
	}
	for _, c := range []struct{ strategy, scenario string }{
		{"redisson", "failover-lost-write"}, {"redisson", "failover-replicated"}, {"set-nx-px-lua", "server-clock-back"},
		{"set-nx-px-lua", "server-clock-forward"}, {"redlock", "quorum-restart-empty"}, {"redlock", "contention"},
		{"fenced", "restart-empty"}, {"fenced", "contention"},
	} {
		strategy, _ := all.Registry().Lookup(c.strategy)
		script, err := scenarios.Lookup(c.scenario)
		if err != nil {
			t.Fatal(err)
		}
		outcome, shown := playPatiently(t, v, place.Lease(), harness.Cell{Strategy: strategy, Script: script, Seed: 1})
		if shown && (outcome.Status == harness.Error || !slices.Equal(outcome.Verdict.Anomalies(), outcome.Expected)) {
			t.Errorf("%s under %s: %s %v, want %v\n%s", c.strategy, c.scenario, outcome.Status, outcome.Verdict.Anomalies(), outcome.Expected, outcome.Reason)
		}
	}
	if err := v.Close(); err != nil {
		t.Fatal(err)
	}
	if left, _ := os.ReadDir(temp); len(left) > 0 {
		t.Errorf("left: %v", left)
	}
	strategy, _ := all.Registry().Lookup("fenced")
	script, _ := scenarios.Lookup("contention")
	if outcome := harness.Play(nil, harness.Cell{Strategy: strategy, Script: script, Place: v}); outcome.Status != harness.Error {
		t.Errorf("a closed venue plays: %s", outcome.Status)
	}
}
