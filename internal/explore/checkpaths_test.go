package explore

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/lockfault/lockfault/checker"
	"github.com/lockfault/lockfault/internal/leases"
	"github.com/lockfault/lockfault/internal/racetest"
	"github.com/lockfault/lockfault/strategies"
)

// TestSlowJudgesMissNothing checks that judges that continue from one path to the next find the same as
// the checker finds in each whole history.
func TestSlowJudgesMissNothing(t *testing.T) {
	racetest.Skip(t)
	shown, unjudged := map[checker.Anomaly]int{}, 0
	for _, c := range []struct {
		strategy string
		bound    Bound
	}{
		{"getset-timestamp", Bound{Clients: 3, Rounds: 1, Budget: map[BudgetKind]int{Advance: 1}, States: 3000}},
		{"setnx-expire", Bound{Clients: 2, Rounds: 1, Budget: map[BudgetKind]int{Crash: 1, Advance: 1}}},
		{"set-nx-px-lua", Bound{Clients: 2, Rounds: 2, Budget: map[BudgetKind]int{Cancel: 1, NodeClockBack: 1}, States: 2000}},
		{"set-nx-px-get-del", Bound{Clients: 2, Rounds: 1, Budget: map[BudgetKind]int{Pause: 1, Flush: 1}}},
		{"set-nx-px-lua", Bound{Clients: 2, Rounds: 1, Budget: map[BudgetKind]int{Failover: 1, ClientRestart: 1}, Replicas: 1}},
		{"fenced", Bound{Clients: 3, Rounds: 1, Budget: map[BudgetKind]int{Advance: 1}, States: 2000}},
		{"redisson", Bound{Clients: 2, Rounds: 1, Retries: 1, Budget: map[BudgetKind]int{LoseReply: 1, Hang: 1}}},
		{"redlock", Bound{Clients: 2, Rounds: 1, Budget: map[BudgetKind]int{RestartEmpty: 1}, States: 500}},
	} {
		strategy, ok := strategies.Builtin().Lookup(c.strategy)
		if !ok {
			t.Fatal(c.strategy)
		}
		c.bound.Nodes, c.bound.TTL, c.bound.Lock = max(1, strategy.Nodes), 30*time.Second, leases.LockOf(strategy)
		for _, random := range []Method{"", Walk, PCT} {
			bound, moves, follower := c.bound, 0, &pathChecker{}
			bound.judged = func(q *searchNode, meta checker.Meta) {
				moves++
				if q.outcome.Err != "" {
					return
				}
				var w historyBuilder
				whole := w.telling(q.trail, meta)
				if got, want := told(follower, q.trail, meta), digest(whole.Events[:len(whole.Events)-1], exactly); got != want {
					lines, _ := q.trail.script()
					t.Fatalf("%s %s: the judge is told something else than what happened\n%q", c.strategy, random, lines)
				}
				want := checker.Check(whole)
				if got := q.outcome.Anomalies; !slices.Equal(got, want.Anomalies()) {
					lines, _ := q.trail.script()
					t.Fatalf("%s %s: the judge says %v, and of the whole history the checker says %v\n%q", c.strategy, random, got, want.Anomalies(), lines)
				}
				if q.outcome.Meta.TTL == 0 && !q.trail.mute() && q.unjudged != (want.Unjudged != nil) { // the path was not played
					t.Fatalf("%s %s: the judge says unjudged: %v, and the checker %v", c.strategy, random, q.unjudged, want.Unjudged)
				}
				for _, a := range q.outcome.Anomalies {
					shown[a]++
				}
				if q.unjudged {
					unjudged++
				}
			}
			player := &lodger{stage: stage{t: t, strategy: strategy}}
			var err error
			if random == "" {
				_, err = Search(t.Context(), bound, player, nil)
			} else {
				bound.States = 0
				_, err = Draw(t.Context(), bound, Random{Method: random, Depth: 2, Schedules: 60, Seed: 5}, player, nil)
			}
			if err != nil || moves == 0 {
				t.Errorf("%s %s: %d moves, %v", c.strategy, random, moves, err)
			}
		}
	}
	t.Log(fmt.Sprint(shown), unjudged)
	if len(shown) < 8 {
		t.Errorf("only %v were shown", shown)
	}
}

// told returns a hash of the events that a judge gets of a path.
func told(f *pathChecker, t *path, meta checker.Meta) string {
	if f.judge == nil {
		f.judge = checker.NewJudge(meta)
	}
	f.follow(t)
	var all []checker.Event
	for i := range f.histories {
		all = append(all, f.histories[i].events...)
	}
	return digest(all, exactly)
}
