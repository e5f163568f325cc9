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

// advisory is PostgreSQL's own lock of a session: pg_advisory_lock on a connection that the client keeps for it.
//
// What it promises: one session has it, as often as it asked, until it gives it back as often or ends
// (https://www.postgresql.org/docs/current/explicit-locking.html#ADVISORY-LOCKS). There is no lease: a client that stops keeps
// its connection, and the lock with it, and one that dies loses both at once, if its system says so to the server.
//
// Its known faults: the lock is in the memory of one server. It isn't in the log that standbys follow, so a failover
// forgets it, however much was replicated, and so does a restart; and nobody tells who held it, since nothing is read
// from a connection on which nothing was asked. A client that nobody reaches any more holds it until the server gives up
// the connection, by default after two hours (tcp_keepalives_idle). Behind a pooler that hands sessions from one client to the
// next it is no lock at all.
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

// sessions asks for the sessions that have the lock, by what they are called.
const sessions = `SELECT application_name, NULL FROM pg_locks JOIN pg_stat_activity USING (pid)
	WHERE locktype = 'advisory' AND granted AND objsubid = 1 AND classid::bigint << 32 | objid::bigint = hashtextextended($1, 0)`

// newNamedSession is newSession with a name by which servers show whose it is.
func newNamedSession(env strategies.Env) (*session, error) {
	s, err := newSession(env)
	if err == nil {
		s.config.RuntimeParams["application_name"] = env.Owner
	}
	return s, err
}

// may says what they show where it differs from what scripts expect of locks with a lease, given what one release
// after two acquires shows.
//
// No lease is over while a client stops, works for long or can't be reached, or while its server stops, so nobody else gets the lock; but who never gives it back keeps
// all others waiting. Who isn't answered waits, for pgx asks nothing a second time by itself. A failover ends every session, and none is in what a standby has. And a session that
// has a lock has it again at once.
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

// wait asks for a lock with a statement that blocks. It is told to give up when ctx will have ended, a tenth
// earlier, so that the answer says what came of it.
func wait(ctx context.Context, conn *pgx.Conn, statement, key string) error {
	limit := "0" // for as long as it takes
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

// try asks for a lock with a statement that says at once whether it was there to be had.
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

// advisoryXact is the lock of a transaction: pg_advisory_xact_lock, which ends with the transaction, and can't be given
// back before. It goes through poolers that give each transaction a session.
//
// Its known faults are those of postgres-advisory; one commit gives back what was acquired twice; and a transaction that stays open as long as somebody holds keeps
// its server from cleaning up, which is why idle_in_transaction_session_timeout is often set, and ends the lock.
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
	tx  pgx.Tx // nil outside of one
}

// Acquire implements [strategies.Lock].
func (l *xactLock) Acquire(ctx context.Context) error {
	return l.within(ctx, "SELECT pg_advisory_xact_lock(hashtextextended($1, 0))", wait)
}

// TryAcquire implements [strategies.TryAcquirer].
func (l *xactLock) TryAcquire(ctx context.Context) error {
	return l.within(ctx, "SELECT pg_try_advisory_xact_lock(hashtextextended($1, 0))", try)
}

// within begins a transaction unless there is one, which has the lock then already, and ends it again if the lock
// is not to be had.
func (l *xactLock) within(ctx context.Context, statement string, ask func(context.Context, *pgx.Conn, string, string) error) error {
	return l.session.ask(ctx, func(conn *pgx.Conn) (err error) {
		if l.tx == nil || l.tx.Conn() != conn {
			if l.tx, err = conn.Begin(ctx); err != nil {
				l.tx = nil
				return fmt.Errorf("%w: %w", strategies.ErrNotAcquired, err)
			}
		}
		if err = ask(ctx, conn, statement, l.key); errors.Is(err, strategies.ErrNotAcquired) {
			_ = l.tx.Rollback(ctx) // who can't hear that hears of the session's end
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
