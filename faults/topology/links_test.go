package topology_test

import (
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/lockfault/lockfault/faults/topology"
)

var start = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

func TestArrives(t *testing.T) {
	const kilobyte = 1000
	for name, test := range map[string]struct {
		road topology.LinkState
		// sizes are the sizes in bytes of messages that are sent at the start, one after the other.
		sizes []int
		want  []time.Duration
	}{
		"free":          {topology.LinkState{}, []int{10, kilobyte}, []time.Duration{0, 0}},
		"far":           {topology.LinkState{Base: time.Second}, []int{10, kilobyte}, []time.Duration{time.Second, time.Second}},
		"narrow":        {topology.LinkState{Bandwidth: kilobyte}, []int{500, 250}, []time.Duration{500 * time.Millisecond, 750 * time.Millisecond}},
		"far, narrow":   {topology.LinkState{Base: time.Second, Bandwidth: kilobyte}, []int{500, 0, 250}, []time.Duration{1500 * time.Millisecond, 1500 * time.Millisecond, 1750 * time.Millisecond}},
		"nearly closed": {topology.LinkState{Bandwidth: 1e-30}, []int{1, 1}, []time.Duration{topology.Century, 2 * topology.Century}},
	} {
		t.Run(name, func(t *testing.T) {
			links := topology.New(topology.Config{Nodes: 1}, nil).Links
			var line topology.Line
			for i, size := range test.sizes {
				if got := links.Arrives(test.road, &line, topology.JitterKey{}, start, size).Sub(start); got != test.want[i] {
					t.Errorf("message %d takes %v; want %v", i, got, test.want[i])
				}
			}
		})
	}
}

// TestJitter checks that jitter stays within its bounds, that no message arrives before it was
// sent, and that the same message with the same seed takes the same time.
func TestJitter(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		road := topology.LinkState{
			Base:   time.Duration(rapid.Int64Range(0, int64(time.Minute)).Draw(t, "base")),
			Jitter: time.Duration(rapid.Int64Range(0, int64(time.Minute)).Draw(t, "jitter")),
		}
		seed := rapid.Uint64().Draw(t, "seed")
		draw := topology.JitterKey{
			On:   topology.Link{Client: rapid.String().Draw(t, "client"), Node: "n1"},
			Sent: time.Duration(rapid.Int64().Draw(t, "sent")),
		}
		takes := func() time.Duration {
			links := topology.New(topology.Config{Nodes: 1, Seed: seed}, nil).Links
			return links.Arrives(road, &topology.Line{}, draw, start, 100).Sub(start)
		}
		took := takes()
		if took < 0 || took < road.Base-road.Jitter || took > road.Base+road.Jitter {
			t.Errorf("it takes %v", took)
		}
		if again := takes(); again != took {
			t.Errorf("it takes %v, and then %v", took, again)
		}
	})
}
