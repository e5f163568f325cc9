package real

import (
	"github.com/lockfault/lockfault/faults"
)

// A Service is what kind of servers a world has, if not Redis. Its servers keep together by
// themselves, so each is a node and none has replicas; what a lock looks like on them nobody asks. Messages are
// not told apart, so histories have none of them but what befell one.
type Service interface {
	// Name is the word for it, such as etcd.
	Name() string
	// Login returns how clients log in, given the world's password.
	Login(password string) Login
}

// ServicesTake reports whether a fault is possible where servers are not Redis: what becomes of
// clients, links and nodes is, and nothing that is a command of Redis, or concerns replicas.
func ServicesTake(f faults.Fault) bool {
	switch f := f.(type) {
	case faults.RestartNode:
		return !f.Empty
	case faults.Failover, faults.Split, faults.Join, faults.NodeClock, faults.NodeDrift, faults.Flush, faults.Evict, faults.ScriptFlush, faults.Replication:
		return false
	}
	return true
}
