package soak_test

import (
	"testing"
	"time"

	"github.com/lockfault/lockfault/internal/harness"
	"github.com/lockfault/lockfault/internal/soak"
	"github.com/lockfault/lockfault/scenarios"
	"github.com/lockfault/lockfault/strategies/all"
)

// BenchmarkWindow plays one hour of virtual time with five clients that think 10 s and hold 1 s.
func BenchmarkWindow(b *testing.B) {
	pause, err := soak.ParseNemesis("pause:5m:10s..60s", 30*time.Second)
	if err != nil {
		b.Fatal(err)
	}
	plan := soak.Plan{Clients: 5, Think: 10 * time.Second, Hold: time.Second, Window: time.Hour, Nemeses: []soak.Nemesis{pause}, Seed: 1}
	for _, name := range []string{"set-nx-px-lua", "fenced", "redlock"} {
		b.Run(name, func(b *testing.B) {
			strategy, ok := all.Registry().Lookup(name)
			if !ok {
				b.Fatal("there is no " + name)
			}
			plan := plan
			plan.Nodes = max(1, strategy.Nodes)
			acquired := 0
			for n := range b.N {
				script, err := scenarios.Parse("window.txt", []byte(plan.Script(n)))
				if err != nil {
					b.Fatal(err)
				}
				o := harness.Play(new(testing.T), harness.Cell{Strategy: strategy, Script: script, Seed: uint64(n)})
				acquired += soak.Count(o.History, o.Verdict).Acquired
			}
			b.ReportMetric(float64(acquired)/b.Elapsed().Seconds(), "acquires/s")
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "hours/s")
		})
	}
}
