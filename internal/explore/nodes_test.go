package explore

import (
	"context"
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/lockfault/lockfault/checker"
	"github.com/lockfault/lockfault/internal/leases"
	"github.com/lockfault/lockfault/internal/racetest"
	"github.com/lockfault/lockfault/strategies"
)

// atOnce sends a request to all its nodes at the same time, and holds the lock when the given
// number of nodes agree.
func atOnce(nodes, enough int) strategies.Strategy {
	return strategies.Strategy{
		Name: "at-once", Summary: "SET NX PX on all nodes at the same time", Source: "this test", Nodes: nodes,
		Tags: []string{strategies.TagMulti},
		New: func(env strategies.Env) (strategies.Lock, error) {
			return &atOnceLock{env: env, enough: enough}, nil
		},
	}
}

type atOnceLock struct {
	env    strategies.Env
	enough int
}

// each sends a request to all nodes and returns the number of nodes that agreed.
func (l *atOnceLock) each(ask func(redis.UniversalClient) bool) int {
	answers := make(chan bool, len(l.env.Nodes))
	for _, node := range l.env.Nodes {
		go func() { answers <- ask(node) }()
	}
	yes := 0
	for range l.env.Nodes {
		if <-answers {
			yes++
		}
	}
	return yes
}

func (l *atOnceLock) Acquire(ctx context.Context) error {
	got := l.each(func(node redis.UniversalClient) bool {
		won, err := node.SetNX(ctx, l.env.Key, l.env.Owner, l.env.TTL).Result()
		return err == nil && won
	})
	if got >= l.enough {
		return nil
	}
	_ = l.Release(ctx)
	return strategies.ErrNotAcquired
}

func (l *atOnceLock) TryAcquire(ctx context.Context) error { return l.Acquire(ctx) }

func (l *atOnceLock) Release(ctx context.Context) error {
	l.each(func(node redis.UniversalClient) bool {
		own, _ := node.Get(ctx, l.env.Key).Result()
		return own == l.env.Owner && node.Del(ctx, l.env.Key).Err() == nil
	})
	return nil
}

// on searches a strategy of a test.
func on(t *testing.T, strategy strategies.Strategy, b Bound) Result {
	t.Helper()
	b.Nodes, b.TTL, b.Lock = max(1, strategy.Nodes), 30*time.Second, leases.LockOf(strategy)
	r, err := Search(t.Context(), b, &stage{t: t, strategy: strategy}, nil)
	if err != nil || !r.Exhausted && r.Cut == "" {
		t.Fatal(err, r.Failures)
	}
	return r
}

// TestEachNodeHasItsOrder checks that requests of one client to several nodes arrive in every
// order. That half of the nodes is not a quorum shows only where A is first on one node and B on
// the other.
func TestEachNodeHasItsOrder(t *testing.T) {
	racetest.Skip(t)
	half := Bound{Clients: 2, Rounds: 1, Moves: 9}
	r := on(t, atOnce(2, 1), half)
	got := anomalies(r)
	if _, ok := got[checker.Overlap]; !ok {
		t.Errorf("found %v, want overlap", got)
	}
	for _, f := range r.Findings {
		if f.Anomaly == checker.Overlap && (!strings.Contains(f.Script, "pass A once on n1\n") || !strings.Contains(f.Script, "pass B once on n2\n")) {
			t.Errorf("overlap is found by\n%s", f.Script)
		}
	}
	if r := on(t, atOnce(2, 2), half); len(r.Findings) > 0 {
		t.Errorf("both nodes: found %v", anomalies(r))
	}
}

// TestSlowRedlockOnThree checks that a search of Redlock on three nodes is exhaustive: two clients that
// split the nodes both give up, and a node that loses its data gives the lock to both.
func TestSlowRedlockOnThree(t *testing.T) {
	racetest.Skip(t)
	redlock, _ := strategies.Builtin().Lookup("redlock")
	three, err := redlock.On(3)
	if err != nil {
		t.Fatal(err)
	}
	if r := on(t, three, Bound{Clients: 2, Rounds: 1}); len(r.Findings) > 0 || !r.Exhausted {
		t.Errorf("found %v, exhausted %t", anomalies(r), r.Exhausted)
	}
	r := on(t, three, Bound{Clients: 2, Rounds: 1, Budget: map[BudgetKind]int{RestartEmpty: 1}, Moves: 10})
	if _, ok := anomalies(r)[checker.Overlap]; !ok {
		t.Errorf("a node forgets: found %v, want overlap", anomalies(r))
	}
}

// TestReductionsLoseNothingOnNodes checks that treating unnamed nodes as interchangeable loses
// nothing.
func TestReductionsLoseNothingOnNodes(t *testing.T) {
	racetest.Skip(t)
	for _, c := range []struct {
		nodes, enough, moves int
		budget               map[BudgetKind]int
	}{{2, 1, 8, nil}, {2, 2, 8, nil}, {2, 1, 6, map[BudgetKind]int{RestartEmpty: 1}}} {
		b := Bound{Clients: 2, Rounds: 1, Budget: c.budget, Moves: c.moves}
		reduced := on(t, atOnce(c.nodes, c.enough), b)
		b.plain = true
		plain := on(t, atOnce(c.nodes, c.enough), b)
		if got, want := anomalies(reduced), anomalies(plain); !maps.Equal(got, want) {
			t.Errorf("%d of %d, %v: found %v, without reductions %v", c.enough, c.nodes, c.budget, got, want)
		}
		if reduced.States >= plain.States {
			t.Errorf("%d of %d, %v: %d states, without reductions %d", c.enough, c.nodes, c.budget, reduced.States, plain.States)
		}
	}
}
