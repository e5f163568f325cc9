package harness_test

import (
	"testing"

	"github.com/lockfault/lockfault/internal/harness"
	"github.com/lockfault/lockfault/scenarios"
	"github.com/lockfault/lockfault/strategies"
)

// BenchmarkCell plays single cells: a short one, one in which a client asks again
// and again for a whole lease, and the same with a script on each of five nodes.
func BenchmarkCell(b *testing.B) {
	for _, c := range []struct{ strategy, scenario string }{
		{"set-nx-px-lua", "gc-pause-holding"},
		{"set-nx-px-lua", "holder-crash"},
		{"redlock", "holder-crash"},
	} {
		b.Run(c.strategy+"/"+c.scenario, func(b *testing.B) {
			script, err := scenarios.Lookup(c.scenario)
			if err != nil {
				b.Fatal(err)
			}
			strategy, _ := strategies.Builtin().Lookup(c.strategy)
			b.ReportAllocs()
			events := 0
			for b.Loop() {
				// Play wants a T for its bubble, and a benchmark has none.
				outcome := harness.Play(new(testing.T), harness.Cell{Strategy: strategy, Script: script, Seed: 1})
				events += len(outcome.History.Events)
			}
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "cells/s")
			b.ReportMetric(float64(events)/b.Elapsed().Seconds(), "events/s")
		})
	}
}
