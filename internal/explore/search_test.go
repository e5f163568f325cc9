package explore

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/lockfault/lockfault/checker"
	"github.com/lockfault/lockfault/internal/harness"
	"github.com/lockfault/lockfault/internal/leases"
	"github.com/lockfault/lockfault/internal/racetest"
	"github.com/lockfault/lockfault/scenarios"
	"github.com/lockfault/lockfault/strategies"
)

// A stage plays scripts with a strategy in this process.
type stage struct {
	t        *testing.T
	strategy strategies.Strategy
	played   int
}

func (s *stage) Play(ctx context.Context, trials []Trial) ([]Outcome, error) {
	looks := make([]Outcome, len(trials))
	for i, trial := range trials {
		text := trial.Script
		s.played++
		script, err := scenarios.Parse("found.txt", []byte(text))
		if err != nil {
			s.t.Fatalf("%v\n%s", err, text)
		}
		looks[i] = Play(s.t, harness.Cell{Strategy: s.strategy, Script: script, Seed: 1}, trial)
	}
	return looks, ctx.Err()
}

func (s *stage) PlayAlone(ctx context.Context, trial Trial) (Outcome, error) {
	looks, err := s.Play(ctx, []Trial{trial})
	return looks[0], err
}

func found(t *testing.T, name string, b Bound) Result {
	t.Helper()
	strategy, ok := strategies.Builtin().Lookup(name)
	if !ok {
		t.Fatal(name)
	}
	b.Nodes, b.TTL, b.Lock = max(1, strategy.Nodes), 30*time.Second, leases.LockOf(strategy)
	player := &stage{t: t, strategy: strategy}
	result, err := Search(t.Context(), b, player, nil)
	if err != nil {
		t.Fatal(err)
	}
	if result.Runs > player.played {
		t.Errorf("%d runs are said, %d were made", result.Runs, player.played)
	}
	return result
}

// anomalies returns the anomalies found, and the length of the shortest script for each.
func anomalies(r Result) map[checker.Anomaly]int {
	list := map[checker.Anomaly]int{}
	for _, f := range r.Findings {
		list[f.Anomaly] = f.Moves
	}
	return list
}

