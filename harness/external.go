package harness

import (
	"context"
	"fmt"

	"github.com/lockfault/lockfault/faults"
	"github.com/lockfault/lockfault/faults/external"
	"github.com/lockfault/lockfault/scenarios"
)

// ErrAddress is in errors about addresses in [Place].Redis that can't be read.
var ErrAddress = external.ErrAddress

// NewRun returns a name for [Place].Run that no other run has.
func NewRun() string { return external.NewRun() }

// Leave removes what the run named Run has left behind at a place that is not
// the harness's own, whatever became of its cells, all of which must have
// ended. It does nothing in other worlds, or where cells clean up themselves. It
// blocks until that is done, or ctx is.
func (p Place) Leave(ctx context.Context) error {
	if p.World != External || p.Run == "" {
		return nil
	}
	return external.Remove(ctx, p.Redis, p.Run)
}

// externalTakes says why a cell can't be played with a Redis that isn't ours,
// if it can't: that is known before anything is touched.
func (p Place) externalTakes(cell Cell) (ok bool, why string) {
	switch needs, has := max(1, cell.Strategy.Nodes), len(p.Redis); {
	case p.Sentinel:
		return false, "sentinels need servers of our own"
	case needs > has:
		return false, fmt.Sprintf("%s runs on %d nodes, --redis names %d", cell.Strategy.Name, needs, has)
	case cell.Script.Replicas > 0:
		return false, "the script needs replicas, and this Redis is not ours to give it some"
	}
	for _, step := range cell.Script.Steps {
		if inject, ok := step.Do.(scenarios.Inject); ok && !harmless(inject.Fault) {
			return false, fmt.Sprintf("line %d, %q: this Redis is not ours", step.Line, inject.Fault)
		}
	}
	return true, ""
}

// harmless reports whether a fault leaves servers, and what others keep there,
// alone: it befalls our own clients, links or key.
func harmless(f faults.Fault) bool {
	switch f.(type) {
	case faults.PauseClient, faults.ResumeClient, faults.CrashClient, faults.RestartClient, faults.ClientClock,
		faults.Latency, faults.Bandwidth, faults.Partition, faults.Timeout, faults.Heal, faults.Evict,
		faults.Hold, faults.Delay, faults.Drop, faults.Reset, faults.Pass, faults.Clear:
		return true
	}
	return false
}
