package worlds

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/lockfault/lockfault/faults"
	"github.com/lockfault/lockfault/faults/real"
	"github.com/lockfault/lockfault/internal/harness"
	"github.com/lockfault/lockfault/scenarios"
	"github.com/lockfault/lockfault/strategies"
)

// Service is a kind of server other than Redis, with the locks that run on it. A Service runs in
// the world [Process].
type Service interface {
	real.Service
	// Summary describes the service in one line.
	Summary() string
	// Strategies returns the locks of the service.
	Strategies() []strategies.Strategy
	// Check reports whether the service's servers can be started here, and blocks until that is
	// known. The error names, in one line, the missing part and the remedy.
	Check(context.Context) error
	// Host returns a host that starts servers for one cell, with the given numbers of nodes and of
	// replicas per node. Temporary directories are made in dir; empty means the system's default.
	Host(ctx context.Context, nodes, replicas int, dir string) (Host, error)
	// Sweep removes the files that hosts of dead processes left in dir.
	Sweep(dir string)
	// Lease returns the default lease.
	Lease() time.Duration
}

// ServiceOf returns the service of a strategy, or nil for Redis. ServiceOf returns an error if this
// program does not have the service.
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

// serviceTakes reports whether a cell can run on servers of its service, and the reason if not.
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
		between := faults.AreBetweenNodes(inject.Fault)
		order, isOrder := inject.Fault.(faults.Order)
		switch {
		case isOrder:
			if ok, why := orderTakes(service, cell.Strategy, order.About()); !ok {
				return false, fmt.Sprintf("line %d is about %s", step.Line, why)
			}
		case between && !real.IsCluster(service):
			return false, scenarios.NothingToCut(step.Line, name)
		case between && !real.Clusters(service):
			return false, fmt.Sprintf("line %d: members of %s can be cut off from one another on Linux alone, where the system says which of them has dialled", step.Line, name)
		case !real.Supports(service, inject.Fault):
			return false, fmt.Sprintf("line %d: %q can't be done to %s here", step.Line, inject.Fault, name)
		}
	}
	return true, ""
}

// orderTakes reports whether the messages of a gate command can occur on links to a service's
// servers. The reason names the messages and is valid only if they cannot. A command with OrNone
// needs no such messages.
func orderTakes(service Service, s strategies.Strategy, m faults.Match) (ok bool, why string) {
	name := service.Name()
	switch about := m.Way == faults.Messages || m.Effect != "" || len(m.Commands) > 0; {
	case m.OrNone || !about:
		return true, ""
	case m.Effect == faults.Taking || m.Effect == faults.Freeing:
		return s.Query != "", fmt.Sprintf("what requests do with the lock, and %s has no Query by which servers of %s would say whose it is", s.Name, name)
	case m.Way == faults.Messages:
		return false, fmt.Sprintf("messages that nobody asked for, which no order meets on links to %s", name)
	case m.Effect != "":
		return false, fmt.Sprintf("requests that read or write a key of Redis, which %s doesn't have: name a command", name)
	}
	has := func(command string) bool { return slices.Contains(service.Commands(), command) }
	return slices.ContainsFunc(m.Commands, has), fmt.Sprintf("%s, which %s doesn't have", strings.Join(m.Commands, ", "), name)
}
