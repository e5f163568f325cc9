package checker

import (
	"slices"
	"strings"
	"testing"
)

// Clients wait for a message that a fault holds, and not for one another.
func TestHeldMessagesAreNoDeadlock(t *testing.T) {
	h, err := parseHistory(strings.Split(`with nodes n1,n2
0s A acquire
0s B acquire
1ms n1 A1 of A until 30s by A
2ms n2 B1 of B until 30s by B
3ms A sends n2 SET lock A1 nx
20s A acquire unknown
21s end`, "\n"))
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Contains(Check(h).Anomalies(), Deadlock) {
		t.Fatal("without the held message the history must show a deadlock, and does not")
	}
	h.Events[4] = Event{Index: 4, Time: h.Events[4].Time, Kind: Held, Client: "A", Node: "n2", Direction: "request"}
	if slices.Contains(Check(h).Anomalies(), Deadlock) {
		t.Error("a deadlock, though A's request is held")
	}
}
