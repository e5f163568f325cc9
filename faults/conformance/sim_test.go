package conformance

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/lockfault/lockfault/faults"
	"github.com/lockfault/lockfault/faults/sim"
)

// virtual is the side of package faults/sim. It must be used inside a bubble.
type virtual struct{ *sim.World }

// settle lets everything that is on its way arrive.
func (v virtual) settle(int, func() bool) error {
	v.Run(10*time.Millisecond, func() bool { return false })
	return nil
}

// inVirtualTime calls do in a bubble with a world of its own.
func inVirtualTime(t *testing.T, do func(side)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		w, err := sim.New(sim.Config{Nodes: 1, Replicas: 1, Lock: faults.SingleKeyLock("lock"), TTL: 30 * time.Second, Seed: 1})
		if err != nil {
			t.Fatal(err)
		}
		w.Begin()
		defer func() {
			if err := w.Close(); err != nil {
				t.Error(err)
			}
		}()
		do(virtual{w})
	})
}
