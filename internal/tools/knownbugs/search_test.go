package main

import (
	"os/exec"
	"strings"
	"testing"
)

// searches has lockfault explore find, without a script, what is on the page.
func searches(t *testing.T, program string) {
	for _, c := range []struct{ strategy, finds, budget string }{
		{"redsync-constant-value", "foreign-release", ""},
		{"redsync-setnx-on-extend", "foreign-extend", "--extend --advance 1"},
		{"redsync-5-fail-fast", "ghost", "--nodes 3"},
		{"redsync-5", "ghost", "--nodes 3 --cancel 1"},
		{"redislock-custom-token", "overlap", ""},
		{"goredis-setnx", "ghost", "--lose-reply 1 --retries 3"},
		{"rueidislock", "overlap", "--partition 1"},
	} {
		t.Run(c.strategy, func(t *testing.T) {
			args := append([]string{"explore", c.strategy, "--until", c.finds, "--for", "5m"}, strings.Fields(c.budget)...)
			out, err := exec.CommandContext(t.Context(), program, args...).CombinedOutput()
			if !strings.Contains(string(out), ": "+c.finds+": ") {
				t.Errorf("%v finds no %s: %v\n%s", args, c.finds, err, out)
			}
		})
	}
}
