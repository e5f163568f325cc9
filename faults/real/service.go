package real

import (
	"context"
	"time"

	"github.com/lockfault/lockfault/faults"
	"github.com/lockfault/lockfault/faults/real/proxy"
)

// A Service is a kind of server other than Redis. Each server is a node without replicas, unless
// the service is a [Replicator]. If the servers are [LockInspector]s, the world asks them for the
// lock's holders. A server may have several requests at a time, even of one connection, and answers
// them in order unless the protocol specifies another order.
type Service interface {
	// Name returns the name of the service, such as etcd.
	Name() string
	// Login returns the login for clients, given the world's password.
	Login(password string) Login
	// Speaks returns the protocol of clients' links. The protocol must report, for each answer, the
	// request that it answers.
	Speaks() proxy.Protocol
	// Commands returns the commands that clients may send, in upper case, as scripts name them.
	Commands() []string
}

// A Replicator is a [Service] whose servers can follow one another: they are [Replica]s.
type Replicator interface {
	Service
	// Replicates reports whether the servers can follow one another.
	Replicates() bool
}

// Replicates reports whether a service's servers can follow one another.
func Replicates(s Service) bool {
	r, ok := s.(Replicator)
	return ok && r.Replicates()
}

// A Clocked is a [Service] whose servers can be started with movable clocks, if the machine
// supports that. A server that can report its clock's time is a [Timekeeper].
type Clocked interface {
	Service
	// MovesClocks reports whether the clocks can be set, and whether they can run at another rate.
	MovesClocks() (set, drift bool)
}

// A Timekeeper is a [ManagedServer] that reports its clock's time, which may follow SetClock with a
// delay. Other servers are assumed to follow SetClock at once.
type Timekeeper interface {
	Time(context.Context) (time.Time, error)
}

// A Clustered is a [Service] whose nodes are the members of a cluster, and whose hosts can cut the
// connections between them: they are [ClusterHost]s.
type Clustered interface {
	Service
	// Clusters reports whether the connections can be cut on this machine. It is quick, and starts
	// nothing.
	Clusters() bool
}

// Clusters reports whether the connections between a service's nodes can be cut; false for nil,
// which means Redis.
func Clusters(s Service) bool {
	c, ok := s.(Clustered)
	return ok && c.Clusters()
}

// IsCluster reports whether a service's nodes form a cluster, even if their connections can't be
// cut here.
func IsCluster(s Service) bool {
	_, ok := s.(Clustered)
	return ok
}

// A SoloStarter is a [ManagedServer] that answers only within a majority, and can be started
// without one.
type SoloStarter interface {
	// RestartAlone acts like Restart with the server's data, but returns as soon as the process
	// runs.
	RestartAlone(ctx context.Context) error
}

// Supports reports whether a fault is possible on the servers of a service other than Redis.
func Supports(s Service, f faults.Fault) bool {
	clocks, _ := s.(Clocked)
	set, drift := false, false
	if clocks != nil {
		set, drift = clocks.MovesClocks()
	}
	switch faults.RequirementOf(f) {
	case faults.NeedsNothing:
		return true
	case faults.NeedsReplicas:
		return Replicates(s)
	case faults.NeedsPeers:
		return Clusters(s)
	case faults.NeedsClock:
		return set
	case faults.NeedsDrift:
		return drift
	}
	return false
}
