package all_test

import (
	"context"
	"errors"
	"io"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/lockfault/lockfault/strategies"
	"github.com/lockfault/lockfault/strategies/all"
	"github.com/lockfault/lockfault/strategies/internal/strategytest"
)

func TestMain(m *testing.M) {
	strategytest.Quiet()
	os.Exit(m.Run())
}

func TestRegistryHoldsThemAll(t *testing.T) {
	got := all.Registry().Names()
	want := append(strategies.Builtin().Names(), "redsync", "redsync-5", "redislock", "rueidislock")
	if !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	for _, s := range all.Registry().All() {
		if !s.Builtin() {
			t.Errorf("%s is not built in", s.Name)
		}
	}
}

// What every lock must do when nothing goes wrong, and what its tags promise.
func TestConformance(t *testing.T) {
	for _, check := range []struct {
		name string
		run  func(t *testing.T, r *strategytest.Fixture)
	}{
		{"can be acquired again after its release", releasedAndAcquiredAgain},
		{"refuses a second client", refusesASecondClient},
		{"lets a waiting client in after the release", waiterGetsIt},
		{"gives up at the deadline", givesUpAtTheDeadline},
		{"gives up when it is cancelled", givesUpWhenCancelled},
		{"refuses at once if the time is over", refusesIfLate},
		{"does not let go for a client that does not hold it", foreignRelease},
		{"is there for others after a crash", freeAfterACrash},
		{"is kept or expires, as its tag says", keptOrExpires},
		{"says that it can't tell when a reply is lost", lostReply},
		{"extends by a TTL", extends},
		{"has the abilities of its tags", abilities},
		{"keeps the contenders apart", contention},
	} {
		t.Run(check.name, func(t *testing.T) {
			for _, s := range all.Registry().All() {
				if s.Name == "rueidislock" {
					continue // it needs CLIENT TRACKING, which the rig's servers don't know: package harness plays it
				}
				t.Run(s.Name, func(t *testing.T) {
					strategytest.Run(t, s, check.run)
				})
			}
		})
	}
}

func tagged(r *strategytest.Fixture, tag string) bool { return slices.Contains(r.Strategy.Tags, tag) }

// blind is the one strategy whose release asks for nothing.
func blind(r *strategytest.Fixture) bool { return r.Strategy.Name == "set-nx-px-del" }

func try(r *strategytest.Fixture, client string) error {
	r.T.Helper()
	return r.Lock(client).(strategies.TryAcquirer).TryAcquire(context.Background())
}

func release(r *strategytest.Fixture, client string) error {
	r.T.Helper()
	return r.Lock(client).Release(context.Background())
}

func within(r *strategytest.Fixture, client string, patience time.Duration) error {
	r.T.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	return r.Lock(client).Acquire(ctx)
}

func want(t *testing.T, what string, err, wanted error) {
	t.Helper()
	if !errors.Is(err, wanted) {
		t.Fatalf("%s: %v, want %v", what, err, wanted)
	}
}

func releasedAndAcquiredAgain(t *testing.T, r *strategytest.Fixture) {
	for _, name := range []string{"A", "A", "B", "A"} {
		want(t, name+"'s acquire", r.Lock(name).Acquire(context.Background()), nil)
		want(t, name+"'s release", release(r, name), nil)
		want(t, name+"'s attempt", try(r, name), nil)
		want(t, name+"'s release", release(r, name), nil)
	}
	for i := range max(1, r.Strategy.Nodes) {
		if r.Server(i + 1).Exists(strategytest.Key) {
			t.Errorf("n%d still has the key", i+1)
		}
	}
}

func refusesASecondClient(t *testing.T, r *strategytest.Fixture) {
	want(t, "A's attempt", try(r, "A"), nil)
	start := time.Now()
	want(t, "B's attempt", try(r, "B"), strategies.ErrNotAcquired)
	if took := time.Since(start); took != 0 {
		t.Errorf("B's attempt took %s, want no waiting", took)
	}
	want(t, "A's release", release(r, "A"), nil)
	want(t, "B's next attempt", try(r, "B"), nil)
}

