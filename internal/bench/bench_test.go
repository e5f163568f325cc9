package bench_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/lockfault/lockfault/faults/process"
	"github.com/lockfault/lockfault/internal/bench"
	"github.com/lockfault/lockfault/strategies"
	"github.com/lockfault/lockfault/strategies/all"
)

type silence struct{}

func (silence) Printf(context.Context, string, ...any) {}

func TestMain(m *testing.M) {
	redis.SetLogger(silence{}) // the library logs each connection that ends
	os.Exit(m.Run())
}

// measure measures strategies briefly, and checks that nothing is left behind. Without a server
// program the test is skipped, unless skipping is forbidden.
func measure(t *testing.T, ctx context.Context, o bench.Options) ([]bench.Cost, error) {
	t.Helper()
	before := runtime.NumGoroutine()
	o.Temp = t.TempDir()
	_, err := o.Server(t.Context())
	if missing := (*process.BinaryError)(nil); errors.As(err, &missing) && os.Getenv("CI") == "" || runtime.GOOS == "windows" {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	costs, err := bench.Measure(ctx, o)
	if left, globErr := filepath.Glob(filepath.Join(o.Temp, "*")); globErr != nil || len(left) > 0 {
		t.Errorf("left behind: %q, %v", left, globErr)
	}
	// A goroutine that was asked to end takes a moment.
	for deadline := time.Now().Add(3 * time.Minute); runtime.NumGoroutine() > before; time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			stacks := make([]byte, 1<<20)
			t.Fatalf("%d goroutines, %d before:\n%s", runtime.NumGoroutine(), before, stacks[:runtime.Stack(stacks, true)])
		}
	}
	return costs, err
}

func lookup(t *testing.T, names ...string) (list []strategies.Strategy) {
	t.Helper()
	for _, name := range names {
		s, ok := all.Registry().Lookup(name)
		if !ok {
			t.Fatalf("there is no strategy %s", name)
		}
		list = append(list, s)
	}
	return list
}

func TestMeasure(t *testing.T) {
	var began []string
	costs, err := measure(t, t.Context(), bench.Options{
		Strategies: lookup(t, "set-nx-px-lua", "redisson", "redlock"), Contenders: []int{1, 3}, Time: 100 * time.Millisecond, Rounds: 2,
		Begin: func(strategy string, contenders int) { began = append(began, fmt.Sprint(strategy, " ", contenders)) },
	})
	if err != nil {
		t.Fatal(err)
	}
	var got, want []string
	for _, s := range []string{"set-nx-px-lua", "redisson", "redlock"} {
		for _, n := range []int{1, 3} {
			for _, path := range bench.Paths() {
				want = append(want, fmt.Sprint(s, " ", n, " ", path))
			}
		}
	}
	for _, c := range costs {
		got = append(got, fmt.Sprint(c.Strategy, " ", c.Contenders, " ", c.Path))
		if c.Pairs == 0 || c.P50 <= 0 || c.P50 > c.P99 || c.Failures > 0 || c.Busiest > 1 {
			t.Errorf("%+v", c)
		}
		if c.Path == bench.Direct && c.PairsPerSecond > 0 && c.OverDirect != 1 {
			t.Errorf("%+v: it is compared with itself", c)
		}
		if c.Contenders == 1 && c.Pairs > 2 && c.Busiest != 1 {
			t.Errorf("%+v: there is only one", c)
		}
	}
	if !slices.Equal(got, want) {
		t.Errorf("measured %q, want %q", got, want)
	}
	if want := []string{"set-nx-px-lua 1", "set-nx-px-lua 3", "redisson 1", "redisson 3", "redlock 1", "redlock 3"}; !slices.Equal(began, want) {
		t.Errorf("began %q, want %q", began, want)
	}
}

