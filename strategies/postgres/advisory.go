package postgres

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/lockfault/lockfault/strategies"
)

// advisory returns PostgreSQL's session lock: pg_advisory_lock on a connection that the client
// keeps for it.
//
// Guarantee: one session holds the lock, as often as it acquired it, until it releases it as often
// or ends (https://www.postgresql.org/docs/current/explicit-locking.html#ADVISORY-LOCKS). There is
// no lease: a stopped client keeps its connection and the lock. A client that dies loses both at
// once, if its system closes the connection.
//
// Known faults: the lock is in the memory of one server. It is not in the log that standbys follow,
// so a failover loses it regardless of replication, and so does a restart. The holder is not
// notified, since the client does not read from a connection without a pending statement. An
// unreachable client holds the lock until the server gives up the connection, by default after two
// hours (tcp_keepalives_idle). Behind a pooler that passes sessions from one client to the next, it
// does not work as a lock.
func advisory() strategies.Strategy {
	return strategies.Strategy{
		Name:     "postgres-advisory",
		Service:  Service,
		Summary:  "pg_advisory_lock, of a session of its own; the server ends it with the session",
		Source:   "PostgreSQL's manual, 13.3.5 Advisory Locks",
		Tags:     []string{strategies.TagSingle},
		Query:    sessions,
		Expected: may(),
		New: func(env strategies.Env) (strategies.Lock, error) {
			s, err := newNamedSession(env)
			if err != nil {
				return nil, err
			}
			return &advisoryLock{session: s, key: env.Key}, nil
		},
	}
}

// sessions selects the sessions that hold the lock, by their application names.
const sessions = `SELECT application_name, NULL FROM pg_locks JOIN pg_stat_activity USING (pid)
	WHERE locktype = 'advisory' AND granted AND objsubid = 1 AND classid::bigint << 32 | objid::bigint = hashtextextended($1, 0)`

// newNamedSession is newSession with an application name that identifies the owner on the server.
func newNamedSession(env strategies.Env) (*session, error) {
	s, err := newSession(env)
	if err == nil {
		s.config.RuntimeParams["application_name"] = env.Owner
	}
	return s, err
}

// may returns the expected anomalies in scenarios where these locks differ from locks with a lease.
// The argument twice lists the anomalies of one release after two acquires.
//
// No lease ends while a client stops, works for long or is unreachable, or while its server stops,
// so no other client gets the lock; but a client that never releases blocks all others. A client
// without a reply waits, because pgx does not retry by itself. A failover ends every session, and a
// standby has none of them. A session that holds a lock acquires it again at once.
func may(twice ...string) map[string][]string {
	return map[string][]string{
		"gc-pause-holding":           {},
		"fencing-order":              {},
		"work-exceeds-ttl":           {},
		"late-release":               {},
		"holder-cut-off":             {},
		"leader-paused":              {},
		"leader-clock-fast":          {},
		"delayed-acquire-reply":      {},
		"ghost-retry":                {"unavailable"},
		"server-clock-forward":       {},
		"server-clock-back":          {},
		"failover-replicated":        {"overlap", "lost-lock"},
		"watchdog-runaway":           {"starvation"},
		"reentrant-acquire":          {},
		"acquire-twice-release-once": twice,
	}
}

type advisoryLock struct {
	*session
	key string
}

// wait acquires a lock with a statement that blocks. The statement's timeout is nine tenths of the
// time until ctx's deadline, so that the client gets the result before the deadline.
func wait(ctx context.Context, conn *pgx.Conn, statement, key string) error {
	limit := "0" // no limit
	if deadline, ok := ctx.Deadline(); ok {
		limit = strconv.FormatInt(max(1, (time.Until(deadline)*9/10).Milliseconds()), 10)
	}
	var batch pgx.Batch
	batch.Queue("SELECT set_config('lock_timeout', $1, false)", limit)
	batch.Queue(statement, key)
	err := conn.SendBatch(ctx, &batch).Close()
	if code(err) == lockNotAvailable {
		return fmt.Errorf("%w: %w", strategies.ErrNotAcquired, err)
	}
	return err
}

// try tries to acquire a lock with a statement that returns at once whether it succeeded.
func try(ctx context.Context, conn *pgx.Conn, statement, key string) error {
	var got bool
	if err := conn.QueryRow(ctx, statement, key).Scan(&got); err != nil {
		return err
	}
	if !got {
		return strategies.ErrNotAcquired
	}
	return nil
}

