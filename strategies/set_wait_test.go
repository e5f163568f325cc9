package strategies_test

import (
	"slices"
	"testing"

	"github.com/lockfault/lockfault/strategies"
	"github.com/lockfault/lockfault/strategies/internal/strategytest"
)

func TestSetWaitNeedsAMajority(t *testing.T) {
	for _, c := range []struct {
		replicas, acks int
		want           error
	}{
		{0, 0, nil},
		{1, 1, nil},
		{2, 1, nil},
		{2, 2, nil},
		{3, 2, nil},
		{1, 0, strategies.ErrNotAcquired},
		{2, 0, strategies.ErrNotAcquired},
		{3, 1, strategies.ErrNotAcquired},
	} {
		strategytest.Run(t, lookup(t, "set-wait"), func(t *testing.T, r *strategytest.Fixture) {
			r.Replicas, r.Acks = c.replicas, c.acks
			want(t, "A's attempt", try(r, "A"), c.want)
			if kept := r.Server(1).Exists(strategytest.Key); kept != (c.want == nil) {
				t.Errorf("%d of %d replicas answered: the key is there: %v", c.acks, c.replicas, kept)
			}
		})
	}
}

func TestSetWaitUnknownOutcome(t *testing.T) {
	strategytest.Run(t, lookup(t, "set-wait"), func(t *testing.T, r *strategytest.Fixture) {
		r.LoseReply("A", "WAIT")
		want(t, "A's attempt", try(r, "A"), strategytest.ErrLost)
		if got, wanted := r.Names(), []string{"SET", "WAIT"}; !slices.Equal(got, wanted) {
			t.Fatalf("the wire saw %v, want %v", got, wanted)
		}
		want(t, "A's release", release(r, "A"), nil)
	})
}