// TestFindsWhatIsKnown checks that a search finds the known failures of locks without hints.
func TestFindsWhatIsKnown(t *testing.T) {
	racetest.Skip(t)
	for _, c := range []struct {
		strategy string
		bound    Bound
		want     string
	}{
		{"setnx-expire", Bound{Clients: 2, Rounds: 1, Budget: map[BudgetKind]int{Crash: 1}}, "stuck-lock"},
		{"set-nx-px-del", Bound{Clients: 2, Rounds: 1, Budget: map[BudgetKind]int{Advance: 1}}, "foreign-release overlap stale-write"},
		{"set-nx-px-get-del", Bound{Clients: 2, Rounds: 1, Budget: map[BudgetKind]int{Advance: 1}}, "foreign-release overlap stale-write"},
		{"getset-timestamp", Bound{Clients: 2, Rounds: 1, Budget: map[BudgetKind]int{Advance: 1}}, "foreign-release ghost overlap stale-write unreleasable"},
		{"set-nx-px-lua", Bound{Clients: 2, Rounds: 1, Budget: map[BudgetKind]int{Failover: 1}, Replicas: 1}, "lost-lock overlap stale-write"},
		{"setnx-expire", Bound{Clients: 2, Rounds: 1, Budget: map[BudgetKind]int{Failover: 1}, Replicas: 1}, "lost-lock overlap stale-write stuck-lock"},
		{"set-nx-px-lua", Bound{Clients: 2, Rounds: 1, Budget: map[BudgetKind]int{RestartEmpty: 1}}, "lost-lock overlap stale-write"},
		{"set-nx-px-lua", Bound{Clients: 2, Rounds: 1, Budget: map[BudgetKind]int{Flush: 1}}, "lost-lock overlap stale-write"},
		{"set-nx-px-lua", Bound{Clients: 2, Rounds: 1, Budget: map[BudgetKind]int{NodeClock: 1}}, "lost-lock overlap stale-write"},
		{"getset-timestamp", Bound{Clients: 2, Rounds: 1, Budget: map[BudgetKind]int{ClientClock: 1}}, "foreign-release ghost overlap stale-write unreleasable"},
		{"set-nx-px-del", Bound{Clients: 2, Rounds: 1, Budget: map[BudgetKind]int{LoseReply: 1}}, ""},
		{"set-nx-px-lua", Bound{Clients: 2, Rounds: 1, Retries: 1, Budget: map[BudgetKind]int{LoseReply: 1}}, "ghost"},
		{"set-nx-px-del", Bound{Clients: 2, Rounds: 1, Retries: 1, Budget: map[BudgetKind]int{LoseReply: 1}}, "foreign-release ghost"},
		// A lease that a watchdog renews forever stays, and the client that asks for the lock is
		// not its owner.
		{"redisson", Bound{Clients: 2, Rounds: 1, Retries: 1, Budget: map[BudgetKind]int{LoseReply: 1}}, "stuck-lock"},
		// A lease prolonged by a clock keeps other clients out after the holder has died, but not
		// where clients keep the lease themselves.
		{"set-nx-px-lua", Bound{Clients: 2, Rounds: 1, Budget: map[BudgetKind]int{NodeClockBack: 1}}, ""},
		{"set-nx-px-lua", Bound{Clients: 2, Rounds: 1, Budget: map[BudgetKind]int{NodeClockBack: 1, Crash: 1}}, "unavailable"},
		{"getset-timestamp", Bound{Clients: 2, Rounds: 1, Budget: map[BudgetKind]int{NodeClockBack: 1, Crash: 1}}, ""},
		// When a holder hangs, another client gets the lock after the lease, or never without a
		// lease.
		{"set-nx-px-lua", Bound{Clients: 2, Rounds: 1, Budget: map[BudgetKind]int{Hang: 1}}, "overlap"},
		{"redisson", Bound{Clients: 2, Rounds: 1, Budget: map[BudgetKind]int{Hang: 1}}, "starvation"},
		// An owner value that is only a thread id is also that of another process.
		{"set-nx-px-lua-thread-id", Bound{Clients: 2, Rounds: 1, Budget: map[BudgetKind]int{Advance: 1}}, "overlap stale-write"},
		{"set-nx-px-lua-thread-id", Bound{Clients: 2, Rounds: 1, OneThread: true, Budget: map[BudgetKind]int{Advance: 1}}, "foreign-release overlap stale-write"},
		{"redisson", Bound{Clients: 2, Rounds: 1, OneThread: true, Budget: map[BudgetKind]int{Advance: 1}}, "overlap stale-write"},
		{"set-nx-px-lua", Bound{Clients: 2, Rounds: 2}, ""},
		{"set-nx-px-lua", Bound{Clients: 3, Rounds: 1, Budget: map[BudgetKind]int{Crash: 1}}, ""},
		{"fenced", Bound{Clients: 2, Rounds: 2}, ""},
		{"redisson", Bound{Clients: 2, Rounds: 1}, ""},
	} {
		r := found(t, c.strategy, c.bound)
		var got []string
		for _, a := range slices.Sorted(maps.Keys(anomalies(r))) {
			got = append(got, string(a))
		}
		if strings.Join(got, " ") != c.want || !r.Exhausted {
			t.Errorf("%s %v: found %v, exhausted %t (%s, %v), want %q", c.strategy, c.bound.Budget, got, r.Exhausted, r.Cut, r.Failures, c.want)
		}
	}
}

// TestBackgroundKeepsNobodyFromWork checks that a holder continues while its lock works in the
// background.
func TestBackgroundKeepsNobodyFromWork(t *testing.T) {
	tidy := strategies.Strategy{
		Name: "tidy", Summary: "SET NX PX, looks after itself in the background, and tidies up behind a release", Source: "this test",
		Tags: []string{strategies.TagSingle},
		New:  func(env strategies.Env) (strategies.Lock, error) { return &tidyLock{env: env}, nil },
	}
	b := Bound{Clients: 2, Rounds: 1, Nodes: 1, TTL: 30 * time.Second}
	r, err := Search(t.Context(), b, &stage{t: t, strategy: tidy}, nil)
	if err != nil || !r.Exhausted {
		t.Fatal(err, r.Cut, r.Failures)
	}
	if _, ok := anomalies(r)[checker.ForeignRelease]; !ok {
		t.Errorf("found %v, want foreign-release", anomalies(r))
	}
}

