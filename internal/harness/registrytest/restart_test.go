package registrytest_test

import (
	"strings"
	"testing"

	"github.com/lockfault/lockfault/checker"
	"github.com/lockfault/lockfault/faults"
	"github.com/lockfault/lockfault/internal/harness"
	"github.com/lockfault/lockfault/scenarios"
	"github.com/lockfault/lockfault/strategies/all"
)

// A goroutine that slept when its process crashed must not act in the name of
// the next life: B died waiting for the lock and was never told to ask again.
func TestACrashedClientStaysDead(t *testing.T) {
	script, err := scenarios.Parse("test.txt", []byte(`clients A B
A acquire
begin B acquire
wait 10s
B crash
wait 50ms
B restart
wait 1s
A release
wait 20s
expect none
`))
	if err != nil {
		t.Fatal(err)
	}
	for _, strategy := range all.Registry().All() {
		outcome := harness.Play(t, harness.Cell{Strategy: strategy, Script: script, Seed: 1})
		if outcome.Status != harness.Held {
			t.Errorf("%s: %s %s", strategy.Name, outcome.Status, outcome.Reason)
		}
		restarted := false
		for _, e := range outcome.History.Events {
			restarted = restarted || e.Kind == checker.Restart
			// The next life may connect before it is told to do anything.
			word, _, _ := strings.Cut(e.Command, " ")
			connects := faults.Message{Command: word}.SetsUp() || word == "PING"
			if restarted && e.Kind == checker.Request && e.Client == "B" && !connects {
				t.Errorf("%s: B's former life sent %s at %v", strategy.Name, e.Command, e.Time)
				break
			}
		}
	}
}
