package reports

import (
	"maps"
	"testing"
	"time"

	"github.com/lockfault/lockfault/checker"
)

// TestCommands checks that a command belongs to the operation during which it was sent, whenever it
// is executed.
func TestCommands(t *testing.T) {
	var h checker.History
	at := func(ms int, e checker.Event) {
		e.Index, e.Time, e.Sent = len(h.Events), time.Duration(ms)*time.Millisecond, e.Sent*time.Duration(time.Millisecond)
		h.Events = append(h.Events, e)
	}
	call := func(ms int, client string, op checker.Op) {
		at(ms, checker.Event{Kind: checker.Invoke, Client: client, Op: op})
	}
	sent := func(ms int, client string, setOut time.Duration) {
		at(ms, checker.Event{Kind: checker.Request, Client: client, Sent: setOut, Command: "GET lock"})
	}
	back := func(ms int, client string, op checker.Op, r checker.Result) {
		at(ms, checker.Event{Kind: checker.Return, Client: client, Op: op, Result: r})
	}
	sent(0, "A", 0) // before the first operation
	call(1, "A", checker.Acquire)
	sent(2, "A", 1)
	sent(2, "B", 1) // a client without an operation
	sent(3, "A", 2)
	back(4, "A", checker.Acquire, checker.OK)
	call(4, "A", checker.Release) // at the time of the return
	sent(5, "A", 4)
	sent(6, "A", 3) // belongs to the acquire, though it comes late
	back(7, "A", checker.Release, checker.OK)
	sent(9, "A", 8) // between operations
	call(10, "A", checker.Acquire)
	sent(11, "A", 10)
	back(12, "A", checker.Acquire, checker.Fail) // not a success
	call(13, "B", checker.Extend)
	sent(14, "B", 13)
	got := commands(h)
	if want := (map[checker.Op]int{checker.Acquire: 3, checker.Release: 1}); !maps.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}

// TestSilentRequestsAreNoCommands checks that a silent request, such as a session's keep-alive,
// belongs to no operation.
func TestSilentRequestsAreNoCommands(t *testing.T) {
	for silent, want := range map[bool]int{true: 1, false: 2} {
		h := checker.History{Events: []checker.Event{
			{Kind: checker.Invoke, Client: "A", Op: checker.Acquire},
			{Kind: checker.Request, Client: "A", Command: "CREATE /lock"},
			{Kind: checker.Request, Client: "A", Command: "PING", Silent: silent},
			{Kind: checker.Return, Client: "A", Op: checker.Acquire, Result: checker.OK},
		}}
		if got := commands(h)[checker.Acquire]; got != want {
			t.Errorf("silent: %v: %d commands, want %d", silent, got, want)
		}
	}
}
