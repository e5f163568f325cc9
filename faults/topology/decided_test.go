package topology_test

import (
	"errors"
	"testing"

	"github.com/lockfault/lockfault/faults"
	"github.com/lockfault/lockfault/faults/topology"
	"github.com/lockfault/lockfault/scenarios"
)

// The topology has a decision about every fault of the table.
func TestFaultsAreDecided(t *testing.T) {
	for _, d := range faults.Definitions() {
		f, err := scenarios.ParseFault(d.Example)
		if err != nil {
			t.Fatal(err)
		}
		top := topology.New(topology.Config{Nodes: 3, Replicas: 1, Peers: true, Key: "lock"}, topology.NopDriver{})
		if err := top.Apply(f); errors.Is(err, faults.ErrUnsupported) {
			t.Errorf("%s: %v: add a case for it", d.Name, err)
		}
	}
}
