// Package postgres has locks on PostgreSQL: its advisory locks, and rows that are leases. What comes in is a
// [strategies.Env] with Servers; what goes out are [strategies.Strategy]s.
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

// Service is the name of the service, and Pooled of the one that is the same behind a pooler.
const (
	Service = "postgres"
	Pooled  = "pgbouncer"
)

// All returns the locks.
func All() []strategies.Strategy {
	return []strategies.Strategy{advisory(), advisoryXact(), row(), rowSync(), rowSequence()}
}

// session is one client's connection, which begins with the first statement, and anew when it has ended. What
// belongs to a session ends with it, whoever ended it.
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
	// One message there and one back for a statement, and none that is prepared: that is what goes through poolers, too.
	config.DefaultQueryExecMode = pgx.QueryExecModeExec
	return &session{config: config}, nil
}

// alive reports whether there is a session of which this client hasn't been told that it has ended.
func (s *session) alive() bool { return s.conn != nil && !s.conn.IsClosed() }

// over reports whether an error says that the session had ended before the statement set out.
func (s *session) over(err error) bool { return err != nil && !s.alive() && pgconn.SafeToRetry(err) }

// begin returns the session, a new one if the last has ended. The error wraps [strategies.ErrNotAcquired]: nothing was asked yet.
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

// ask has a session for a statement. If it turns out that the one that there was had ended the statement is tried on another, as
// pools of connections do.
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

// leave is how long a lock takes at most to tell the server that it goes.
const leave = 100 * time.Millisecond

// Close ends the session, and with it what it holds.
func (s *session) Close() error {
	if !s.alive() {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), leave)
	defer cancel()
	_ = s.conn.Close(ctx) // the server sees the end, if not the word
	return nil
}

// code returns what the server calls an error, empty if it is none of its own.
func code(err error) string {
	var refused *pgconn.PgError
	if errors.As(err, &refused) {
		return refused.Code
	}
	return ""
}

// What servers call errors, as in appendix A of the manual.
const (
	lockNotAvailable = "55P03"
	undefinedTable   = "42P01"
	uniqueViolation  = "23505"
	duplicateTable   = "42P07"
)
