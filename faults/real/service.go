package real

import (
	"github.com/lockfault/lockfault/faults"
)

// A Service is what kind of servers a world has, if not Redis. Each is a node; none has replicas
// unless it is a [Replicator]. What a lock looks like on them nobody asks. Messages are
// not told apart, so histories have none of them but what befell one.
type Service interface {
	// Name is the word for it, such as etcd.
	Name() string
	// Login returns how clients log in, given the world's password.
	Login(password string) Login
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

// Takes reports whether a fault is possible where servers are a service's and not Redis: what becomes of
// clients, links and nodes is, nothing that is a command of Redis, and what concerns replicas
// where there are any.
func Takes(s Service, f faults.Fault) bool {
	switch f := f.(type) {
	case faults.RestartNode:
		return !f.Empty
	case faults.Failover, faults.Split, faults.Join, faults.Replication:
		return Replicates(s)
	case faults.PartitionNodes, faults.HealNodes:
		return Clusters(s)
	case faults.NodeClock, faults.NodeDrift, faults.Flush, faults.Evict, faults.ScriptFlush:
		return false
	}
	return true
}
