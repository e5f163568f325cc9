package services

import (
	"context"
	"fmt"
	"time"

	"github.com/lockfault/lockfault/faults/etcd"
	"github.com/lockfault/lockfault/internal/worlds"
	"github.com/lockfault/lockfault/strategies"
	etcdlocks "github.com/lockfault/lockfault/strategies/etcd"
)

// Etcd is a [worlds.Service] that starts an etcd cluster with one member for each node of the lock.
type Etcd struct{ etcd.Service }

// Summary implements [worlds.Service].
func (Etcd) Summary() string { return "a key-value store of several members that agree by Raft" }

// Strategies implements [worlds.Service].
func (Etcd) Strategies() []strategies.Strategy { return etcdlocks.All() }

// Check implements [worlds.Service].
func (Etcd) Check(ctx context.Context) error {
	_, err := etcd.Find(ctx)
	return err
}

// Host implements [worlds.Service].
func (Etcd) Host(ctx context.Context, nodes, _ int, dir string) (worlds.Host, error) {
	binary, err := etcd.Find(ctx)
	if err != nil {
		return nil, err
	}
	h, err := etcd.New(etcd.Options{Binary: binary, Members: nodes, Dir: dir})
	if err != nil {
		return nil, fmt.Errorf("services: %w", err)
	}
	return h, nil
}

// Sweep implements [worlds.Service].
func (Etcd) Sweep(dir string) { etcd.Sweep(dir) }

// Lease implements [worlds.Service]. etcd counts leases in whole seconds, checks twice a second for
// expired ones, and extends all leases by an election timeout after an election.
func (Etcd) Lease() time.Duration { return 4 * time.Second }