// TestReplicas checks that a lock that waits for replicas has replicas.
func TestReplicas(t *testing.T) {
	costs, err := measure(t, t.Context(), bench.Options{
		Strategies: lookup(t, "set-wait"), Contenders: []int{1}, Time: 50 * time.Millisecond, Rounds: 1, Replicas: 1,
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range costs {
		if c.Pairs == 0 || c.Failures > 0 {
			t.Errorf("%+v", c)
		}
	}
}

// badLock fails as its functions define.
type badLock struct {
	acquire, release func() error
}

func (l badLock) Acquire(context.Context) error { return l.acquire() }
func (l badLock) Release(context.Context) error { return l.release() }

func bad(acquire, release func() error) []strategies.Strategy {
	return []strategies.Strategy{{Name: "bad", New: func(strategies.Env) (strategies.Lock, error) {
		return badLock{acquire, release}, nil
	}}}
}

func fine() error { return nil }

func TestFailures(t *testing.T) {
	broken := errors.New("broken")
	calls := 0
	costs, err := measure(t, t.Context(), bench.Options{
		Strategies: bad(fine, func() error {
			if calls++; calls > len(bench.Paths()) { // after the warm-up
				time.Sleep(time.Millisecond)
				return strategies.ErrNotHeld
			}
			return nil
		}),
		Contenders: []int{1}, Time: 10 * time.Millisecond, Rounds: 1,
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range costs {
		if c.Failures == 0 || c.Pairs != 0 || c.PairsPerSecond != 0 || c.OverDirect != 0 || c.P99 != 0 {
			t.Errorf("%+v", c)
		}
	}

	_, err = measure(t, t.Context(), bench.Options{Strategies: bad(func() error { return broken }, fine)})
	if !errors.Is(err, broken) {
		t.Errorf("a lock that can't be acquired: %v", err)
	}
	_, err = measure(t, t.Context(), bench.Options{Strategies: bad(func() error { panic("out of luck") }, fine)})
	if err == nil || err.Error() != "bench: measuring bad: on a free lock on healthy servers: panicked: out of luck" {
		t.Errorf("a lock that panics: %v", err)
	}
	_, err = measure(t, t.Context(), bench.Options{Strategies: []strategies.Strategy{{Name: "unmade", New: func(strategies.Env) (strategies.Lock, error) {
		return nil, broken
	}}}})
	if !errors.Is(err, broken) {
		t.Errorf("a lock that can't be made: %v", err)
	}
	here := []strategies.Strategy{{Name: "here"}}
	if _, err := (bench.Options{Strategies: here, RedisServer: "/nowhere/redis-server"}).Server(t.Context()); err == nil {
		t.Error("there is no such server")
	}
	there := []strategies.Strategy{{Name: "there", Service: "nowhere"}}
	if _, err := (bench.Options{Strategies: there}).Server(t.Context()); err == nil || err.Error() != "bench: there runs on nowhere, which this program doesn't know" {
		t.Error(err)
	}
}

// TestRecordedLooksAtTheLock checks that the gate of a script that has begun looks at the lock as
// its strategy declares.
func TestRecordedLooksAtTheLock(t *testing.T) {
	s := lookup(t, "set-nx-px-lua")[0]
	var read atomic.Int64
	s.Owner = func(c strategies.Change) (string, bool) {
		read.Add(1)
		return strategies.OwnerIsCreator(c)
	}
	if _, err := measure(t, t.Context(), bench.Options{Strategies: []strategies.Strategy{s}, Contenders: []int{1}, Time: 20 * time.Millisecond, Rounds: 1}); err != nil {
		t.Fatal(err)
	}
	if read.Load() == 0 {
		t.Error("nobody has asked the strategy whose the lock is")
	}
}

// TestInterrupt checks that an interrupted measurement returns the results so far.
func TestInterrupt(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	costs, err := measure(t, ctx, bench.Options{
		Strategies: lookup(t, "set-nx-px-lua", "fenced"), Contenders: []int{1}, Time: 20 * time.Millisecond,
		Begin: func(strategy string, _ int) {
			if strategy == "fenced" {
				cancel()
			}
		},
	})
	if !errors.Is(err, context.Canceled) || len(costs) != len(bench.Paths()) {
		t.Errorf("%d costs, %v; want those of one strategy", len(costs), err)
	}
}
