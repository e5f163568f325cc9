// Package services puts together what is needed to play locks of other services than
// Redis: their strategies, and who starts their servers. It exists for main functions; package worlds
// says what a [worlds.Service] is.
package services

import "github.com/lockfault/lockfault/internal/worlds"

// All returns the services, in the order in which reports list them.
func All() []worlds.Service { return []worlds.Service{Etcd{}, Postgres{}, Pgbouncer{}, ZooKeeper{}} }
