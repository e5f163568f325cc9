package strategies_test

import (
	"testing"

	"github.com/lockfault/lockfault/strategies"
	"github.com/lockfault/lockfault/strategies/internal/strategytest"
)

func TestFencedTokenGrows(t *testing.T) {
	strategytest.Run(t, lookup(t, "fenced"), func(t *testing.T, r *strategytest.Fixture) {
		for i, name := range []string{"A", "B", "A", "C"} {
			want(t, name+"'s attempt", try(r, name), nil)
			// A refused attempt draws no number.
			want(t, "Z's attempt", try(r, "Z"), strategies.ErrNotAcquired)
			if token := r.Lock(name).(strategies.Fenced).Token(); token != int64(i+1) {
				t.Errorf("%s has the token %d, want %d", name, token, i+1)
			}
			want(t, name+"'s release", release(r, name), nil)
		}
	})
}
