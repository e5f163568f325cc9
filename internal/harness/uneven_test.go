package harness_test

import (
	"context"
	"testing"
	"time"

	"github.com/lockfault/lockfault/internal/harness"
	"github.com/lockfault/lockfault/strategies"
)

// A script begins at an uneven time, whatever the warm-up took.
func TestBeginsAtAnUnevenTime(t *testing.T) {
	var at time.Time
	s := strategyOf(func(context.Context) error {
		at = time.Now()
		return nil
	})
	for _, late := range []time.Duration{0, 950 * time.Millisecond, 3 * time.Second} {
		inner := s.New
		slow := s
		slow.New = func(env strategies.Env) (strategies.Lock, error) {
			time.Sleep(late)
			return inner(env)
		}
		outcome := play(t, slow, "clients A\nA acquire\nexpect none\n")
		if outcome.Status != harness.Held {
			t.Fatal(outcome.Status, outcome.Reason)
		}
		if ms := at.Nanosecond() / 1e6; ms < 900 || ms > 910 {
			t.Errorf("with %v before the script, it began %d ms after a full second, want 900", late, ms)
		}
	}
}