func waiterGetsIt(t *testing.T, r *strategytest.Fixture) {
	want(t, "A's attempt", try(r, "A"), nil)
	r.Lock("B")
	start, result := time.Now(), make(chan error, 1)
	go func() { result <- within(r, "B", strategytest.TTL) }()
	time.Sleep(strategytest.TTL / 3)
	want(t, "A's release", release(r, "A"), nil)
	want(t, "B's acquire", <-result, nil)
	// 250ms is the longest that any of them sleeps between attempts.
	if took := time.Since(start); took > strategytest.TTL/3+250*time.Millisecond {
		t.Errorf("B waited %s for a lock released after %s", took, strategytest.TTL/3)
	}
	want(t, "B's release", release(r, "B"), nil)
}

func givesUpAtTheDeadline(t *testing.T, r *strategytest.Fixture) {
	want(t, "A's attempt", try(r, "A"), nil)
	start := time.Now()
	want(t, "B's acquire", within(r, "B", strategytest.TTL/2), strategies.ErrNotAcquired)
	if took := time.Since(start); took < strategytest.TTL/2-retryDelay || took > strategytest.TTL/2+time.Second {
		t.Errorf("B gave up after %s, want about %s", took, strategytest.TTL/2)
	}
	want(t, "A's release", release(r, "A"), nil)
	want(t, "B's attempt", try(r, "B"), nil)
}

// retryDelay is how long before its deadline a lock may say that another
// attempt is not worth it.
const retryDelay = 100 * time.Millisecond

func givesUpWhenCancelled(t *testing.T, r *strategytest.Fixture) {
	want(t, "A's attempt", try(r, "A"), nil)
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	time.AfterFunc(1234*time.Millisecond, cancel)
	start := time.Now()
	want(t, "B's acquire", r.Lock("B").Acquire(ctx), strategies.ErrNotAcquired)
	if took := time.Since(start); took > 1234*time.Millisecond+time.Second {
		t.Errorf("B gave up after %s", took)
	}
}

func refusesIfLate(t *testing.T, r *strategytest.Fixture) {
	want(t, "A's acquire", within(r, "A", 0), strategies.ErrNotAcquired)
	want(t, "B's attempt", try(r, "B"), nil)
}

func foreignRelease(t *testing.T, r *strategytest.Fixture) {
	if blind(r) {
		want(t, "a release of nothing", release(r, "B"), strategies.ErrNotHeld)
		return
	}
	want(t, "a release of nothing", release(r, "B"), strategies.ErrNotHeld)
	want(t, "A's attempt", try(r, "A"), nil)
	want(t, "B's release", release(r, "B"), strategies.ErrNotHeld)
	want(t, "B's attempt", try(r, "B"), strategies.ErrNotAcquired)
	want(t, "A's release", release(r, "A"), nil)
	want(t, "A's second release", release(r, "A"), strategies.ErrNotHeld)
}

func freeAfterACrash(t *testing.T, r *strategytest.Fixture) {
	want(t, "A's attempt", try(r, "A"), nil)
	if closer, ok := r.Lock("A").(io.Closer); ok {
		want(t, "closing A's lock", closer.Close(), nil)
	}
	start := time.Now()
	want(t, "B's acquire", within(r, "B", 2*strategytest.TTL), nil)
	if took := time.Since(start); took < strategytest.TTL-retryDelay || took > strategytest.TTL+250*time.Millisecond {
		t.Errorf("B had the lock after %s, want about %s", took, strategytest.TTL)
	}
}

func keptOrExpires(t *testing.T, r *strategytest.Fixture) {
	want(t, "A's attempt", try(r, "A"), nil)
	time.Sleep(3 * strategytest.TTL)
	if tagged(r, strategies.TagRenewing) {
		want(t, "B's attempt", try(r, "B"), strategies.ErrNotAcquired)
		want(t, "A's release", release(r, "A"), nil)
		want(t, "B's attempt", try(r, "B"), nil)
		return
	}
	want(t, "B's attempt", try(r, "B"), nil)
	if !blind(r) {
		want(t, "A's late release", release(r, "A"), strategies.ErrNotHeld)
		want(t, "B's release", release(r, "B"), nil)
	}
}

