package explore

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync/atomic"
	"testing"
	"time"

	"github.com/lockfault/lockfault/internal/racetest"
	"github.com/lockfault/lockfault/strategies"
)

// TestSlowTablesLoseNothing checks that tables change only the number of scripts played. Each run makes
// a random selection of searches; -all selects all.
func TestSlowTablesLoseNothing(t *testing.T) {
	racetest.Skip(t)
	budgets := []map[BudgetKind]int{
		{}, {Advance: 1}, {Tick: 1}, {Crash: 1}, {LoseReply: 1}, {LoseRequest: 1}, {Pause: 1}, {Partition: 1}, {ClientRestart: 1}, {Cancel: 1}, {Cancel: 1, Advance: 1},
		{Restart: 1}, {RestartEmpty: 1}, {NodeClock: 1}, {ClientClock: 1}, {Flush: 1}, {Failover: 1},
		{NodeClockBack: 1, Crash: 1}, {Hang: 1, LoseReply: 1},
	}
	names := []string{"setnx-expire", "setnx-expire-repair", "getset-timestamp", "set-nx-px-del", "set-nx-px-get-del", "set-nx-px-lua", "fenced", "redisson"}
	type pair struct {
		name   string
		budget map[BudgetKind]int
	}
	var all []pair
	for _, name := range names {
		for _, budget := range budgets {
			all = append(all, pair{name, budget})
		}
	}
	if !*playAll {
		seed := uint64(time.Now().UnixNano())
		t.Logf("seed %d", seed)
		rand.New(rand.NewPCG(seed, 0)).Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
		all = all[:6]
	}
	for _, c := range all {
		b := Bound{Clients: 2, Rounds: 1, Budget: c.budget, Replicas: c.budget[Failover], Retries: max(c.budget[LoseRequest], c.budget[LoseReply])}
		with := found(t, c.name, b)
		b.WithoutTables = true
		without := found(t, c.name, b)
		t.Logf("%s %v: %d states, %d moves, %d runs", c.name, c.budget, with.States, with.Moves, with.Runs)
		if with.Untabled != "" {
			t.Errorf("%s %v: %s", c.name, c.budget, with.Untabled)
		}
		with.Runs, with.Untabled = without.Runs, ""
		if got, want := fmt.Sprintf("%+v", with), fmt.Sprintf("%+v", without); got != want {
			t.Errorf("%s %v: with tables\n%s\nwithout\n%s", c.name, c.budget, got, want)
		}
	}
}

// TestWhatTablesCantKnow checks that a lock whose clients share a variable, as they do in virtual
// time, is searched without tables, and that the result reports this.
func TestWhatTablesCantKnow(t *testing.T) {
	racetest.Skip(t)
	var attempts atomic.Int64
	shared := strategies.Strategy{
		Name: "shared", Summary: "SETNX, but every fourth attempt of all looks first", Source: "this test", Tags: []string{strategies.TagSingle},
		New: func(env strategies.Env) (strategies.Lock, error) {
			attempts.Store(0)
			return &sharedLock{bareLock{env}, &attempts}, nil
		},
	}
	b := Bound{Clients: 2, Rounds: 2}
	with := on(t, shared, b)
	b.WithoutTables = true
	without := on(t, shared, b)
	if with.Untabled == "" || without.Untabled != "" {
		t.Errorf("untabled %q, %q", with.Untabled, without.Untabled)
	}
	// The search is not exhaustive: states that look equal may differ in what snapshots do not show.
	if with.Exhausted || with.Cut == "" {
		t.Errorf("exhausted %t, %q", with.Exhausted, with.Cut)
	}
	with.Untabled, with.Runs, with.Exhausted, with.Cut = "", without.Runs, without.Exhausted, without.Cut
	if got, want := fmt.Sprintf("%+v", with), fmt.Sprintf("%+v", without); got != want {
		t.Errorf("with tables\n%s\nwithout\n%s", got, want)
	}
}

type sharedLock struct {
	bareLock
	attempts *atomic.Int64
}

func (l *sharedLock) TryAcquire(ctx context.Context) error {
	if l.attempts.Add(1)%4 == 0 {
		l.env.Nodes[0].Exists(ctx, l.env.Key)
	}
	return l.Acquire(ctx)
}
