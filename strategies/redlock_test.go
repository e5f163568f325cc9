package strategies_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/lockfault/lockfault/strategies"
	"github.com/lockfault/lockfault/strategies/internal/strategytest"
)

func TestRedlockNeedsAMajority(t *testing.T) {
	for down := range 6 {
		strategytest.Run(t, lookup(t, "redlock"), func(t *testing.T, r *strategytest.Fixture) {
			for i := range down {
				r.Down(i + 1)
			}
			if down <= 2 {
				want(t, "A's attempt", try(r, "A"), nil)
				want(t, "A's release", release(r, "A"), nil)
			} else {
				want(t, "A's attempt", try(r, "A"), strategies.ErrNotAcquired)
			}
			for i := down; i < 5; i++ {
				if r.Server(i + 1).Exists(strategytest.Key) {
					t.Errorf("with %d down, n%d still has the key", down, i+1)
				}
			}
		})
	}
}

func TestRedlockReleaseWithNodesDown(t *testing.T) {
	for _, c := range []struct {
		down          int
		first, second error // nil means success, unknown any other error
	}{
		{0, nil, strategies.ErrNotHeld},
		{2, nil, strategies.ErrNotHeld},
		{3, errUnknown, errUnknown}, // the silent ones alone may be a majority
		{5, errUnknown, errUnknown},
	} {
		strategytest.Run(t, lookup(t, "redlock"), func(t *testing.T, r *strategytest.Fixture) {
			want(t, "A's attempt", try(r, "A"), nil)
			for i := range c.down {
				r.Down(i + 1)
			}
			want(t, "the first release", unknown(release(r, "A")), c.first)
			want(t, "the second release", unknown(release(r, "A")), c.second)
		})
	}
}

var errUnknown = errors.New("unknown outcome")

// unknown turns an error that is none of the definite ones into errUnknown.
func unknown(err error) error {
	if err == nil || errors.Is(err, strategies.ErrNotHeld) || errors.Is(err, strategies.ErrNotAcquired) {
		return err
	}
	return errUnknown
}

func TestRedlockCleansUpAllNodesAfterALostReply(t *testing.T) {
	strategytest.Run(t, lookup(t, "redlock"), func(t *testing.T, r *strategytest.Fixture) {
		for i := 3; i <= 5; i++ {
			r.Down(i)
		}
		r.LoseReply("A", "SET")
		want(t, "A's attempt", try(r, "A"), strategies.ErrNotAcquired)
		for i := 1; i <= 2; i++ {
			if r.Server(i).Exists(strategytest.Key) {
				t.Errorf("n%d still has the key", i)
			}
		}
	})
}

func TestRedlockGivesUpASlowNode(t *testing.T) {
	strategytest.Run(t, lookup(t, "redlock"), func(t *testing.T, r *strategytest.Fixture) {
		r.Lock("A")
		r.Slow(2, time.Minute)
		start := time.Now()
		want(t, "A's attempt", try(r, "A"), nil)
		if took := time.Since(start); took != 50*time.Millisecond {
			t.Errorf("the attempt took %s, want the 50ms limit of one node", took)
		}
	})
}

func TestRedlockCountsTheTimeThatItTook(t *testing.T) {
	strategytest.Run(t, lookup(t, "redlock"), func(t *testing.T, r *strategytest.Fixture) {
		r.TTL = 100 * time.Millisecond // 5ms for each node, 3ms drift
		r.Ahead("A", time.Hour)
		r.Lock("A")
		for i := 1; i <= 5; i++ {
			r.Slow(i, 4*time.Millisecond)
		}
		want(t, "A's attempt", try(r, "A"), nil)
		// 100ms - 20ms - 1ms - 2ms, on A's clock.
		until := r.Lock("A").(strategies.Validity).ValidUntil()
		if left, wanted := time.Until(until), time.Hour+77*time.Millisecond; left != wanted {
			t.Errorf("valid for %s, want %s", left, wanted)
		}

		time.Sleep(50 * time.Millisecond)
		for i := 1; i <= 5; i++ {
			r.Slow(i, 2*time.Millisecond) // twice: the node doesn't know the script yet
		}
		want(t, "A's extend", r.Lock("A").(strategies.Extender).Extend(context.Background()), nil)
		until = r.Lock("A").(strategies.Validity).ValidUntil()
		if left, wanted := time.Until(until), time.Hour+77*time.Millisecond; left != wanted {
			t.Errorf("after extend valid for %s, want %s", left, wanted)
		}
	})
}

func TestRedlockRefusesALeaseThatIsOver(t *testing.T) {
	strategytest.Run(t, lookup(t, "redlock"), func(t *testing.T, r *strategytest.Fixture) {
		r.TTL = 20 * time.Millisecond // 5ms for each node
		r.Lock("A")
		for i := 1; i <= 5; i++ {
			r.Slow(i, 4*time.Millisecond)
		}
		want(t, "A's attempt", try(r, "A"), strategies.ErrNotAcquired)
	})
}

func TestRedlockExtendAfterTheLease(t *testing.T) {
	strategytest.Run(t, lookup(t, "redlock"), func(t *testing.T, r *strategytest.Fixture) {
		want(t, "A's attempt", try(r, "A"), nil)
		time.Sleep(strategytest.TTL)
		want(t, "A's extend", r.Lock("A").(strategies.Extender).Extend(context.Background()), strategies.ErrNotHeld)
	})
}
