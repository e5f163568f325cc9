package vtime

import (
	"fmt"
	"slices"
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
			state := stateOf(stack)
			if strings.HasPrefix(state, kind.state) && !strings.Contains(state, "(durable)") {
				return fmt.Sprintf("a goroutine %s%s%s: %s", kind.says, wait(frames(stack)), meanwhile(stack, stacks), kind.cure)
			}
		}
	}
	return "nothing in it says why, so it may need more time than that"
}

// stateOf returns what a goroutine waits for, such as "chan receive (durable), synctest bubble 7]".
func stateOf(stack string) string {
	header, _, _ := strings.Cut(stack, "\n")
	_, state, _ := strings.Cut(header, "[")
	return state
}

// meanwhile describes another goroutine that waits within the package of a blocked one, since it may
// have the mutex. It returns an empty string if there is none.
func meanwhile(blocked string, stacks []string) string {
	where := ""
	for _, f := range frames(blocked) {
		if !f.standard() && !f.creates {
			where = f.packagePath()
			break
		}
	}
	var others []string
	for _, stack := range stacks {
		if stack == blocked || !strings.Contains(stateOf(stack), "(durable)") {
			continue
		}
		for _, f := range frames(stack) {
			if !f.creates && f.packagePath() == where {
				others = append(others, fmt.Sprintf(", while another waits in %s at %s", f.function, f.place))
				break
			}
		}
	}
	if len(others) == 0 {
		return ""
	}
	return slices.Min(others)
}

// isOwnCode reports whether a goroutine runs this module's own code and is not called by a lock's
// code. Such a goroutine does not stop virtual time.
func isOwnCode(frames []frame) bool {
	for _, f := range frames {
		if !f.creates && !f.standard() {
			return f.own()
		}
	}
	return true
}
