package real

import (
	"context"
	"time"

	"github.com/lockfault/lockfault/faults"
	"github.com/lockfault/lockfault/faults/real/proxy"
)

// A Service is what kind of servers a world has, if not Redis. Each is a node; none has replicas
// unless it is a [Replicator]. Whose a lock is on them is asked where they are [LockInspector]s. A server may have several requests at
// a time, of one connection too, which it answers in their order unless the protocol says otherwise.
type Service interface {
	// Name is the word for it, such as etcd.
	Name() string
	// Login returns how clients log in, given the world's password.
	Login(password string) Login
	// Speaks returns what is spoken on clients' links. It says of each answer which request it answers.
	Speaks() proxy.Protocol
	// Commands returns what clients may send, in upper case, as scripts name it.
	Commands() []string
}

// A Replicator is a [Service] whose servers can follow one another: they are [Replica]s.
type Replicator interface {
	Service
	// Replicates reports whether they do.
	Replicates() bool
}

// Replicates reports whether a service's servers can follow one another.
func Replicates(s Service) bool {
	r, ok := s.(Replicator)
	return ok && r.Replicates()
}

// A Clocked is a [Service] whose servers can be started with clocks that can be moved, as far as the machine
// allows that. One that knows what its clock shows is a [Timekeeper].
type Clocked interface {
	Service
	// MovesClocks reports whether they can be set, and whether they can run at another rate.
	MovesClocks() (set, drift bool)
}

// A Timekeeper is an [ManagedServer] that is asked what its clock shows, which it may go by only a while after SetClock; others are
// believed to go by it at once.
type Timekeeper interface {
	Time(context.Context) (time.Time, error)
}

// A Clustered is a [Service] whose nodes are the members of a cluster, which talk to one another, and whose hosts
// can cut the ways between them: they are [ClusterHost]s.
type Clustered interface {
	Service
	// Clusters reports whether they can here. It is quick, and starts nothing.
	Clusters() bool
}

// Clusters reports whether the ways between a service's nodes can be cut; nil is Redis, whose can't.
func Clusters(s Service) bool {
	c, ok := s.(Clustered)
	return ok && c.Clusters()
}

// IsCluster reports whether a service's nodes talk to one another, here or elsewhere.
func IsCluster(s Service) bool {
	_, ok := s.(Clustered)
	return ok
}

// A SoloStarter is an [ManagedServer] that answers only as one of a majority, and can be started where there is none.
type SoloStarter interface {
	// RestartAlone is Restart, with its data, and returns when the process runs.
	RestartAlone(ctx context.Context) error
}

// Supports reports whether a fault is possible where servers are a service's and not Redis: what becomes of
// clients, links and nodes is, nothing that is a command of Redis, and what concerns replicas
// where there are any.
func Supports(s Service, f faults.Fault) bool {
	switch f := f.(type) {
	case faults.RestartNode:
		return !f.Empty
	case faults.Failover, faults.Split, faults.Join, faults.Replication:
		return Replicates(s)
	case faults.PartitionNodes, faults.HealNodes:
		return Clusters(s)
	case faults.NodeClock, faults.NodeDrift:
		c, ok := s.(Clocked)
		if !ok {
			return false
		}
		set, drift := c.MovesClocks()
		if _, drifts := f.(faults.NodeDrift); drifts {
			return drift
		}
		return set
	case faults.Flush, faults.Evict, faults.ScriptFlush:
		return false
	}
	return true
}
