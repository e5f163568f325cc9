package strategies_test

import (
	"context"
	"testing"

	"github.com/lockfault/lockfault/strategies/internal/strategytest"
)

func TestThreadIDsOfTwoProcessesCollide(t *testing.T) {
	s := lookup(t, "set-nx-px-lua-thread-id")
	strategytest.Run(t, s, func(t *testing.T, r *strategytest.Fixture) {
		want(t, "A's attempt", try(r, "A"), nil)
		env := r.Env("B")
		env.Thread = r.Env("A").Thread
		b, err := s.New(env)
		if err != nil {
			t.Fatal(err)
		}
		want(t, "the release by B, which never acquired", b.Release(context.Background()), nil)
		want(t, "C's attempt", try(r, "C"), nil)
	})
}
