package explore

import (
	"fmt"
	"testing"
)

// Tables change nothing but how many scripts are played.
func TestTablesLoseNothing(t *testing.T) {
	budgets := []map[Fault]int{
		{}, {Advance: 1}, {Tick: 1}, {Crash: 1}, {LoseReply: 1}, {Restart: 1}, {RestartEmpty: 1}, {NodeClock: 1}, {ClientClock: 1}, {Flush: 1}, {Failover: 1},
	}
	for _, name := range []string{"setnx-expire", "setnx-expire-repair", "getset-timestamp", "set-nx-px-del", "set-nx-px-lua", "fenced", "redisson"} {
		for _, budget := range budgets {
			b := Bound{Clients: 2, Rounds: 1, Budget: budget, Replicas: budget[Failover]}
			with := found(t, name, b)
			b.WithoutTables = true
			without := found(t, name, b)
			t.Logf("%s %v: %d states, %d moves, %d runs", name, budget, with.States, with.Moves, with.Runs)
			if with.Untabled != "" {
				t.Errorf("%s %v: %s", name, budget, with.Untabled)
			}
			with.Runs, with.Untabled = without.Runs, ""
			if got, want := fmt.Sprintf("%+v", with), fmt.Sprintf("%+v", without); got != want {
				t.Errorf("%s %v: with tables\n%s\nwithout\n%s", name, budget, got, want)
			}
		}
	}
}
