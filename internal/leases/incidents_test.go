package leases

import (
	"slices"
	"testing"
	"time"

	"github.com/lockfault/lockfault/faults"
	"github.com/lockfault/lockfault/scenarios"
)

// TestFaultsAreDecided checks that each fault has an effect, or is known to have none of its own: it
// ends others, the history has events for what it does, or it takes away no lock.
func TestFaultsAreDecided(t *testing.T) {
	without := []string{
		"client-pause", "client-resume", "client-crash", "client-restart", "client-cancel",
		"heal", "node-heal", "node-resume", "script-flush", "hold", "drop", "reset", "pass", "clear",
	}
	for _, d := range faults.Definitions() {
		f, err := scenarios.ParseFault(d.Example)
		if err != nil {
			t.Errorf("%s: the example %q: %v", d.Name, d.Example, err)
			continue
		}
		if has := len(effectsOf(f, time.Second)) > 0; has == slices.Contains(without, d.Name) {
			t.Errorf("%s: an effect: %v; decide in effectsOf or in this list", d.Name, has)
		}
	}
}