// TestFaultsComeAtTheEndToo checks that a fault may happen after all clients are done: a release
// that never reached the replica is undone then.
func TestFaultsComeAtTheEndToo(t *testing.T) {
	racetest.Skip(t)
	bare := strategies.Strategy{
		Name: "bare", Summary: "SETNX and DEL, and no lease", Source: "this test", Tags: []string{strategies.TagSingle},
		New: func(env strategies.Env) (strategies.Lock, error) { return bareLock{env}, nil },
	}
	for clients := 1; clients <= 2; clients++ {
		b := Bound{Clients: clients, Rounds: 1, Nodes: 1, TTL: 30 * time.Second, Budget: map[BudgetKind]int{Failover: 1}, Replicas: 1}
		r, err := Search(t.Context(), b, &stage{t: t, strategy: bare}, nil)
		if err != nil || !r.Exhausted {
			t.Fatal(err, r.Cut, r.Failures)
		}
		if _, ok := anomalies(r)[checker.StuckLock]; !ok {
			t.Errorf("%d clients: found %v, want stuck-lock", clients, anomalies(r))
		}
	}
}

type bareLock struct{ env strategies.Env }

func (l bareLock) Acquire(ctx context.Context) error {
	won, err := l.env.Nodes[0].SetNX(ctx, l.env.Key, l.env.Owner, 0).Result()
	if err == nil && !won {
		return strategies.ErrNotAcquired
	}
	return err
}

func (l bareLock) TryAcquire(ctx context.Context) error { return l.Acquire(ctx) }

// Release repeats a release until it gets a reply.
func (l bareLock) Release(ctx context.Context) error {
	for ctx.Err() == nil {
		if err := l.env.Nodes[0].Del(ctx, l.env.Key).Err(); err == nil {
			return nil
		}
		time.Sleep(100 * time.Millisecond)
	}
	return ctx.Err()
}

type tidyLock struct {
	env      strategies.Env
	released atomic.Bool
	gone     sync.WaitGroup
}

func (l *tidyLock) Acquire(ctx context.Context) error {
	l.released.Store(false)
	won, err := l.env.Nodes[0].SetNX(ctx, l.env.Key, l.env.Owner, l.env.TTL).Result()
	switch {
	case err != nil:
		return err
	case !won:
		return strategies.ErrNotAcquired
	}
	l.gone.Go(func() {
		l.env.Nodes[0].Get(context.Background(), l.env.Key)
		if l.released.Load() {
			l.env.Nodes[0].Del(context.Background(), l.env.Key)
		}
	})
	return nil
}

func (l *tidyLock) Release(ctx context.Context) error {
	l.released.Store(true)
	return l.env.Nodes[0].Del(ctx, l.env.Key).Err()
}

func (l *tidyLock) TryAcquire(ctx context.Context) error { return l.Acquire(ctx) }

func (l *tidyLock) Close() error {
	l.gone.Wait()
	return nil
}

// TestSlowReductionsLoseNothing checks that the reductions lose nothing: the same anomalies are found,
// by scripts that are not longer.
func TestSlowReductionsLoseNothing(t *testing.T) {
	racetest.Skip(t)
	budgets := []map[BudgetKind]int{{}, {Advance: 1}, {Crash: 1}, {LoseReply: 1}, {RestartEmpty: 1}, {NodeClock: 1}, {ClientClock: 1}, {Flush: 1}, {Hang: 1}}
	for _, name := range []string{"setnx-expire", "getset-timestamp", "set-nx-px-del"} {
		for _, budget := range budgets {
			b := Bound{Clients: 2, Rounds: 1, Budget: budget}
			reduced := found(t, name, b)
			b.plain = true
			plain := found(t, name, b)
			got, want := anomalies(reduced), anomalies(plain)
			for a, moves := range want {
				if n, ok := got[a]; !ok || n > moves {
					t.Errorf("%s %v: found %v, without reductions %v", name, budget, got, want)
				}
			}
			if len(got) != len(want) {
				t.Errorf("%s %v: found %v, without reductions %v", name, budget, got, want)
			}
			if !reduced.Exhausted || !plain.Exhausted || reduced.States > plain.States {
				t.Errorf("%s %v: %d states, without reductions %d; exhausted %t, %t", name, budget, reduced.States, plain.States, reduced.Exhausted, plain.Exhausted)
			}
		}
	}
}

