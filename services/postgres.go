package services

import (
	"context"
	"fmt"
	"time"

	"github.com/lockfault/lockfault/faults/postgres"
	"github.com/lockfault/lockfault/strategies"
	postgreslocks "github.com/lockfault/lockfault/strategies/postgres"
	"github.com/lockfault/lockfault/worlds"
)

// Postgres is a primary for each of a lock's nodes, with standbys where a script has replicas.
type Postgres struct{ postgres.Service }

// Summary implements [worlds.Service].
func (Postgres) Summary() string { return "a database: a primary, and standbys that follow it" }

// Strategies implements [worlds.Service].
func (Postgres) Strategies() []strategies.Strategy { return postgreslocks.All() }

// Check implements [worlds.Service].
func (Postgres) Check(ctx context.Context) error {
	_, err := postgres.Find(ctx)
	return err
}

// Host implements [worlds.Service].
func (Postgres) Host(ctx context.Context, _, replicas int, dir string) (worlds.Host, error) {
	in, err := postgres.Find(ctx)
	if err != nil {
		return nil, err
	}
	h, err := postgres.New(postgres.Options{Installation: in, Replicas: replicas > 0, Dir: dir})
	if err != nil {
		return nil, fmt.Errorf("services: %w", err)
	}
	return h, nil
}

// Sweep implements [worlds.Service].
func (Postgres) Sweep(dir string) { postgres.Sweep(dir) }

// Lease implements [worlds.Service]: statements take a millisecond or two, and a server that was killed a second to be back.
func (Postgres) Lease() time.Duration { return 2 * time.Second }
