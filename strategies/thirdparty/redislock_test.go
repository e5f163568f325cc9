package thirdparty_test

import (
	"context"
	"testing"
	"time"

	"github.com/lockfault/lockfault/strategies"
	"github.com/lockfault/lockfault/strategies/internal/strategytest"
)

// The library itself gives up after a TTL if there is no deadline.
func TestRedislockWithoutDeadlineWaitsOn(t *testing.T) {
	strategytest.Run(t, lookup(t, "redislock"), func(t *testing.T, r *strategytest.Fixture) {
		if err := r.Server(1).Set(strategytest.Key, "somebody's"); err != nil {
			t.Fatal(err)
		}
		r.Lock("A")
		result := make(chan error, 1)
		go func() { result <- r.Lock("A").Acquire(context.Background()) }()
		time.Sleep(5 * strategytest.TTL)
		r.Server(1).Del(strategytest.Key)
		want(t, "the acquire", <-result, nil)
		want(t, "the release", release(r, "A"), nil)
	})
}

func TestRedislockUnknownOutcome(t *testing.T) {
	strategytest.Run(t, lookup(t, "redislock"), func(t *testing.T, r *strategytest.Fixture) {
		want(t, "the attempt", try(r, "A"), nil)
		r.LoseReply("A", "EVALSHA")
		want(t, "the release", release(r, "A"), strategytest.ErrLost)
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		r.LoseReply("A", "EVALSHA")
		want(t, "the acquire", r.Lock("A").Acquire(ctx), strategytest.ErrLost)
	})
}

func TestRedislockNeverHeldCanBeReleased(t *testing.T) {
	strategytest.Run(t, lookup(t, "redislock"), func(t *testing.T, r *strategytest.Fixture) {
		want(t, "the release", release(r, "A"), strategies.ErrNotHeld)
	})
}
