//go:build unix

package explore

import (
	"syscall"
	"testing"
	"time"

	"github.com/lockfault/lockfault/strategies/all"
)

// BenchmarkPlayed searches without tables in this process, and reports the scripts played per
// second of processor time: each from its beginning, and each from the end of another.
func BenchmarkPlayed(b *testing.B) {
	for _, c := range []struct {
		strategy string
		bound    Bound
	}{
		{"getset-timestamp", Bound{Clients: 3, Budget: map[BudgetKind]int{Advance: 1}}},
		{"set-nx-px-lua", Bound{Clients: 3, Budget: map[BudgetKind]int{Advance: 1, Crash: 1}}},
		{"redsync-5", Bound{Clients: 2, Budget: map[BudgetKind]int{Advance: 1}}},
	} {
		for _, way := range []string{"afresh", "kept", "walk-afresh", "walk-kept", "tables"} {
			b.Run(c.strategy+"/"+way, func(b *testing.B) {
				strategy, _ := all.Registry().Lookup(c.strategy)
				bound := c.bound
				bound.Rounds, bound.Nodes, bound.TTL = 1, max(1, strategy.Nodes), 30*time.Second
				bound.WithoutTables = way != "tables"
				if bound.WithoutTables {
					bound.States = 3000
				}
				b.ReportAllocs()
				runs, states, began := 0, 0, spent()
				for b.Loop() {
					player := Player(&stage{t: new(testing.T), strategy: strategy})
					if way == "kept" || way == "walk-kept" || way == "tables" {
						l := &lodger{stage: stage{t: new(testing.T), strategy: strategy}}
						defer l.house.End()
						player = l
					}
					var r Result
					var err error
					if way[0] == 'w' {
						bound.States = 0
						r, err = Draw(b.Context(), bound, Random{Method: Walk, Schedules: 100, Seed: 1}, player, nil)
					} else {
						r, err = Search(b.Context(), bound, player, nil)
					}
					if err != nil {
						b.Fatal(err)
					}
					runs += r.Runs
					states += r.States
				}
				b.ReportMetric(float64(runs)/(spent()-began).Seconds(), "runs/cpu-s")
				b.ReportMetric(float64(states)/(spent()-began).Seconds(), "states/cpu-s")
			})
		}
	}
}

// spent returns the processor time used by this process.
func spent() time.Duration {
	var usage syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &usage)
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}
