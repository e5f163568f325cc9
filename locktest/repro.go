package locktest

import (
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/lockfault/lockfault/internal/shell"
)

// reproCommand returns the command that runs a subtest again and prints its whole story.
func (test *test) reproCommand(t *testing.T) string {
	settings := envStory + "=1 "
	if test.settings.seed != defaultSeed {
		settings += fmt.Sprintf("%s=%d ", envSeed, test.settings.seed)
	}
	return "\nagain: " + settings + goTest(t.Name()) + "\n"
}

// goTest returns the command that runs one test or subtest.
func goTest(name string) string {
	return fmt.Sprintf("go test %s -count=1 -run %s", packagePath(), shell.Quote(pattern(name)))
}

// pattern returns the -test.run pattern that matches only the given test or subtest.
func pattern(name string) string {
	parts := strings.Split(name, "/")
	for i, part := range parts {
		parts[i] = "^" + regexp.QuoteMeta(part) + "$"
	}
	return strings.Join(parts, "/")
}

// explain returns the reason of a cell without a verdict. The result includes the remedy if the
// reason is a known problem of tests in virtual time, and the beginning of the stacks.
func explain(reason string) string {
	says, stacks, _ := strings.Cut(reason, "\n\n")
	for _, known := range []struct{ says, cure string }{
		{"synctest channel from outside bubble", "a timer or a channel outlives its scenario, in a pool or a variable of a package perhaps: make it where the lock is made"},
		{"from outside bubble", "a timer or a channel outlives its scenario, in a pool or a variable of a package perhaps: make it where the lock is made"},
		{"synctest bubbles", "a timer or a channel outlives its scenario, in a pool or a variable of a package perhaps: make it where the lock is made"},
		{"dial tcp", "connections to real servers can't be made here: take a client from Env.Nodes, or connections from Env.Dial"},
	} {
		if strings.Contains(reason, known.says) {
			says += "\n" + known.cure
			break
		}
	}
	if stacks == "" {
		return says
	}
	lines := strings.Split(stacks, "\n")
	if len(lines) > stackLines {
		lines = append(lines[:stackLines], "…")
	}
	return says + "\n\n" + strings.Join(lines, "\n")
}

// stackLines is the maximum number of lines of stacks in a message.
const stackLines = 40
