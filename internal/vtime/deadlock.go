package vtime

import (
	"fmt"
	"strings"
)

// stuck returns, in one line, what stops virtual time, and the remedy. The cause is a goroutine
// that waits for an object outside the bubble, or one that never waits.
func stuck(stacks []string) string {
	type culprit struct{ state, says, cure string }
	kinds := []culprit{
		{"sync.Mutex.Lock", "waits for a sync.Mutex", "let nobody wait for Redis, or sleep, while it has a mutex that others want"},
		{"sync.RWMutex", "waits for a sync.RWMutex", "let nobody wait for Redis, or sleep, while it has a mutex that others want"},
		{"sync.WaitGroup.Wait", "waits for a sync.WaitGroup that is shared with goroutines outside", "let each lock have one of its own"},
		{"IO wait", "waits for a real connection", "take connections from Env.Nodes or Env.Dial"},
		{"syscall", "is in a system call", "let it wait for nothing outside of this process"},
		{"chan ", "waits for a channel that was made outside", "let each lock have channels of its own, none in variables of the package"},
		{"select", "waits for a channel that was made outside", "let each lock have channels of its own, none in variables of the package"},
		{"run", "computes without an end", "let loops pause, if only for a millisecond"},
	}
	for _, kind := range kinds {
		for _, stack := range stacks {
			if isOwnCode(frames(stack)) {
				continue
			}
			header, _, _ := strings.Cut(stack, "\n")
			_, state, _ := strings.Cut(header, "[")
			if strings.HasPrefix(state, kind.state) && !strings.Contains(state, "(durable)") {
				return fmt.Sprintf("a goroutine %s%s: %s", kind.says, wait(frames(stack)), kind.cure)
			}
		}
	}
	return "nothing in it says why, so it may need more time than that"
}

// isOwnCode reports whether a goroutine runs this module's own code and is not called by a lock's
// code. Such a goroutine does not stop virtual time.
func isOwnCode(frames []frame) bool {
	for _, f := range frames {
		if f.creates || f.standard() {
			continue
		}
		for _, room := range []string{"internal/vtime.", "internal/harness.", "internal/harness/client.", "faults/sim."} {
			if strings.HasPrefix(f.path, "github.com/lockfault/lockfault/"+room) {
				return true
			}
		}
		return false
	}
	return true
}