// Acquire implements [strategies.Lock].
func (l *advisoryLock) Acquire(ctx context.Context) error {
	return l.ask(ctx, func(conn *pgx.Conn) error {
		return wait(ctx, conn, "SELECT pg_advisory_lock(hashtextextended($1, 0))", l.key)
	})
}

// TryAcquire implements [strategies.TryAcquirer].
func (l *advisoryLock) TryAcquire(ctx context.Context) error {
	return l.ask(ctx, func(conn *pgx.Conn) error {
		return try(ctx, conn, "SELECT pg_try_advisory_lock(hashtextextended($1, 0))", l.key)
	})
}

// Release implements [strategies.Lock].
func (l *advisoryLock) Release(ctx context.Context) error {
	if !l.alive() {
		return fmt.Errorf("%w: the session has ended", strategies.ErrNotHeld)
	}
	var had bool
	err := l.conn.QueryRow(ctx, "SELECT pg_advisory_unlock(hashtextextended($1, 0))", l.key).Scan(&had)
	if l.over(err) || err == nil && !had {
		return fmt.Errorf("%w: the session hasn't got it", strategies.ErrNotHeld)
	}
	return err
}

// advisoryXact returns the lock of a transaction: pg_advisory_xact_lock, which ends with the
// transaction and cannot be released earlier. It works through poolers that assign a session to
// each transaction.
//
// Known faults: those of postgres-advisory. One commit releases a lock that was acquired twice. A
// transaction that stays open during a hold keeps its server from cleaning up; therefore
// idle_in_transaction_session_timeout is often set, which ends the lock.
func advisoryXact() strategies.Strategy {
	return strategies.Strategy{
		Name:     "postgres-advisory-xact",
		Service:  Service,
		Summary:  "pg_advisory_xact_lock, of a transaction that lasts as long as the hold",
		Source:   "PostgreSQL's manual, 13.3.5 Advisory Locks",
		Tags:     []string{strategies.TagSingle},
		Query:    sessions,
		Expected: may("overlap", "stale-write"),
		New: func(env strategies.Env) (strategies.Lock, error) {
			s, err := newNamedSession(env)
			if err != nil {
				return nil, err
			}
			return &xactLock{session: s, key: env.Key}, nil
		},
	}
}

type xactLock struct {
	*session
	key string
	tx  pgx.Tx // nil without a transaction
}

// Acquire implements [strategies.Lock].
func (l *xactLock) Acquire(ctx context.Context) error {
	return l.within(ctx, "SELECT pg_advisory_xact_lock(hashtextextended($1, 0))", wait)
}

// TryAcquire implements [strategies.TryAcquirer].
func (l *xactLock) TryAcquire(ctx context.Context) error {
	return l.within(ctx, "SELECT pg_try_advisory_xact_lock(hashtextextended($1, 0))", try)
}

// within begins a transaction unless one is open, which then already holds the lock. within ends
// the transaction if the lock is not acquired.
func (l *xactLock) within(ctx context.Context, statement string, ask func(context.Context, *pgx.Conn, string, string) error) error {
	return l.session.ask(ctx, func(conn *pgx.Conn) (err error) {
		if l.tx == nil || l.tx.Conn() != conn {
			if l.tx, err = conn.Begin(ctx); err != nil {
				l.tx = nil
				return fmt.Errorf("%w: %w", strategies.ErrNotAcquired, err)
			}
		}
		if err = ask(ctx, conn, statement, l.key); errors.Is(err, strategies.ErrNotAcquired) {
			_ = l.tx.Rollback(ctx) // if this fails, the session ends
			l.tx = nil
		}
		return err
	})
}

// Release implements [strategies.Lock].
func (l *xactLock) Release(ctx context.Context) error {
	if l.tx == nil || !l.alive() || l.tx.Conn() != l.conn {
		l.tx = nil
		return fmt.Errorf("%w: there is no transaction", strategies.ErrNotHeld)
	}
	err := l.tx.Commit(ctx)
	l.tx = nil
	if l.over(err) {
		return fmt.Errorf("%w: its transaction has ended with the session", strategies.ErrNotHeld)
	}
	return err
}
