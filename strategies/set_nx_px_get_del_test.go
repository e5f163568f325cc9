package strategies_test

import (
	"testing"
	"time"

	"github.com/lockfault/lockfault/strategies"
	"github.com/lockfault/lockfault/strategies/internal/strategytest"
)

func TestSetNXPXGetDelIsNotFooledByALateRelease(t *testing.T) {
	strategytest.Run(t, lookup(t, "set-nx-px-get-del"), func(t *testing.T, r *strategytest.Fixture) {
		want(t, "A's attempt", try(r, "A"), nil)
		time.Sleep(strategytest.TTL)
		want(t, "B's attempt", try(r, "B"), nil)
		want(t, "A's late release", release(r, "A"), strategies.ErrNotHeld)
		want(t, "B's release", release(r, "B"), nil)
	})
}

func TestSetNXPXGetDelDeletesWhatChangedHandsAfterItsGET(t *testing.T) {
	for _, name := range []string{"set-nx-px-get-del", "setnx-expire", "setnx-expire-repair"} {
		t.Run(name, func(t *testing.T) {
			strategytest.Run(t, lookup(t, name), func(t *testing.T, r *strategytest.Fixture) {
				want(t, "A's attempt", try(r, "A"), nil)
				r.Slow(1, time.Millisecond)
				result := make(chan error, 1)
				go func() { result <- release(r, "A") }()
				time.Sleep(1500 * time.Microsecond) // the GET is done
				if err := r.Server(1).Set(strategytest.Key, "B's"); err != nil {
					t.Fatal(err)
				}
				want(t, "A's release", <-result, nil)
				if r.Server(1).Exists(strategytest.Key) {
					t.Fatal("B's key is still there, want it deleted by A")
				}
			})
		})
	}
}
