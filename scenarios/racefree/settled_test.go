package racefree_test

import (
	"testing"

	"github.com/lockfault/lockfault/scenarios"
	"github.com/lockfault/lockfault/scenarios/racefree"
)

// Every script parses, a seed says it all, and another says something else.
func TestSlowScripts(t *testing.T) {
	seen := map[string]bool{}
	for seed := range uint64(200) {
		of := racefree.Subject{Name: "fenced", Nodes: 1 + int(seed%3), Replicas: 2}
		text := racefree.Script("x", seed, of)
		if _, err := scenarios.Parse("x.txt", []byte(text)); err != nil {
			t.Errorf("%v\n%s", err, text)
		}
		if text != racefree.Script("x", seed, of) {
			t.Errorf("seed %d: two scripts", seed)
		}
		if seen[text] {
			t.Errorf("seed %d: a script that there was before", seed)
		}
		seen[text] = true
	}
}
