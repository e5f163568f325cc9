package strategies_test

import (
	"context"
	"testing"
	"time"

	"github.com/lockfault/lockfault/strategies"
	"github.com/lockfault/lockfault/strategies/internal/strategytest"
)

func TestSetNXPXLuaExtend(t *testing.T) {
	for _, name := range []string{"set-nx-px-lua", "fenced"} {
		t.Run(name, func(t *testing.T) {
			strategytest.Run(t, lookup(t, name), func(t *testing.T, r *strategytest.Fixture) {
				extend := func() error {
					return r.Lock("A").(strategies.Extender).Extend(context.Background())
				}
				want(t, "extending before acquiring", extend(), strategies.ErrNotHeld)
				want(t, "A's attempt", try(r, "A"), nil)
				time.Sleep(strategytest.TTL - time.Second)
				want(t, "A's extend", extend(), nil)
				time.Sleep(strategytest.TTL - time.Second)
				want(t, "B's attempt", try(r, "B"), strategies.ErrNotAcquired)
				time.Sleep(time.Second)
				want(t, "A's extend after the lease", extend(), strategies.ErrNotHeld)
			})
		})
	}
}

func TestSetNXPXLuaHolderBlocksOnItself(t *testing.T) {
	strategytest.Run(t, lookup(t, "set-nx-px-lua"), func(t *testing.T, r *strategytest.Fixture) {
		want(t, "A's attempt", try(r, "A"), nil)
		want(t, "A's second acquire", within(r, "A", strategytest.TTL/2), strategies.ErrNotAcquired)
		want(t, "A's release", release(r, "A"), nil)
	})
}
