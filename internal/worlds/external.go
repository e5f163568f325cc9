package worlds

import (
	"context"
	"fmt"

	"github.com/lockfault/lockfault/faults/external"
	"github.com/lockfault/lockfault/internal/harness"
	"github.com/lockfault/lockfault/scenarios"
)

// externalPlace implements the world [External].
type externalPlace struct{ Place }

// ErrAddress is wrapped by errors about invalid addresses in [Place].Redis.
var ErrAddress = external.ErrAddress

// NewRun returns a unique name for [Place].Run.
func NewRun() string { return external.NewRun() }

func (p externalPlace) check(ctx context.Context) error { return external.Check(ctx, p.Redis) }

func (p externalPlace) host(context.Context, Programs) (Host, error) {
	return external.New(external.Options{Redis: p.Redis, Run: p.Run})
}

func (p externalPlace) leave(ctx context.Context) error {
	if p.Run == "" {
		return nil
	}
	return external.Remove(ctx, p.Redis, p.Run)
}

// takes reports whether a cell can run on the user's own Redis, and the reason if not. takes has no
// side effects.
func (p externalPlace) takes(cell harness.Cell) (ok bool, why string) {
	switch needs, has := max(1, cell.Strategy.Nodes), len(p.Redis); {
	case p.Sentinel:
		return false, "sentinels need servers of our own"
	case needs > has:
		return false, fmt.Sprintf("%s runs on %d nodes, --redis names %d", cell.Strategy.Name, needs, has)
	case cell.Script.Replicas > 0:
		return false, "the script needs replicas, and this Redis is not ours to give it some"
	}
	for _, step := range cell.Script.Steps {
		if inject, ok := step.Do.(scenarios.Inject); ok && !inject.Fault.Definition().SparesOthers() {
			return false, fmt.Sprintf("line %d, %q: this Redis is not ours", step.Line, inject.Fault)
		}
	}
	return true, ""
}
