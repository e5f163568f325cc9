package registrytest_test

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/lockfault/lockfault/checker"
	"github.com/lockfault/lockfault/internal/harness"
	"github.com/lockfault/lockfault/internal/oracle"
	"github.com/lockfault/lockfault/scenarios"
	"github.com/lockfault/lockfault/strategies"
	"github.com/lockfault/lockfault/strategies/all"
)

// drawing is a lock that draws its fencing token by a command of its own, where
// fenced does it in the script that acquires.
func drawing(name string, before bool) strategies.Strategy {
	return strategies.Strategy{
		Name: name, Summary: "SET NX PX, and INCR beside it", Source: "this test",
		Tags: []string{strategies.TagSingle, strategies.TagFenced},
		New: func(env strategies.Env) (strategies.Lock, error) {
			return &drawingLock{env: env, before: before}, env.Check(name, 1)
		},
	}
}

type drawingLock struct {
	env    strategies.Env
	before bool // it draws before it has the lock
	token  int64
}

func (l *drawingLock) Acquire(ctx context.Context) error {
	for ctx.Err() == nil {
		won, err := l.attempt(ctx)
		if won || err != nil {
			return err
		}
		time.Sleep(100 * time.Millisecond)
	}
	return strategies.ErrNotAcquired
}

func (l *drawingLock) attempt(ctx context.Context) (won bool, err error) {
	node := l.env.Nodes[0]
	draw := func() (err error) {
		l.token, err = node.Incr(ctx, l.env.Key+":fence").Result()
		return err
	}
	if l.before {
		if err := draw(); err != nil {
			return false, err
		}
	}
	won, err = node.SetNX(ctx, l.env.Key, l.env.Owner, l.env.TTL).Result()
	if won && err == nil && !l.before {
		err = draw()
	}
	return won, err
}

var deleteIfMine = redis.NewScript(`
if redis.call("get", KEYS[1]) == ARGV[1] then
	return redis.call("del", KEYS[1])
end
return 0`)

func (l *drawingLock) Release(ctx context.Context) error {
	n, err := deleteIfMine.Run(ctx, l.env.Nodes[0], []string{l.env.Key}, l.env.Owner).Int()
	if err == nil && n == 0 {
		return strategies.ErrNotHeld
	}
	return err
}

func (l *drawingLock) Token() int64 { return l.token }

// withDrawing is all strategies and these.
func withDrawing(t *testing.T) strategies.Registry {
	t.Helper()
	registry, err := all.Registry().With(drawing("drawn-before", true), drawing("drawn-after", false))
	if err != nil {
		t.Fatal(err)
	}
	return registry
}

// A fencing token is worth what the order is worth in which it is drawn: a lock
// that draws it apart from acquiring shows that, and one that does both in one
// step does not.
func TestTokensDrawnApart(t *testing.T) {
	registry := withDrawing(t)
	files, err := filepath.Glob("../testdata/tokens/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	var scripts []*scenarios.Script
	for _, file := range files {
		src, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		script, err := scenarios.Parse(file, src)
		if err != nil {
			t.Fatal(err)
		}
		scripts = append(scripts, script)
	}
	shown := map[string]bool{}
	for _, script := range scripts {
		for _, name := range []string{"fenced", "drawn-before", "drawn-after", "set-nx-px-lua"} {
			strategy, _ := registry.Lookup(name)
			for seed := range uint64(5) {
				outcome := harness.Play(t, harness.Cell{Strategy: strategy, Script: script, Seed: seed})
				found := outcome.Verdict.Anomalies()
				if outcome.Status == harness.Error || !slices.Equal(found, outcome.Expected) {
					t.Errorf("%s under %s with seed %d: %s %v, want %v\n%s", name, script.Name, seed, outcome.Status, found, outcome.Expected, outcome.Reason)
				}
				for _, w := range outcome.Verdict.Witnesses {
					if err := oracle.Witness(outcome.History, w); err != nil {
						t.Errorf("%s under %s: the witness of %s proves nothing: %v", name, script.Name, w.Anomaly, err)
					}
					if seed == 1 && (w.Anomaly == checker.TokenOrder || w.Anomaly == checker.RefusedWrite) {
						t.Logf("%s under %s: %s", name, script.Name, w.Message)
					}
				}
				for _, a := range found {
					shown[name+" "+string(a)] = true
				}
			}
		}
	}
	for _, want := range []string{"drawn-before refused-write", "drawn-after refused-write", "drawn-after token-order"} {
		if !shown[want] {
			t.Errorf("no script shows %s", want)
		}
	}
}

// Wherever a counter is lost with the lock it counts, however its numbers are
// drawn, what fenced shows shows.
func TestCountersAreLostWithTheirLocks(t *testing.T) {
	registry := withDrawing(t)
	for _, scenario := range []string{"failover-lost-write", "flush", "restart-empty", "split-brain"} {
		script, err := scenarios.Lookup(scenario)
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range []string{"fenced", "drawn-before", "drawn-after"} {
			strategy, _ := registry.Lookup(name)
			outcome := harness.Play(t, harness.Cell{Strategy: strategy, Script: script, Seed: 1})
			want := script.Expected("fenced", strategy.Tags)
			if found := outcome.Verdict.Anomalies(); !slices.Equal(found, want) || !slices.Contains(found, checker.TokenOrder) {
				t.Errorf("%s under %s: %v, want %v, with token-order", name, scenario, found, want)
			}
		}
	}
}
