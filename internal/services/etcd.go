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

// Etcd is a cluster of as many members as a lock has nodes.
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

// Lease implements [worlds.Service]: etcd counts leases in seconds, looks twice a second for those
// that are over, and gives each the time of an election more when there was one.
func (Etcd) Lease() time.Duration { return 4 * time.Second }
