package postgres

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/lockfault/lockfault/strategies"
)

// row returns the lock that is a table row until its expiry time. The pattern is that of document
// 002, a lock by a database, with a lease instead of a row that remains after its owner's death.
//
// Guarantee: only the server's clock decides when a lease has ended, and a committed row survives a
// restart of its server. A client that finds the lock taken polls every 100 ms.
//
// Known faults: those of any lease: the holder may take longer, without a notification. A promoted
// asynchronous standby may not have the row.
func row() strategies.Strategy {
	return strategies.Strategy{
		Name:     "postgres-row",
		Service:  Service,
		Summary:  "INSERT of a row with a date, or UPDATE of one whose date has come; released by DELETE of its owner's row",
		Source:   "document 002 (lock by a database), with a lease",
		Tags:     []string{strategies.TagSingle, strategies.TagExtending},
		Query:    "SELECT owner, extract(epoch FROM expires) - extract(epoch FROM clock_timestamp()) FROM lockfault_locks WHERE name = $1",
		Expected: map[string][]string{"ghost-retry": {"unavailable"}}, // pgx does not retry by itself
		New:      func(env strategies.Env) (strategies.Lock, error) { return newRow(env, "local") },
	}
}

// rowSync returns postgres-row with synchronous replication: an acquire waits until a standby has
// the row (synchronous_commit = remote_apply, with synchronous_standby_names = '*' on the primary).
//
// Guarantee: that standby has the lock when it is promoted. Known faults: without a standby no
// acquire succeeds while the primary requires one. A standby that was promoted while the primary
// still runs requires no standby.
func rowSync() strategies.Strategy {
	s := row()
	s.Name = "postgres-row-sync"
	s.Summary = "postgres-row, acquired when a standby has it, too"
	s.Source = "PostgreSQL's manual, 27.2.8 Synchronous Replication"
	s.Expected["failover-lost-write"], s.Expected["two-failovers"] = []string{}, []string{}
	s.New = func(env strategies.Env) (strategies.Lock, error) { return newRow(env, "remote_apply") }
	return s
}

// rowSequence returns postgres-row with a sequence number as fencing token.
//
// Known fault: a sequence logs 32 numbers at a time. A promoted standby continues after these 32
// numbers if it has that log record, and issues old numbers again if it does not.
func rowSequence() strategies.Strategy {
	s := row()
	s.Name = "postgres-row-sequence"
	s.Summary = "postgres-row, with a number of a sequence as fencing token"
	s.Source = "Kleppmann 2016, How to do distributed locking, with PostgreSQL's sequences"
	s.Tags = append(s.Tags, strategies.TagFenced)
	// A standby continues with a number that is larger than all issued numbers, unless the log
	// record of 32 numbers is lost, too.
	s.Expected["failover-lost-write"], s.Expected["split-brain"] = []string{"overlap", "stale-write", "lost-lock"}, []string{"overlap"}
	s.Nondeterministic = map[string]string{"failover-lost-write": "A writes as soon as B holds, as B does, and only a write that comes after one with a larger token is refused"}
	s.New = func(env strategies.Env) (strategies.Lock, error) {
		l, err := newRow(env, "local")
		if err != nil {
			return nil, err
		}
		return &sequenceRow{l}, nil
	}
	return s
}

// schema creates the table and the sequence of the locks. Two concurrent executions can conflict.
const schema = `
CREATE TABLE IF NOT EXISTS lockfault_locks (name text PRIMARY KEY, owner text NOT NULL, token bigint NOT NULL, expires timestamptz NOT NULL);
CREATE SEQUENCE IF NOT EXISTS lockfault_tokens;
`

// pause is the delay between two attempts of a client that found the lock taken.
const pause = 100 * time.Millisecond

type rowLock struct {
	*session
	env   strategies.Env
	owner string // of the current or the last hold
	token int64
}

func newRow(env strategies.Env, commit string) (*rowLock, error) {
	s, err := newSession(env)
	if err != nil {
		return nil, err
	}
	s.config.RuntimeParams["synchronous_commit"] = commit
	l := &rowLock{session: s, env: env}
	ctx, cancel := context.WithTimeout(context.Background(), env.TTL)
	defer cancel()
	if conn, err := l.begin(ctx); err == nil {
		_ = prepare(ctx, conn) // otherwise the first statement creates the table
	}
	return l, nil
}

// prepare creates the table unless it exists.
func prepare(ctx context.Context, conn *pgx.Conn) error {
	_, err := conn.Exec(ctx, schema, pgx.QueryExecModeSimpleProtocol)
	if c := code(err); c == uniqueViolation || c == duplicateTable { // another client created it in the meantime
		return nil
	}
	return err
}

// Acquire implements [strategies.Lock].
func (l *rowLock) Acquire(ctx context.Context) error {
	owner := l.newOwner()
	return strategies.Poll(ctx, pause, func(ctx context.Context) error { return l.attempt(ctx, owner) })
}

// TryAcquire implements [strategies.TryAcquirer].
func (l *rowLock) TryAcquire(ctx context.Context) error { return l.attempt(ctx, l.newOwner()) }

func (l *rowLock) newOwner() string {
	return fmt.Sprintf("%s-%016x%016x", l.env.Owner, l.env.Rand.Uint64(), l.env.Rand.Uint64())
}

func (l *rowLock) attempt(ctx context.Context, owner string) error {
	const take = `INSERT INTO lockfault_locks AS l (name, owner, token, expires)
		VALUES ($1, $2, nextval('lockfault_tokens'), now() + make_interval(secs => $3))
		ON CONFLICT (name) DO UPDATE SET owner = excluded.owner, token = excluded.token, expires = excluded.expires
		WHERE l.expires < now() RETURNING token`
	var token int64
	err := l.ask(ctx, func(conn *pgx.Conn) error {
		insert := func() error { return conn.QueryRow(ctx, take, l.env.Key, owner, l.env.TTL.Seconds()).Scan(&token) }
		err := insert()
		if code(err) != undefinedTable {
			return err
		}
		if err := prepare(ctx, conn); err != nil {
			return fmt.Errorf("%w: %w", strategies.ErrNotAcquired, err)
		}
		return insert()
	})
	switch {
	case errors.Is(err, pgx.ErrNoRows):
		return strategies.ErrNotAcquired
	case !errors.Is(err, strategies.ErrNotAcquired):
		l.owner, l.token = owner, token
	}
	return err
}

// Release implements [strategies.Lock].
func (l *rowLock) Release(ctx context.Context) error {
	return l.own(ctx, "DELETE FROM lockfault_locks WHERE name = $1 AND owner = $2", l.env.Key, l.owner)
}

// Extend implements [strategies.Extender].
func (l *rowLock) Extend(ctx context.Context) error {
	return l.own(ctx, "UPDATE lockfault_locks SET expires = now() + make_interval(secs => $3) WHERE name = $1 AND owner = $2 AND expires >= now()",
		l.env.Key, l.owner, l.env.TTL.Seconds())
}

// own executes a statement that affects the row only if this client owns it.
func (l *rowLock) own(ctx context.Context, statement string, args ...any) error {
	if l.owner == "" {
		return strategies.ErrNotHeld
	}
	return l.ask(ctx, func(conn *pgx.Conn) error {
		done, err := conn.Exec(ctx, statement, args...)
		if err == nil && done.RowsAffected() == 0 {
			return strategies.ErrNotHeld
		}
		return err
	})
}

// sequenceRow is a rowLock with fencing tokens.
type sequenceRow struct{ *rowLock }

// Token implements [strategies.Fenced].
func (l *sequenceRow) Token() int64 { return l.token }
