package thirdparty_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/lockfault/lockfault/strategies"
	"github.com/lockfault/lockfault/strategies/internal/strategytest"
)

var errUnknown = errors.New("unknown outcome")

// unknown turns an error that is none of the definite ones into errUnknown.
func unknown(err error) error {
	if err == nil || errors.Is(err, strategies.ErrNotHeld) || errors.Is(err, strategies.ErrNotAcquired) {
		return err
	}
	return errUnknown
}

func TestRedsyncWithNodesDown(t *testing.T) {
	for _, c := range []struct {
		strategy       string
		down           int
		taken          bool // by somebody else, on the nodes that are up
		try, blocking  error
		releaseOfLocks error
	}{
		{"redsync", 0, false, nil, nil, nil},
		{"redsync", 0, true, strategies.ErrNotAcquired, strategies.ErrNotAcquired, strategies.ErrNotHeld},
		// The library retries whatever went wrong, and says at the end only
		// that it failed.
		{"redsync", 1, false, errUnknown, strategies.ErrNotAcquired, errUnknown},
		{"redsync-5", 2, false, nil, nil, nil},
		{"redsync-5", 2, true, strategies.ErrNotAcquired, strategies.ErrNotAcquired, strategies.ErrNotHeld},
		{"redsync-5", 3, false, errUnknown, strategies.ErrNotAcquired, errUnknown},
	} {
		strategytest.Run(t, lookup(t, c.strategy), func(t *testing.T, r *strategytest.Fixture) {
			nodes := max(1, r.Strategy.Nodes)
			for i := range nodes {
				if i < c.down {
					r.Down(i + 1)
				} else if c.taken {
					if err := r.Server(i+1).Set(strategytest.Key, "somebody's"); err != nil {
						t.Fatal(err)
					}
				}
			}
			want(t, "the attempt", unknown(try(r, "A")), c.try)
			want(t, "the release", unknown(release(r, "A")), c.releaseOfLocks)
			ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
			defer cancel()
			want(t, "the acquire", unknown(r.Lock("B").Acquire(ctx)), c.blocking)
		})
	}
}

func TestRedsyncValidUntilIsOnTheClientsClock(t *testing.T) {
	strategytest.Run(t, lookup(t, "redsync-5"), func(t *testing.T, r *strategytest.Fixture) {
		r.Ahead("A", time.Hour)
		want(t, "the attempt", try(r, "A"), nil)
		until := r.Lock("A").(strategies.Validity).ValidUntil()
		if left, wanted := time.Until(until), time.Hour+strategytest.TTL*99/100; left != wanted {
			t.Errorf("valid for %s, want %s", left, wanted)
		}
	})
}
