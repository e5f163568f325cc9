package services

import (
	"context"
	"fmt"
	"time"

	"github.com/lockfault/lockfault/faults/postgres"
	"github.com/lockfault/lockfault/faults/real"
	"github.com/lockfault/lockfault/faults/real/proxy"
	"github.com/lockfault/lockfault/internal/worlds"
	"github.com/lockfault/lockfault/strategies"
	postgreslocks "github.com/lockfault/lockfault/strategies/postgres"
)

// Postgres is a [worlds.Service] that starts PostgreSQL with a primary, and standbys if the script
// has replicas.
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
	return newPostgres(ctx, postgres.Options{Replicas: replicas > 0, Dir: dir})
}

func newPostgres(ctx context.Context, options postgres.Options) (_ worlds.Host, err error) {
	if options.Installation, err = postgres.Find(ctx); err != nil {
		return nil, err
	}
	h, err := postgres.New(options)
	if err != nil {
		return nil, fmt.Errorf("services: %w", err)
	}
	return h, nil
}

// Sweep implements [worlds.Service].
func (Postgres) Sweep(dir string) { postgres.Sweep(dir) }

// Lease implements [worlds.Service]. A statement takes 1 ms to 2 ms, and a killed server needs 1 s
// to restart.
func (Postgres) Lease() time.Duration { return 2 * time.Second }

// Pgbouncer is a [worlds.Service] that starts PostgreSQL behind PgBouncer, which lends its only
// session to one transaction after the other.
type Pgbouncer struct{}

// Speaks implements [worlds.Service].
func (Pgbouncer) Speaks() proxy.Protocol { return postgres.Service{}.Speaks() }

// Commands implements [worlds.Service].
func (Pgbouncer) Commands() []string { return postgres.Service{}.Commands() }

// Name implements [real.Service].
func (Pgbouncer) Name() string { return postgreslocks.Pooled }

// Login implements [real.Service].
func (Pgbouncer) Login(password string) real.Login { return postgres.Service{}.Login(password) }

// MovesClocks implements [real.Clocked]. The servers' clocks move; the pooler has no clock of its
// own to move.
func (Pgbouncer) MovesClocks() (set, drift bool) { return true, true }

// Summary implements [worlds.Service].
func (Pgbouncer) Summary() string {
	return "the database behind a pool of one session, for one transaction after the other"
}

// Strategies implements [worlds.Service].
func (Pgbouncer) Strategies() []strategies.Strategy { return postgreslocks.Behind() }

// Check implements [worlds.Service].
func (Pgbouncer) Check(ctx context.Context) error {
	if _, err := postgres.FindPooler(); err != nil {
		return err
	}
	return Postgres{}.Check(ctx)
}

// Host implements [worlds.Service].
func (Pgbouncer) Host(ctx context.Context, _, _ int, dir string) (worlds.Host, error) {
	pooler, err := postgres.FindPooler()
	if err != nil {
		return nil, err
	}
	return newPostgres(ctx, postgres.Options{Pooler: pooler, Dir: dir})
}

// Sweep implements [worlds.Service].
func (Pgbouncer) Sweep(dir string) { postgres.Sweep(dir) }

// Lease implements [worlds.Service].
func (Pgbouncer) Lease() time.Duration { return Postgres{}.Lease() }
