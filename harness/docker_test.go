package harness_test

import (
	"os"
	"os/exec"
	"slices"
	"testing"
	"time"

	"github.com/lockfault/lockfault/faults/docker"
	"github.com/lockfault/lockfault/faults/docker/dockertest"
	"github.com/lockfault/lockfault/harness"
	"github.com/lockfault/lockfault/scenarios"
	"github.com/lockfault/lockfault/strategies/all"
)

// Cells come out in containers as their scripts expect, seen from inside; make
// agree-docker plays many more.
func TestDocker(t *testing.T) {
	if !dockertest.Ready(t) {
		return
	}
	as := func(what string) func() *exec.Cmd {
		return func() *exec.Cmd {
			cmd := exec.Command(os.Args[0])
			cmd.Env = append(os.Environ(), what+"=1")
			return cmd
		}
	}
	place := harness.Place{
		World: harness.Docker, Image: docker.LocalImage, Client: as(clientProcess), Watchman: as(watchmanProcess), Temp: t.TempDir(),
	}
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
			cell := harness.Cell{Strategy: strategy, Script: script, Place: place, Seed: 1}
			for left := 10; ; left-- {
				begun := time.Now()
				outcome := harness.Play(t, cell)
				t.Logf("%v, late %v", time.Since(begun).Round(time.Millisecond), outcome.Late)
				if outcome.Late > 0 && left > 1 {
					continue // the machine was too slow
				}
				if outcome.Status == harness.Error || outcome.Late > 0 || !slices.Equal(outcome.Verdict.Anomalies(), outcome.Expected) {
					t.Errorf("%s %v, want %v\n%s", outcome.Status, outcome.Verdict.Anomalies(), outcome.Expected, outcome.Reason)
				}
				return
			}
		})
	}
}
