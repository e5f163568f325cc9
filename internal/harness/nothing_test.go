package harness_test

import (
	"testing"

	"github.com/lockfault/lockfault/internal/harness"
	"github.com/lockfault/lockfault/strategies"
)

// A cell without a script is an error that says so.
func TestPlayNothing(t *testing.T) {
	strategy, _ := strategies.Builtin().Lookup("fenced")
	outcome := harness.Play(t, harness.Cell{Strategy: strategy})
	if outcome.Status != harness.Error || outcome.Reason != "the cell has no script to play" {
		t.Errorf("%s: %s", outcome.Status, outcome.Reason)
	}
}
