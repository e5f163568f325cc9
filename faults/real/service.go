package real

import (
	"context"
	"time"

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

// A Clocked is a [Service] whose servers can be started with clocks that can be moved, as far as the machine
// allows that. One that knows what its clock shows is a [Timekeeper].
type Clocked interface {
	Service
	// MovesClocks reports whether they can.
	MovesClocks() bool
}

// A Timekeeper is an [Owned] that is asked what its clock shows, which it may go by only a while after SetClock; others are
// believed to go by it at once.
type Timekeeper interface {
	Time(context.Context) (time.Time, error)
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
	case faults.NodeClock, faults.NodeDrift:
		c, ok := s.(Clocked)
		return ok && c.MovesClocks()
	case faults.Flush, faults.Evict, faults.ScriptFlush:
		return false
	}
	return true
}
