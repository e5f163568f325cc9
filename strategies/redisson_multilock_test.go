package strategies_test

import (
	"testing"
	"time"

	"github.com/lockfault/lockfault/strategies"
	"github.com/lockfault/lockfault/strategies/internal/strategytest"
)

func TestRedissonOnFiveWithNodesDown(t *testing.T) {
	for _, c := range []struct {
		strategy string
		mayFail  int
	}{
		{"redisson-multilock", 0},
		{"redisson-redlock", 2},
	} {
		for down := range 4 {
			strategytest.Run(t, lookup(t, c.strategy), func(t *testing.T, r *strategytest.Fixture) {
				for i := range down {
					r.Down(5 - i)
				}
				wanted := strategies.ErrNotAcquired
				if down <= c.mayFail {
					wanted = nil
				}
				start := time.Now()
				want(t, c.strategy, within(r, "A", 10*time.Second), wanted)
				if took := time.Since(start); wanted != nil && took != 10*time.Second {
					t.Errorf("%s with %d down gave up after %s, want 10s", c.strategy, down, took)
				}
				for i := 1; i <= 5-down; i++ {
					if kept := r.Server(i).Exists(strategytest.Key); kept != (wanted == nil) {
						t.Errorf("%s with %d down: n%d has the key: %v", c.strategy, down, i, kept)
					}
				}
				if wanted == nil {
					want(t, "A's release", release(r, "A"), nil)
				}
			})
		}
	}
}

func TestRedissonMultiLockReleasesWhatItHasAndStartsAgain(t *testing.T) {
	strategytest.Run(t, lookup(t, "redisson-multilock"), func(t *testing.T, r *strategytest.Fixture) {
		r.Server(4).HSet(strategytest.Key, "somebody", "1")
		r.Lock("A")
		result := make(chan error, 1)
		go func() { result <- within(r, "A", time.Minute) }()
		time.Sleep(2 * strategytest.TTL / 3)
		if !r.Server(3).Exists(strategytest.Key) {
			t.Error("A waits for n4 without n3")
		}
		r.Server(4).Del(strategytest.Key)
		r.Server(4).Publish("redisson_lock__channel:{"+strategytest.Key+"}", "0")
		want(t, "A's acquire", <-result, nil)
		time.Sleep(3 * strategytest.TTL)
		want(t, "B's attempt", try(r, "B"), strategies.ErrNotAcquired)
		want(t, "A's release", release(r, "A"), nil)
	})
}

// Of a node that did not answer it can't know, so it releases there.
func TestRedissonMultiLockReleasesWhereAReplyIsLost(t *testing.T) {
	strategytest.Run(t, lookup(t, "redisson-redlock"), func(t *testing.T, r *strategytest.Fixture) {
		want(t, "Z's attempt, which loads the scripts", try(r, "Z"), nil)
		want(t, "Z's release", release(r, "Z"), nil)
		r.LoseReply("A", "EVALSHA")
		want(t, "A's attempt", try(r, "A"), nil)
		for i := 1; i <= 5; i++ {
			if kept := r.Server(i).Exists(strategytest.Key); kept != (i > 1) {
				t.Errorf("n%d has the key: %v", i, kept)
			}
		}
	})
}
