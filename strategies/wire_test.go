package strategies_test

import (
	"os"
	"testing"

	"github.com/lockfault/lockfault/strategies"
	"github.com/lockfault/lockfault/strategies/internal/strategytest"
)

func TestMain(m *testing.M) {
	strategytest.Quiet()
	os.Exit(m.Run())
}

// lookup returns a built-in strategy.
func lookup(t *testing.T, name string) strategies.Strategy {
	t.Helper()
	s, ok := strategies.Builtin().Lookup(name)
	if !ok {
		t.Fatalf("there is no strategy %s", name)
	}
	return s
}

// The order of the commands is the algorithm: testdata/NAME.txt has it for a
// hand-over from A to B, with a loser that gives up, one that waits, and a
// release by one that doesn't hold.
func TestWire(t *testing.T) {
	for _, s := range strategies.Builtin().All() {
		t.Run(s.Name, func(t *testing.T) {
			strategytest.PlayGolden(t, s, s.Name, `
				A acquire
				B try
				B begin acquire 1m
				wait 120ms
				A release
				join B
				B extend
				A release
				B release
			`)
		})
	}
}
