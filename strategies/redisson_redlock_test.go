package strategies_test

import (
	"testing"
	"time"

	"github.com/lockfault/lockfault/strategies"
	"github.com/lockfault/lockfault/strategies/internal/strategytest"
)

// Document 003 claims a check of the elapsed time; the library has none.
func TestRedissonRedLockDoesNotCompareTheTimeWithTheLease(t *testing.T) {
	strategytest.Run(t, lookup(t, "redisson-redlock"), func(t *testing.T, r *strategytest.Fixture) {
		r.TTL = time.Second
		r.Lock("A")
		for i := 1; i <= 5; i++ {
			r.Slow(i, 600*time.Millisecond)
		}
		start := time.Now()
		want(t, "A's acquire", within(r, "A", 10*time.Second), nil)
		if took := time.Since(start); took <= r.TTL {
			t.Errorf("the acquire took %s, so it proves nothing", took)
		}
	})
}

func TestRedissonRedLockSkipsWhatAnotherHolds(t *testing.T) {
	strategytest.Run(t, lookup(t, "redisson-redlock"), func(t *testing.T, r *strategytest.Fixture) {
		for i := 1; i <= 2; i++ {
			r.Server(i).HSet(strategytest.Key, "somebody", "1")
		}
		start := time.Now()
		want(t, "A's acquire", within(r, "A", 10*time.Second), nil)
		if took := time.Since(start); took != 4*time.Second {
			t.Errorf("the acquire took %s, want two waits of a fifth of 10s", took)
		}
		r.Server(3).HSet(strategytest.Key, "somebody", "1")
		want(t, "B's attempt", try(r, "B"), strategies.ErrNotAcquired)
	})
}
