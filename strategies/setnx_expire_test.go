package strategies_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/lockfault/lockfault/strategies"
	"github.com/lockfault/lockfault/strategies/internal/strategytest"
)

// try makes one attempt in the client's name.
func try(r *strategytest.Fixture, client string) error {
	r.T.Helper()
	return r.Lock(client).(strategies.TryAcquirer).TryAcquire(context.Background())
}

// within acquires in the client's name with that much patience.
func within(r *strategytest.Fixture, client string, patience time.Duration) error {
	r.T.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	return r.Lock(client).Acquire(ctx)
}

func release(r *strategytest.Fixture, client string) error {
	r.T.Helper()
	return r.Lock(client).Release(context.Background())
}

// want fails the test unless err is, or wraps, the wanted one.
func want(t *testing.T, what string, err, wanted error) {
	t.Helper()
	if !errors.Is(err, wanted) {
		t.Fatalf("%s: %v, want %v", what, err, wanted)
	}
}

func TestSetnxExpireLeavesNoTTLIfItDiesInBetween(t *testing.T) {
	strategytest.Run(t, lookup(t, "setnx-expire"), func(t *testing.T, r *strategytest.Fixture) {
		r.LoseReply("A", "SETNX")
		want(t, "A's attempt", try(r, "A"), strategytest.ErrLost)
		if ttl := r.Server(1).TTL(strategytest.Key); ttl != 0 {
			t.Fatalf("the key has a TTL of %s, want none", ttl)
		}
		want(t, "B's acquire", within(r, "B", 10*strategytest.TTL), strategies.ErrNotAcquired)
	})
}

func TestSetnxExpireReleaseAfterUnknownOutcomeCleansUp(t *testing.T) {
	strategytest.Run(t, lookup(t, "setnx-expire"), func(t *testing.T, r *strategytest.Fixture) {
		r.LoseReply("A", "SETNX")
		want(t, "A's attempt", try(r, "A"), strategytest.ErrLost)
		want(t, "A's release", release(r, "A"), nil)
		want(t, "B's attempt", try(r, "B"), nil)
	})
}
