package examples

import (
	"os/exec"
	"strings"
	"testing"
)

// A search finds, without being told where to look, what was planted into these locks.
func TestSearchesFindPlantedBugs(t *testing.T) {
	program := build(t, "corpus")
	for _, c := range []struct{ lock, finds, budget string }{
		{"faulty-token-before", "refused-write", "--pause 1"},
		{"faulty-dog-blind", "foreign-extend", "--pause 1 --tick 1"},
		{"faulty-tidy", "foreign-release", ""},
		{"faulty-hdel", "foreign-release", "--advance 1"},
	} {
		t.Run(c.lock, func(t *testing.T) {
			args := append([]string{"explore", c.lock, "--until", c.finds, "--for", "5m"}, strings.Fields(c.budget)...)
			out, err := exec.CommandContext(t.Context(), program, args...).CombinedOutput()
			if err == nil || !strings.Contains(string(out), c.finds+", after ") {
				t.Errorf("%v finds no %s: %v\n%s", args, c.finds, err, out)
			}
		})
	}
}
