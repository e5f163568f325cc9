package main

import (
	"context"
	"fmt"
	"net"

	"github.com/jackc/pgx/v5"

	"github.com/lockfault/lockfault/strategies"
)

// myRow is a lock that many a database has: a row that a transaction locks, for as long as it lasts.
var myRow = strategies.Strategy{
	Name:    "my-row",
	Service: "postgres",
	Summary: "SELECT FOR UPDATE of a row, in a transaction that lasts as long as the hold",
	Source:  "examples/services",
	Tags:    []string{strategies.TagSingle},
	// Who locks a row is its xmax until his transaction ends, and his session is called what connect calls it.
	Query: "SELECT application_name, NULL FROM my_locks JOIN pg_stat_activity ON backend_xid = my_locks.xmax WHERE name = $1",
	// What it shows where that is not what scripts expect of a lock on one server: it has no lease, so who stops keeps it;
	// and a row's lock is in the memory of its server, so a standby has the row and not the lock.
	Expected: map[string][]string{"gc-pause-holding": {}, "failover-replicated": {"overlap", "lost-lock"}},
	New:      func(env strategies.Env) (strategies.Lock, error) { return &row{env: env}, nil },
}

// row is one client's lock.
type row struct {
	env  strategies.Env
	conn *pgx.Conn // of the hold; nil if there is none
}

// connect opens a connection. Where Env says is a link of this client's, which the scenario may break.
func connect(ctx context.Context, env strategies.Env) (*pgx.Conn, error) {
	at := env.Servers[0]
	host, port, err := net.SplitHostPort(at.Addr)
	if err != nil {
		return nil, err
	}
	config, err := pgx.ParseConfig(fmt.Sprintf("host=%s port=%s dbname=postgres sslmode=disable", host, port))
	if err != nil {
		return nil, err
	}
	config.User, config.Password = at.Username, at.Password
	config.RuntimeParams["application_name"] = env.Owner
	return pgx.ConnectConfig(ctx, config)
}

// Acquire waits for the row.
func (l *row) Acquire(ctx context.Context) error { return l.attempt(ctx, "FOR UPDATE") }

// TryAcquire, which scripts call where they say try, doesn't wait.
func (l *row) TryAcquire(ctx context.Context) error { return l.attempt(ctx, "FOR UPDATE NOWAIT") }

// attempt locks the row. Whatever goes wrong before it is had leaves nothing: the connection's end ends the transaction.
func (l *row) attempt(ctx context.Context, how string) error {
	conn, err := connect(ctx, l.env)
	if err != nil {
		return fmt.Errorf("%w: %w", strategies.ErrNotAcquired, err)
	}
	if err := l.take(ctx, conn, how); err != nil {
		_ = conn.Close(context.WithoutCancel(ctx))
		return fmt.Errorf("%w: %w", strategies.ErrNotAcquired, err)
	}
	l.conn = conn
	return nil
}

// take has a connection lock the row, which it makes if there is none.
func (l *row) take(ctx context.Context, conn *pgx.Conn, how string) error {
	// Of two who make the table at once one fails, and finds it there. What else goes wrong the next statement says.
	_, _ = conn.Exec(ctx, "CREATE TABLE IF NOT EXISTS my_locks (name text PRIMARY KEY)")
	_, err := conn.Exec(ctx, "INSERT INTO my_locks VALUES ($1) ON CONFLICT DO NOTHING", l.env.Key)
	if err == nil {
		_, err = conn.Exec(ctx, "BEGIN")
	}
	if err == nil {
		_, err = conn.Exec(ctx, "SELECT FROM my_locks WHERE name = $1 "+how, l.env.Key)
	}
	return err
}

// Release ends the transaction.
func (l *row) Release(ctx context.Context) error {
	if l.conn == nil {
		return strategies.ErrNotHeld
	}
	conn := l.conn
	l.conn = nil
	defer conn.Close(context.WithoutCancel(ctx))
	if _, err := conn.Exec(ctx, "COMMIT"); err != nil {
		return fmt.Errorf("%w: %w", strategies.ErrNotHeld, err)
	}
	return nil
}
