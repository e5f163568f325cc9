// Package postgres implements locks on PostgreSQL: advisory locks, and rows with a lease. The input
// is a [strategies.Env] with Servers; the outputs are [strategies.Strategy]s. The locks run in real
// time only.
package postgres

import (
	"context"
	"errors"
	"fmt"
	"net"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/lockfault/lockfault/strategies"
)

// Service is the name of the service. Pooled is the name of the same service behind a pooler.
const (
	Service = "postgres"
	Pooled  = "pgbouncer"
)

// All returns the locks.
func All() []strategies.Strategy {
	return []strategies.Strategy{advisory(), advisoryXact(), row(), rowSync(), rowSequence()}
}

// session is one client's connection. It begins with the first statement; if it has ended, the next
// statement begins a new connection. Locks of a session end with it, even if the server ended it.
type session struct {
	config *pgx.ConnConfig
	conn   *pgx.Conn
}

func newSession(env strategies.Env) (*session, error) {
	if len(env.Servers) == 0 {
		return nil, errors.New("postgres: Env.Servers is empty: this lock runs on PostgreSQL")
	}
	at := env.Servers[0]
	host, port, err := net.SplitHostPort(at.Addr)
	if err != nil {
		return nil, fmt.Errorf("postgres: %w", err)
	}
	config, err := pgx.ParseConfig(fmt.Sprintf("host=%s port=%s dbname=postgres sslmode=disable", host, port))
	if err != nil {
		return nil, fmt.Errorf("postgres: %w", err)
	}
	config.User, config.Password, config.ConnectTimeout = at.Username, at.Password, env.TTL
	// Each statement is one message with one reply and is not prepared, so it also works through
	// poolers.
	config.DefaultQueryExecMode = pgx.QueryExecModeExec
	return &session{config: config}, nil
}

// alive reports whether there is a session that has not ended as far as this client knows.
func (s *session) alive() bool { return s.conn != nil && !s.conn.IsClosed() }

// over reports whether the error shows that the session had ended before the statement was sent.
func (s *session) over(err error) bool { return err != nil && !s.alive() && pgconn.SafeToRetry(err) }

// begin returns the session, or a new one if the last has ended. The error wraps
// [strategies.ErrNotAcquired], because no statement was sent yet.
func (s *session) begin(ctx context.Context) (*pgx.Conn, error) {
	if !s.alive() {
		conn, err := pgx.ConnectConfig(ctx, s.config)
		if err != nil {
			return nil, fmt.Errorf("%w: %w", strategies.ErrNotAcquired, err)
		}
		s.conn = conn
	}
	return s.conn, nil
}

// ask runs a statement in a session. If the existing session turns out to have ended, ask runs the
// statement in a new session, as connection pools do.
func (s *session) ask(ctx context.Context, do func(*pgx.Conn) error) error {
	conn, err := s.begin(ctx)
	if err != nil {
		return err
	}
	if err = do(conn); !s.over(err) {
		return err
	}
	if conn, err = s.begin(ctx); err != nil {
		return err
	}
	return do(conn)
}

// leave is the maximum time for closing the session in Close.
const leave = 100 * time.Millisecond

// Close ends the session and releases its locks.
func (s *session) Close() error {
	if !s.alive() {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), leave)
	defer cancel()
	_ = s.conn.Close(ctx) // the server notices the closed connection even without the message
	return nil
}

// code returns the server's error code, or an empty string if the error is not from the server.
func code(err error) string {
	var refused *pgconn.PgError
	if errors.As(err, &refused) {
		return refused.Code
	}
	return ""
}

// Error codes of appendix A of the PostgreSQL manual.
const (
	lockNotAvailable = "55P03"
	undefinedTable   = "42P01"
	uniqueViolation  = "23505"
	duplicateTable   = "42P07"
)