// TestMergingLosesNothing checks that merging paths to the same state loses no anomaly.
func TestMergingLosesNothing(t *testing.T) {
	racetest.Skip(t)
	for name, budget := range map[string]map[BudgetKind]int{
		"set-nx-px-del": {Advance: 1}, "setnx-expire": {Crash: 1}, "set-nx-px-lua": {Flush: 1}, "getset-timestamp": {},
	} {
		b := Bound{Clients: 2, Rounds: 1, Budget: budget}
		merged := found(t, name, b)
		b.apart = true
		apart := found(t, name, b)
		if got, want := anomalies(merged), anomalies(apart); !maps.Equal(got, want) {
			t.Errorf("%s %v: found %v, with all paths apart %v", name, budget, got, want)
		}
		if merged.Merged == 0 || apart.Merged != 0 || merged.Moves >= apart.Moves {
			t.Errorf("%s %v: %d of %d moves merged, apart %d of %d", name, budget, merged.Merged, merged.Moves, apart.Merged, apart.Moves)
		}
	}
}

// TestSlowSearchIsDeterministic checks that a search is reproducible.
func TestSlowSearchIsDeterministic(t *testing.T) {
	racetest.Skip(t)
	b := Bound{Clients: 2, Rounds: 1, Budget: map[BudgetKind]int{Advance: 1, Crash: 1}}
	first, second := found(t, "setnx-expire", b), found(t, "setnx-expire", b)
	if fmt.Sprint(first) != fmt.Sprint(second) {
		t.Errorf("%v\nand\n%v", first, second)
	}
}

// TestCutShort checks that an interrupted search reports why.
func TestCutShort(t *testing.T) {
	for want, b := range map[string]Bound{
		"paths of more than 3 moves were not followed": {Clients: 2, Rounds: 1, Moves: 3},
		"more than 5 states":                           {Clients: 2, Rounds: 1, States: 5},
		"until lost-lock":                              {Clients: 2, Rounds: 1, Budget: map[BudgetKind]int{Flush: 1}, UntilFirst: true, Until: []checker.Anomaly{checker.LostLock}}, // no bug
	} {
		if r := found(t, "set-nx-px-lua", b); r.Exhausted || r.Cut != want {
			t.Errorf("exhausted %t, %q, want %q", r.Exhausted, r.Cut, want)
		}
	}
	r := found(t, "set-nx-px-del", Bound{Clients: 2, Rounds: 1, Budget: map[BudgetKind]int{Advance: 1}, UntilFirst: true})
	if last := r.Findings[len(r.Findings)-1]; r.Cut != "until the first bug" || last.Anomaly != checker.ForeignRelease || last.Outcome != leases.Bug || r.Findings[0].Outcome != leases.Limitation {
		t.Errorf("%q, %+v", r.Cut, r.Findings)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Nanosecond)
	defer cancel()
	strategy, _ := strategies.Builtin().Lookup("set-nx-px-lua")
	r, err := Search(ctx, Bound{Clients: 2, Rounds: 1, Nodes: 1, TTL: time.Second}, &stage{t: t, strategy: strategy}, nil)
	if err != nil || r.Exhausted || r.Cut != "out of time" {
		t.Errorf("%v, exhausted %t, %q", err, r.Exhausted, r.Cut)
	}
}

// TestNondeterminismIsSaid checks that a lock that is not reproducible is distinguished from one
// that fails.
func TestNondeterminismIsSaid(t *testing.T) {
	strategy, _ := strategies.Builtin().Lookup("set-nx-px-del")
	b := Bound{Clients: 2, Rounds: 1, Nodes: 1, TTL: 30 * time.Second, Budget: map[BudgetKind]int{Advance: 1}}
	r, err := Search(t.Context(), b, &fickle{stage{t: t, strategy: strategy}}, nil)
	if err != nil || len(r.Findings) > 0 || len(r.Failures) == 0 || r.Exhausted {
		t.Errorf("%v, %d findings, %d errors, exhausted %t", err, len(r.Findings), len(r.Failures), r.Exhausted)
	}
	failing := errors.New("no workers")
	if _, err := Search(t.Context(), b, broken{failing}, nil); !errors.Is(err, failing) {
		t.Error(err)
	}
}

// fickle returns another Print each time.
type fickle struct{ stage }

func (f *fickle) Play(ctx context.Context, trials []Trial) ([]Outcome, error) {
	looks, err := f.stage.Play(ctx, trials)
	for i := range looks {
		looks[i].Print = fmt.Sprint(f.played, i)
	}
	return looks, err
}

func (f *fickle) PlayAlone(ctx context.Context, trial Trial) (Outcome, error) {
	looks, err := f.Play(ctx, []Trial{trial})
	return looks[0], err
}

type broken struct{ err error }

func (b broken) Play(context.Context, []Trial) ([]Outcome, error)  { return nil, b.err }
func (b broken) PlayAlone(context.Context, Trial) (Outcome, error) { return Outcome{}, b.err }
