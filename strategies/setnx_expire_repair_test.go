package strategies_test

import (
	"slices"
	"testing"
	"time"

	"github.com/lockfault/lockfault/strategies"
	"github.com/lockfault/lockfault/strategies/internal/rig"
)

func TestSetnxExpireRepairGivesALoserTheKeyATTL(t *testing.T) {
	rig.Run(t, lookup(t, "setnx-expire-repair"), func(t *testing.T, r *rig.Fixture) {
		r.LoseReply("A", "SETNX")
		want(t, "A's attempt", try(r, "A"), rig.ErrLost)
		want(t, "B's attempt", try(r, "B"), strategies.ErrNotAcquired)
		if ttl := r.Server(1).TTL(rig.Key); ttl != rig.TTL {
			t.Fatalf("the key has a TTL of %s, want %s", ttl, rig.TTL)
		}
		want(t, "B's acquire", within(r, "B", rig.TTL+time.Second), nil)
	})
}

func TestSetnxExpireRepairCountsInMillisecondsIfItMust(t *testing.T) {
	rig.Run(t, lookup(t, "setnx-expire-repair"), func(t *testing.T, r *rig.Fixture) {
		r.TTL = 2500 * time.Millisecond
		want(t, "A's attempt", try(r, "A"), nil)
		want(t, "B's attempt", try(r, "B"), strategies.ErrNotAcquired)
		if got, wanted := r.Names(), []string{"SETNX", "PEXPIRE", "SETNX", "PTTL"}; !slices.Equal(got, wanted) {
			t.Fatalf("the wire saw %v, want %v", got, wanted)
		}
		if ttl := r.Server(1).TTL(rig.Key); ttl != r.TTL {
			t.Fatalf("the key has a TTL of %s, want %s", ttl, r.TTL)
		}
	})
}
