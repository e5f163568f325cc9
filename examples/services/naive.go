package main

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/lockfault/lockfault/strategies"
)

// naiveRow is the lock by a database as it is often written first: whoever can insert the row has the lock, and deletes
// the row. It has no lease, so the row of who died stays; and the row names nobody, so who releases twice deletes another's.
var naiveRow = strategies.Strategy{
	Name:    "naive-row",
	Service: "postgres",
	Summary: "INSERT of a row that names nobody, released by DELETE",
	Source:  "examples/services",
	Tags:    []string{strategies.TagSingle},
	// The row is there for good, and nobody can tell by it whose it is: his who made it.
	Query:    "SELECT 'taken', 'infinity'::float8 FROM naive_locks WHERE name = $1",
	Owner:    strategies.OwnerIsCreator,
	Expected: map[string][]string{"holder-crash": {"stuck-lock"}, "release-twice": {"overlap", "foreign-release"}},
	New:      func(env strategies.Env) (strategies.Lock, error) { return &naive{env: env}, nil },
}

// naive is one client's lock.
type naive struct {
	env  strategies.Env
	conn *pgx.Conn
}

// Acquire tries to insert the row until that succeeds.
func (l *naive) Acquire(ctx context.Context) error {
	const take = "INSERT INTO naive_locks VALUES ($1) ON CONFLICT DO NOTHING"
	if l.conn == nil {
		conn, err := connect(ctx, l.env)
		if err != nil {
			return fmt.Errorf("%w: %w", strategies.ErrNotAcquired, err)
		}
		l.conn = conn
		_, _ = conn.Exec(ctx, "CREATE TABLE IF NOT EXISTS naive_locks (name text PRIMARY KEY)")
	}
	for {
		done, err := l.conn.Exec(ctx, take, l.env.Key)
		if err != nil || done.RowsAffected() == 1 {
			return err
		}
		select {
		case <-ctx.Done():
			return strategies.ErrNotAcquired
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// Release deletes the row, whoever has made it.
func (l *naive) Release(ctx context.Context) error {
	if l.conn == nil {
		return strategies.ErrNotHeld
	}
	_, err := l.conn.Exec(ctx, "DELETE FROM naive_locks WHERE name = $1", l.env.Key)
	return err
}
