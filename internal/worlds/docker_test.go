package worlds_test

import (
	"slices"
	"testing"

	"github.com/lockfault/lockfault/faults/docker"
	"github.com/lockfault/lockfault/faults/docker/dockertest"
	"github.com/lockfault/lockfault/internal/harness"
	"github.com/lockfault/lockfault/internal/worlds"
	"github.com/lockfault/lockfault/scenarios"
	"github.com/lockfault/lockfault/strategies/all"
)

// TestContainers checks that cells in containers show what their scripts expect; make agree-docker
// plays many more.
func TestContainers(t *testing.T) {
	if !dockertest.Ready(t) {
		return
	}
	place := worlds.Place{World: worlds.Docker, Image: docker.LocalImage, Temp: t.TempDir()}
	v := venue(t, place)
	for _, c := range []struct{ strategy, scenario string }{
		{"set-nx-px-lua", "failover-lost-write"},
		{"redlock", "quorum-restart-empty"},
	} {
		t.Run(c.strategy+"/"+c.scenario, func(t *testing.T) {
			strategy, ok := all.Registry().Lookup(c.strategy)
			script, err := scenarios.Lookup(c.scenario)
			if !ok || err != nil {
				t.Fatal(ok, err)
			}
			outcome, shown := playPatiently(t, v, place.Lease(), harness.Cell{Strategy: strategy, Script: script, Seed: 1})
			if shown && (outcome.Status == harness.Error || !slices.Equal(outcome.Verdict.Anomalies(), outcome.Expected)) {
				t.Errorf("%s %v, want %v\n%s", outcome.Status, outcome.Verdict.Anomalies(), outcome.Expected, outcome.Reason)
			}
		})
	}
}
