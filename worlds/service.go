package worlds

import (
	"context"
	"fmt"
	"time"

	"github.com/lockfault/lockfault/faults"
	"github.com/lockfault/lockfault/faults/real"
	"github.com/lockfault/lockfault/harness"
	"github.com/lockfault/lockfault/scenarios"
	"github.com/lockfault/lockfault/strategies"
)

// A Service is a kind of servers other than Redis, with the locks that run on them. It is played in
// the world [Process].
type Service interface {
	real.Service
	// Summary says in a line what it is.
	Summary() string
	// Strategies returns its locks.
	Strategies() []strategies.Strategy
	// Check finds out whether its servers can be started here. It blocks until that is known. The error
	// says in one line what is missing and what to do.
	Check(context.Context) error
	// Host returns who starts servers for one cell, on so many nodes, each with so many replicas. Temporary directories are made
	// in dir; empty means the system's place.
	Host(ctx context.Context, nodes, replicas int, dir string) (Host, error)
	// Sweep removes what hosts of dead processes left in dir.
	Sweep(dir string)
	// Lease is the lease unless a cell says otherwise.
	Lease() time.Duration
}

// ServiceOf returns the service that a strategy runs on, nil for Redis. The error says that there is
// none such here.
func (p Programs) ServiceOf(s strategies.Strategy) (Service, error) {
	if s.RunsOn() == strategies.Redis {
		return nil, nil
	}
	for _, service := range p.Services {
		if service.Name() == s.RunsOn() {
			return service, nil
		}
	}
	return nil, fmt.Errorf("%s runs on %s, which this program doesn't know", s.Name, s.RunsOn())
}

// serviceTakes reports whether a cell can be played on servers of its service, and why if not.
func (p Place) serviceTakes(service Service, cell harness.Cell) (ok bool, why string) {
	name := service.Name()
	switch {
	case p.World != Process:
		return false, fmt.Sprintf("%s is played with --world %s", name, Process)
	case p.Sentinel:
		return false, fmt.Sprintf("sentinels are Redis's, and %s has none", name)
	case p.Missing[name] != "":
		return false, p.Missing[name]
	case cell.Script.Replicas > 0 && !real.Replicates(service):
		return false, fmt.Sprintf("a server of %s has no replicas here", name)
	}
	for _, step := range cell.Script.Steps {
		inject, ok := step.Do.(scenarios.Inject)
		if !ok {
			continue
		}
		if order, ok := inject.Fault.(faults.Order); ok {
			m := order.About()
			if !m.OrNone && (len(m.Commands) > 0 || m.Effect != "" || m.Way == faults.Messages) {
				return false, fmt.Sprintf("line %d is about what requests do, and those of %s are not told apart", step.Line, name)
			}
		} else if faults.BetweenNodes(inject.Fault) && !real.IsCluster(service) {
			return false, harness.NothingToCut(step.Line, name)
		} else if faults.BetweenNodes(inject.Fault) && !real.Clusters(service) {
			return false, fmt.Sprintf("line %d: which member of %s has dialled another Linux alone says, and nothing can be cut without", step.Line, name)
		} else if !real.Takes(service, inject.Fault) {
			return false, fmt.Sprintf("line %d: %q can't be done to %s here", step.Line, inject.Fault, name)
		}
	}
	return true, ""
}
