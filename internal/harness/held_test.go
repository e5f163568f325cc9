package harness_test

import (
	"testing"
	"time"

	"github.com/lockfault/lockfault/internal/harness"
	"github.com/lockfault/lockfault/scenarios"
	"github.com/lockfault/lockfault/strategies"
)

// A message that is held on one node is none that is held on another.
func TestAwaitHeldOnANode(t *testing.T) {
	redlock, _ := strategies.Builtin().Lookup("redlock")
	for await, want := range map[string]time.Duration{
		"await A held within 10ms":                 0,
		"await A held on n2 within 10ms":           0,
		"await A held on n1 within 10ms":           10 * time.Millisecond,
		"await A held on n2 n1 within 10ms":        10 * time.Millisecond,
		"await A held on quorum within 10ms":       10 * time.Millisecond,
		"await B held on n1 within 10ms":           0, // it has nothing to do
		"await A held on n1 n2 quorum within 20ms": 20 * time.Millisecond,
	} {
		script, err := scenarios.Parse("x.txt", []byte("clients A B\nnodes 5\nread-timeout 10s\nlatency 0s\nhold before any on n2\nhold before any on n1 quorum or none\n"+
			"begin A try\nwait 1µs\npass A once on n1\nwait 1µs\nmeasure x\n"+await+"\nstop x\nexpect none\n"))
		if err != nil {
			t.Fatal(err)
		}
		outcome := harness.Play(t, harness.Cell{Strategy: redlock, Script: script, Seed: 1})
		if got := outcome.Measures["x"].Round(time.Millisecond); got != want || outcome.Status == harness.Error {
			t.Errorf("%q took %v, want %v (%s)", await, got, want, outcome.Reason)
		}
	}
}
