package strategies_test

import (
	"slices"
	"testing"
	"time"

	"github.com/lockfault/lockfault/strategies"
	"github.com/lockfault/lockfault/strategies/internal/strategytest"
)

func TestRedissonIsReentrant(t *testing.T) {
	strategytest.Run(t, lookup(t, "redisson"), func(t *testing.T, r *strategytest.Fixture) {
		want(t, "A's first acquire", within(r, "A", time.Second), nil)
		want(t, "A's second acquire", within(r, "A", time.Second), nil)
		want(t, "A's first release", release(r, "A"), nil)
		want(t, "B's attempt", try(r, "B"), strategies.ErrNotAcquired)
		want(t, "A's second release", release(r, "A"), nil)
		want(t, "B's attempt", try(r, "B"), nil)
		want(t, "A's third release", release(r, "A"), strategies.ErrNotHeld)
	})
}

func TestRedissonWaiterWakes(t *testing.T) {
	for _, c := range []struct {
		name string
		lose bool
		want time.Duration
	}{
		{"by the message", false, 5 * time.Second},
		{"by the TTL if the message is lost", true, strategytest.TTL},
	} {
		t.Run(c.name, func(t *testing.T) {
			strategytest.Run(t, lookup(t, "redisson"), func(t *testing.T, r *strategytest.Fixture) {
				start := time.Now()
				want(t, "A's attempt", try(r, "A"), nil)
				r.Lock("B")
				result := make(chan error, 1)
				go func() { result <- within(r, "B", 2*strategytest.TTL) }()
				time.Sleep(5 * time.Second)
				if c.lose {
					r.Server(1).Del(strategytest.Key)
				} else {
					want(t, "A's release", release(r, "A"), nil)
				}
				want(t, "B's acquire", <-result, nil)
				if took := time.Since(start); took != c.want {
					t.Errorf("B had the lock after %s, want %s", took, c.want)
				}
			})
		})
	}
}

func TestRedissonWaiterSurvivesABrokenSubscription(t *testing.T) {
	strategytest.Run(t, lookup(t, "redisson"), func(t *testing.T, r *strategytest.Fixture) {
		want(t, "A's attempt", try(r, "A"), nil)
		r.Lock("B")
		result := make(chan error, 1)
		go func() { result <- within(r, "B", strategytest.TTL) }()
		time.Sleep(time.Second)
		r.Down(1)
		// A node that is down can't be asked when the TTL is over.
		if err := <-result; err == nil {
			t.Fatal("B acquired from a node that is down")
		}
	})
}

func TestRedissonWatchdogKeepsTheLockUntilRelease(t *testing.T) {
	strategytest.Run(t, lookup(t, "redisson"), func(t *testing.T, r *strategytest.Fixture) {
		want(t, "A's attempt", try(r, "A"), nil)
		time.Sleep(5 * strategytest.TTL)
		want(t, "B's attempt", try(r, "B"), strategies.ErrNotAcquired)
		want(t, "A's release", release(r, "A"), nil)
		r.Forget()
		time.Sleep(5 * strategytest.TTL)
		if names := r.Names(); len(names) != 0 {
			t.Errorf("after the release the wire saw %v, want nothing", names)
		}
	})
}

func TestRedissonWatchdogRenewsForEverAfterADoubledAcquire(t *testing.T) {
	strategytest.Run(t, lookup(t, "redisson"), func(t *testing.T, r *strategytest.Fixture) {
		want(t, "A's attempt, which loads the script", try(r, "A"), nil)
		want(t, "A's release", release(r, "A"), nil)
		r.LoseReply("A", "EVALSHA")
		want(t, "A's attempt", try(r, "A"), strategytest.ErrLost)
		want(t, "the same again, as a client library sends it", try(r, "A"), nil)
		want(t, "A's release", release(r, "A"), nil)
		want(t, "B's acquire", within(r, "B", 10*strategytest.TTL), strategies.ErrNotAcquired)
	})
}

func TestRedissonWatchdogTriesAgainAfterAFailedRenewal(t *testing.T) {
	strategytest.Run(t, lookup(t, "redisson"), func(t *testing.T, r *strategytest.Fixture) {
		want(t, "A's attempt", try(r, "A"), nil)
		time.Sleep(strategytest.TTL / 2) // past the first renewal, which loads the script
		r.LoseReply("A", "EVALSHA")
		time.Sleep(5 * strategytest.TTL)
		want(t, "B's attempt", try(r, "B"), strategies.ErrNotAcquired)
	})
}

func TestRedissonWatchdogEndsWithTheLock(t *testing.T) {
	strategytest.Run(t, lookup(t, "redisson"), func(t *testing.T, r *strategytest.Fixture) {
		want(t, "A's attempt", try(r, "A"), nil)
		time.Sleep(strategytest.TTL / 2)
		r.Server(1).FlushAll()
		want(t, "B's attempt", try(r, "B"), nil)
		want(t, "B's release", release(r, "B"), nil)
		r.Forget()
		time.Sleep(2 * strategytest.TTL)
		if got, wanted := r.Names(), []string{"EVALSHA"}; !slices.Equal(got, wanted) {
			t.Errorf("the wire saw %v, want a single renewal in vain", got)
		}
		want(t, "A's next attempt", try(r, "A"), nil)
		time.Sleep(2 * strategytest.TTL)
		want(t, "B's attempt", try(r, "B"), strategies.ErrNotAcquired)
	})
}

func TestRedissonWatchdogEndsWithAReleaseOfUnknownOutcome(t *testing.T) {
	strategytest.Run(t, lookup(t, "redisson"), func(t *testing.T, r *strategytest.Fixture) {
		want(t, "A's first attempt", try(r, "A"), nil)
		want(t, "A's second attempt", try(r, "A"), nil)
		want(t, "A's release, which loads the script", release(r, "A"), nil)
		want(t, "A's third attempt", try(r, "A"), nil)
		r.LoseReply("A", "EVALSHA")
		want(t, "A's release", release(r, "A"), strategytest.ErrLost)
		r.Forget()
		time.Sleep(strategytest.TTL)
		if names := r.Names(); len(names) != 0 {
			t.Errorf("the wire saw %v, want no renewals", names)
		}
		want(t, "B's attempt", try(r, "B"), nil)
	})
}
