package services

import (
	"context"
	"fmt"
	"time"

	"github.com/lockfault/lockfault/faults/zookeeper"
	"github.com/lockfault/lockfault/internal/worlds"
	"github.com/lockfault/lockfault/strategies"
	zookeeperlocks "github.com/lockfault/lockfault/strategies/zookeeper"
)

// ZooKeeper is a [worlds.Service] that starts a ZooKeeper ensemble with one member for each node of
// the lock.
type ZooKeeper struct{ zookeeper.Service }

// Summary implements [worlds.Service].
func (ZooKeeper) Summary() string { return "a tree of nodes on several members that agree by Zab" }

// Strategies implements [worlds.Service].
func (ZooKeeper) Strategies() []strategies.Strategy { return zookeeperlocks.All() }

// Check implements [worlds.Service].
func (ZooKeeper) Check(context.Context) error {
	_, err := zookeeper.Find()
	return err
}

// Host implements [worlds.Service].
func (ZooKeeper) Host(_ context.Context, nodes, _ int, dir string) (worlds.Host, error) {
	program, err := zookeeper.Find()
	if err != nil {
		return nil, err
	}
	h, err := zookeeper.New(zookeeper.Options{Program: program, Members: nodes, Dir: dir})
	if err != nil {
		return nil, fmt.Errorf("services: %w", err)
	}
	return h, nil
}

// Sweep implements [worlds.Service].
func (ZooKeeper) Sweep(dir string) { zookeeper.Sweep(dir) }

// Lease implements [worlds.Service]. Shorter sessions are possible, but a client that loses its
// server tries another one only once a second, and a lost leader is missing for half a second.
func (ZooKeeper) Lease() time.Duration { return 4 * time.Second }
