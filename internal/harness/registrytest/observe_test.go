package registrytest_test

import (
	"slices"
	"testing"

	"github.com/lockfault/lockfault/checker"
	"github.com/lockfault/lockfault/internal/harness"
	"github.com/lockfault/lockfault/internal/leases"
	"github.com/lockfault/lockfault/strategies"
	"github.com/lockfault/lockfault/strategies/all"
)

// The probes show of each strategy what its tags declare.
func TestProbesShowWhatTagsDeclare(t *testing.T) {
	for _, s := range all.Registry().All() {
		if s.RunsOn() != strategies.Redis || s.HistoryVaries != "" {
			continue // other services are not observed, and what varies may show one thing or another
		}
		var declared []string
		for _, tag := range []string{strategies.TagQuorum, strategies.TagRenewing, strategies.TagNotifying, strategies.TagExtending, strategies.TagFenced} {
			if slices.Contains(s.Tags, tag) {
				declared = append(declared, tag)
			}
		}
		s.Tags = nil
		histories := map[string]checker.History{}
		for _, script := range leases.Probes(s) {
			histories[script.Name] = harness.Play(t, harness.Cell{Strategy: s, Script: script, Seed: 1}).History
		}
		seen, err := leases.Observe(s, histories)
		slices.Sort(seen.Tags)
		slices.Sort(declared)
		if err != nil || !slices.Equal(seen.Tags, declared) {
			t.Errorf("%s: the probes show %q, %v; it declares %q", s.Name, seen.Tags, err, declared)
		}
		if seen.Overstay != 0 {
			t.Errorf("%s: its acquire goes on for %v after its context", s.Name, seen.Overstay)
		}
	}
}
