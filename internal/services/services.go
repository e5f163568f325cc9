// Package services provides the services other than Redis: their strategies and the code that
// starts their servers. The package is meant for main functions; package worlds defines
// [worlds.Service].
package services

import "github.com/lockfault/lockfault/internal/worlds"

// All returns the services in the order of reports.
func All() []worlds.Service { return []worlds.Service{Etcd{}, Postgres{}, Pgbouncer{}, ZooKeeper{}} }