func lostReply(t *testing.T, r *strategytest.Fixture) {
	if !tagged(r, strategies.TagSingle) {
		return // a lost reply of one node among several changes nothing
	}
	want(t, "Z's attempt, which loads the script", try(r, "Z"), nil)
	want(t, "Z's release", release(r, "Z"), nil)
	names := r.Names()
	r.LoseReply("A", names[0])
	err := try(r, "A")
	if err == nil || errors.Is(err, strategies.ErrNotAcquired) {
		t.Errorf("A's attempt without a reply to %s: %v, want an unknown outcome", names[0], err)
	}
}

func extends(t *testing.T, r *strategytest.Fixture) {
	extender, ok := r.Lock("A").(strategies.Extender)
	if !ok {
		return
	}
	ctx := context.Background()
	want(t, "extending before acquiring", extender.Extend(ctx), strategies.ErrNotHeld)
	want(t, "A's attempt", try(r, "A"), nil)
	for range 3 {
		time.Sleep(strategytest.TTL / 2)
		want(t, "A's extend", extender.Extend(ctx), nil)
	}
	time.Sleep(strategytest.TTL * 9 / 10)
	want(t, "B's attempt", try(r, "B"), strategies.ErrNotAcquired)
	time.Sleep(strategytest.TTL / 5)
	want(t, "A's extend after its end", extender.Extend(ctx), strategies.ErrNotHeld)
	want(t, "B's attempt", try(r, "B"), nil)
	want(t, "A's extend of B's lock", extender.Extend(ctx), strategies.ErrNotHeld)
}

func abilities(t *testing.T, r *strategytest.Fixture) {
	lock := r.Lock("A")
	if _, ok := lock.(strategies.Fenced); ok != tagged(r, strategies.TagFenced) {
		t.Errorf("fenced: %v, want as its tags %v say", ok, r.Strategy.Tags)
	}
	if _, ok := lock.(strategies.Extender); ok != tagged(r, strategies.TagExtending) {
		t.Errorf("can be extended: %v, want as its tags %v say", ok, r.Strategy.Tags)
	}
	if _, ok := lock.(io.Closer); ok != tagged(r, strategies.TagRenewing) {
		t.Errorf("can be closed: %v, want as its tags %v say", ok, r.Strategy.Tags)
	}
	if tagged(r, strategies.TagSingle) == tagged(r, strategies.TagMulti) {
		t.Errorf("the tags %v say not once on how many nodes it runs", r.Strategy.Tags)
	}
	if validity, ok := lock.(strategies.Validity); ok {
		want(t, "A's attempt", try(r, "A"), nil)
		left := time.Until(validity.ValidUntil())
		if left <= strategytest.TTL*9/10 || left >= strategytest.TTL {
			t.Errorf("valid for %s of a lease of %s", left, strategytest.TTL)
		}
	}
}

func contention(t *testing.T, r *strategytest.Fixture) {
	// With commands that take time the contenders really meet.
	for i := range max(1, r.Strategy.Nodes) {
		r.Slow(i+1, time.Millisecond)
	}
	const rounds = 5
	names := []string{"A", "B", "C"}
	inside, entered := 0, 0
	done := make(chan error, len(names))
	for _, name := range names {
		lock := r.Lock(name)
		go func() {
			for range rounds {
				ctx, cancel := context.WithTimeout(context.Background(), 10*strategytest.TTL)
				err := lock.Acquire(ctx)
				cancel()
				if err != nil {
					done <- err
					return
				}
				// One at a time runs here if the lock holds, so plain
				// variables do; the race detector checks it too.
				inside++
				if inside > 1 {
					t.Errorf("%d clients are inside", inside)
				}
				time.Sleep(70 * time.Millisecond)
				entered++
				inside--
				if err := lock.Release(context.Background()); err != nil {
					done <- err
					return
				}
			}
			done <- nil
		}()
	}
	for range names {
		want(t, "a contender", <-done, nil)
	}
	if entered != len(names)*rounds {
		t.Errorf("%d rounds, want %d", entered, len(names)*rounds)
	}
}
