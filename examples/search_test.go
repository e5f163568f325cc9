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
			if !strings.Contains(string(out), ": "+c.finds+": ") {
				t.Errorf("%v finds no %s: %v\n%s", args, c.finds, err, out)
			}
		})
	}
}

// A search does not take a sound lock for a defective one. TestTestedStrangers looks at others.
func TestSearchesAccuseNoSoundLock(t *testing.T) {
	program := build(t, "corpus")
	for _, lock := range []string{"sound-written", "sound-spring", "sound-reentrant"} {
		for _, budget := range []string{"--advance 1", "--pause 1", "--cancel 1", "--lose-reply 1 --retries 1"} {
			t.Run(lock+" "+budget, func(t *testing.T) {
				args := append([]string{"explore", lock, "--for", "5m"}, strings.Fields(budget)...)
				if out, err := exec.CommandContext(t.Context(), program, args...).CombinedOutput(); err != nil {
					t.Errorf("%v: %v\n%s", args, err, out)
				}
			})
		}
	}
}
