package strategies_test

import (
	"slices"
	"testing"
	"time"

	"github.com/lockfault/lockfault/strategies"
	"github.com/lockfault/lockfault/strategies/internal/strategytest"
)

func TestSetnxExpireRepairGivesALoserTheKeyATTL(t *testing.T) {
	strategytest.Run(t, lookup(t, "setnx-expire-repair"), func(t *testing.T, r *strategytest.Fixture) {
		r.LoseReply("A", "SETNX")
		want(t, "A's attempt", try(r, "A"), strategytest.ErrLost)
		want(t, "B's attempt", try(r, "B"), strategies.ErrNotAcquired)
		if ttl := r.Server(1).TTL(strategytest.Key); ttl != strategytest.TTL {
			t.Fatalf("the key has a TTL of %s, want %s", ttl, strategytest.TTL)
		}
		want(t, "B's acquire", within(r, "B", strategytest.TTL+time.Second), nil)
	})
}

func TestSetnxExpireRepairCountsInMillisecondsIfItMust(t *testing.T) {
	strategytest.Run(t, lookup(t, "setnx-expire-repair"), func(t *testing.T, r *strategytest.Fixture) {
		r.TTL = 2500 * time.Millisecond
		want(t, "A's attempt", try(r, "A"), nil)
		want(t, "B's attempt", try(r, "B"), strategies.ErrNotAcquired)
		if got, wanted := r.Names(), []string{"SETNX", "PEXPIRE", "SETNX", "PTTL"}; !slices.Equal(got, wanted) {
			t.Fatalf("the wire saw %v, want %v", got, wanted)
		}
		if ttl := r.Server(1).TTL(strategytest.Key); ttl != r.TTL {
			t.Fatalf("the key has a TTL of %s, want %s", ttl, r.TTL)
		}
	})
}
