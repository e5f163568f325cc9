package strategies_test

import (
	"testing"
	"time"

	"github.com/lockfault/lockfault/strategies"
	"github.com/lockfault/lockfault/strategies/internal/strategytest"
)

func TestSetNXPXDelDeletesAnothersLock(t *testing.T) {
	strategytest.Run(t, lookup(t, "set-nx-px-del"), func(t *testing.T, r *strategytest.Fixture) {
		want(t, "A's attempt", try(r, "A"), nil)
		time.Sleep(strategytest.TTL)
		want(t, "B's attempt", try(r, "B"), nil)
		want(t, "A's late release", release(r, "A"), nil)
		want(t, "C's attempt", try(r, "C"), nil)
		want(t, "C's release", release(r, "C"), nil)
		want(t, "B's release", release(r, "B"), strategies.ErrNotHeld)
	})
}
