//go:build race

package registrytest_test

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/lockfault/lockfault/internal/harness"
	"github.com/lockfault/lockfault/scenarios"
	"github.com/lockfault/lockfault/strategies"
	"github.com/lockfault/lockfault/strategies/all"
)

// The race detector looks at a part of the library's cells, another one each time:
// every scenario with some strategies, and every strategy under some scenarios. All
// cells are played without it.
func TestSomeCellsRaced(t *testing.T) {
	const part = 4
	names := all.Registry().Names()
	library, err := scenarios.Library()
	if err != nil {
		t.Fatal(err)
	}
	var scripts []string
	for _, script := range library {
		scripts = append(scripts, script.Name)
	}
	drawn := rand.IntN(part)
	t.Logf("part %d of %d", drawn+1, part)
	eachCell(t, func(t *testing.T, strategy strategies.Strategy, script *scenarios.Script) {
		if (slices.Index(names, strategy.Name)+slices.Index(scripts, script.Name))%part != drawn {
			return
		}
		outcome := harness.Play(t, harness.Cell{Strategy: strategy, Script: script, Seed: 1})
		if outcome.Status == harness.Error || outcome.Status != harness.NotApplicable && !slices.Equal(outcome.Verdict.Anomalies(), outcome.Expected) {
			t.Errorf("%s: %s %v, want %v\n%s", strategy.Name, outcome.Status, outcome.Verdict.Anomalies(), outcome.Expected, outcome.Reason)
		}
	})
}
