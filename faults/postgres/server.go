package postgres

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net"
	"net/netip"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/lockfault/lockfault/faults/real"
	"github.com/lockfault/lockfault/faults/real/daemon"
	"github.com/lockfault/lockfault/internal/ports"
	"github.com/lockfault/lockfault/internal/proc"
)

// loginName is the user that clients and standbys log in as.
const loginName = "lockfault"

// A server is a PostgreSQL server, a postmaster and its children, which may have ended. It is safe
// for concurrent use.
type server struct {
	*daemon.Daemon
	host *Host
	spec real.ServerSpec
	pool atomic.Pointer[pgxpool.Pool] // of the superuser, through the socket
	eye  atomic.Pointer[pgxpool.Pool] // of the superuser, for inspections of the lock
}

var (
	_ real.ManagedServer = (*server)(nil)
	_ real.Replica       = (*server)(nil)
	_ real.Timekeeper    = (*server)(nil)
	_ real.LockInspector = (*server)(nil)
)

func (s *server) data() string { return filepath.Join(s.Dir(), "data") }

// rules define who may log in: the superuser through the socket, and other users with a password.
// The socket is in a directory that no other user may enter.
const rules = `
local all         postgres                trust
host  all         lockfault 127.0.0.1/32  scram-sha-256
host  replication lockfault 127.0.0.1/32  scram-sha-256
`

// maxPath is the maximum length of a socket's path, in bytes.
const maxPath = 107

// prepare makes the files of a server's first process.
func (s *server) prepare(ctx context.Context) error {
	if socket := s.socket(65535); len(socket) > maxPath {
		return fmt.Errorf("the path of its socket would be too long, %s: name a shorter directory with TMPDIR", socket)
	}
	if err := os.MkdirAll(s.Dir(), 0o700); err != nil {
		return err
	}
	if err := s.host.options.Installation.clone(s.data()); err != nil {
		return fmt.Errorf("copy an empty cluster: %w", err)
	}
	if s.spec.Clock {
		if err := s.OwnClock(ctx); err != nil {
			return err
		}
	}
	if err := s.host.options.Installation.runs.give(s.Dir()); err != nil {
		return err
	}
	files := map[string]string{"pg_hba.conf": rules}
	if s.spec.Replica {
		files["standby.signal"] = ""
	} else if s.host.options.Replicas {
		files["postgresql.auto.conf"] = "synchronous_standby_names = '*'\n" // for transactions that request a synchronous commit
	}
	return s.write(files)
}

// write writes files in the data directory.
func (s *server) write(files map[string]string) error {
	for name, text := range files {
		file := filepath.Join(s.data(), name)
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			return err
		}
		if err := s.host.options.Installation.runs.give(file); err != nil {
			return err
		}
	}
	return nil
}

func (s *server) socket(port int) string {
	return filepath.Join(s.Dir(), ".s.PGSQL."+strconv.Itoa(port))
}

// settings are the differences from PostgreSQL's defaults: no waits for a disk, little memory, no
// background work, and a standby that lost its primary reconnects at once. A commit waits for no
// standby unless the client requests it.
var settings = []string{
	"fsync=off", "full_page_writes=off", "synchronous_commit=local", "shared_buffers=8MB", "autovacuum=off", "jit=off",
	"wal_level=replica", "wal_retrieve_retry_interval=20ms", "wal_receiver_status_interval=100ms", "wal_keep_size=64MB", "max_wal_senders=10",
	"log_min_messages=log", "log_min_error_statement=panic", "update_process_title=off", "huge_pages=off",
	// Shared memory is files of the data directory, and is removed with the directory: POSIX memory
	// survives a server that is killed.
	"dynamic_shared_memory_type=mmap",
}

// command returns the command of the server's process.
func (s *server) command(port int) (*exec.Cmd, error) {
	args := []string{"-D", s.data(), "-h", ports.Loopback, "-p", strconv.Itoa(port), "-k", s.Dir()}
	for _, setting := range settings {
		args = append(args, "-c", setting)
	}
	in := s.host.options.Installation
	return in.as(exec.Command(in.program("postgres"), args...)), nil
}

// fatal matches the reason of a server's end in a log line, after the line's prefix.
var fatal = regexp.MustCompile(`(?m)^.* (?:FATAL|PANIC):\s+(.*)$`)

// failureReason returns the last line of a log that gives the reason of a server's end, because
// other lines follow it.
func failureReason(log string) string {
	for _, found := range slices.Backward(fatal.FindAllStringSubmatch(log, -1)) {
		if why := found[1]; !strings.HasPrefix(why, "the database system is ") { // that was the answer to a client
			return why
		}
	}
	return daemon.LastLine(log)
}

// answers returns nil when the server accepts connections.
func (s *server) answers(ctx context.Context, p *proc.Proc, port int) error {
	if err := s.host.options.Installation.runs.release(s.data(), p.PID()); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	c, err := pgx.Connect(ctx, s.dsn(port))
	if err != nil {
		return err
	}
	return c.Close(ctx)
}

// dsn returns the connection string of the superuser.
func (s *server) dsn(port int) string {
	return fmt.Sprintf("host=%s port=%d user=%s dbname=%s sslmode=disable", escaped(s.Dir()), port, superuser, database)
}

// start starts the server for the first time.
func (s *server) start(ctx context.Context) error {
	if err := s.prepare(ctx); err != nil {
		return err
	}
	if err := s.Daemon.Start(ctx); err != nil {
		return err
	}
	if err := s.open(ctx); err != nil || s.spec.Replica {
		return err
	}
	for _, statement := range []string{
		fmt.Sprintf("CREATE ROLE %s LOGIN REPLICATION PASSWORD %s", loginName, quote(s.spec.Password)),
		"GRANT CREATE ON SCHEMA public TO " + loginName,
	} {
		if err := s.do(ctx, statement); err != nil {
			return fmt.Errorf("have it ask for a password: %w", err)
		}
	}
	return nil
}

// open makes the superuser's connection pools, and closes the previous ones.
func (s *server) open(ctx context.Context) error {
	at, err := netip.ParseAddrPort(s.Addr())
	if err != nil {
		return err
	}
	dsn := s.dsn(int(at.Port()))
	pool, err := pgxpool.New(ctx, dsn)
	if err != nil {
		return err
	}
	// An inspection changes nothing, and must not wait for a client that has locked the inspected
	// rows. That client may be waiting for an answer that is only released after the inspection.
	eye, err := pgxpool.New(ctx, dsn+" default_transaction_read_only=on lock_timeout=20ms")
	if err != nil {
		pool.Close()
		return err
	}
	s.use(pool, eye)
	return nil
}

// leave closes the superuser's connection pools.
func (s *server) leave() error {
	s.use(nil, nil)
	return nil
}

// use replaces the superuser's connection pools, and closes the previous ones.
func (s *server) use(pool, eye *pgxpool.Pool) {
	for _, was := range []*pgxpool.Pool{s.pool.Swap(pool), s.eye.Swap(eye)} {
		if was != nil {
			was.Close()
		}
	}
}

// do executes a statement as the superuser.
func (s *server) do(ctx context.Context, statement string) error {
	_, err := s.pool.Load().Exec(ctx, statement)
	return err
}

// quote returns a word as an SQL string literal.
func quote(word string) string { return "'" + strings.ReplaceAll(word, "'", "''") + "'" }

// escaped returns a word in quotes for connection strings and configuration files.
func escaped(word string) string {
	return "'" + strings.NewReplacer(`\`, `\\`, `'`, `\'`).Replace(word) + "'"
}

// Time implements [real.Timekeeper].
func (s *server) Time(ctx context.Context) (now time.Time, err error) {
	err = s.pool.Load().QueryRow(ctx, "SELECT clock_timestamp()").Scan(&now)
	return now, err
}

// Inspect implements [real.LockInspector].
func (s *server) Inspect(ctx context.Context, query, name string) (real.LockState, error) {
	seen, err := s.query(ctx, query, name)
	if err != nil && pgconn.SafeToRetry(err) { // the connection had ended with the server's previous process
		seen, err = s.query(ctx, query, name)
	}
	var refused *pgconn.PgError
	switch {
	case !errors.As(err, &refused):
	case refused.Code == "42P01": // the table doesn't exist yet, or not yet on this standby
		return real.LockState{}, nil
	case refused.Code == "55P03": // a client has locked it
		return real.LockState{}, fmt.Errorf("%w: %w", real.ErrNotNow, err)
	case refused.Code == "42P10":
		return real.LockState{}, fmt.Errorf("%w: it has one column, and is to have two, %s", real.ErrQuery, columns)
	case strings.HasPrefix(refused.Code, "42"), strings.HasPrefix(refused.Code, "22"), refused.Code == "25006": // a syntax error, a data error, or a query that writes
		return real.LockState{}, fmt.Errorf("%w: it is to return %s: %w", real.ErrQuery, columns, err)
	}
	return seen, err
}

// columns describes the result of a query, for errors.
const columns = "for each holder who that is and the seconds that he has left"

func (s *server) query(ctx context.Context, query, name string) (seen real.LockState, err error) {
	var named []any
	if strings.Contains(query, "$1") {
		named = append(named, name)
	}
	rows, err := s.eye.Load().Query(ctx, "SELECT q.owner::text, q.remains::float8, q.* FROM (\n"+strings.TrimRight(query, "; \t\r\n")+"\n) AS q(owner, remains)", named...)
	if err != nil {
		return seen, err
	}
	if fields := len(rows.FieldDescriptions()) - 2; fields > 2 {
		rows.Close()
		return seen, fmt.Errorf("%w: it has %d columns, and is to have two, %s", real.ErrQuery, fields, columns)
	}
	for rows.Next() {
		var owner *string
		var remains *float64 // in seconds
		if err := rows.Scan(&owner, &remains, nil, nil); err != nil {
			rows.Close()
			return seen, err
		}
		if owner == nil { // the row has no owner
			continue
		}
		h := real.Holder{Owner: *owner}
		switch {
		case remains == nil:
			h.Ends = real.WithSession
		case math.IsNaN(*remains):
			rows.Close()
			return seen, fmt.Errorf("%w: NaN seconds are none", real.ErrQuery)
		case math.IsInf(*remains, 1):
		case *remains <= 0:
			continue // the hold has expired, though the row exists
		default:
			h.Left = time.Duration(min(*remains*float64(time.Second), math.MaxInt64/2))
		}
		seen.Holders = append(seen.Holders, h)
	}
	return seen, rows.Err()
}

// Restart implements [real.ManagedServer].
func (s *server) Restart(ctx context.Context, empty bool) error {
	if empty {
		return fmt.Errorf("postgres: restart %s: one without its data is another server", s.spec.Name)
	}
	if err := s.Daemon.Restart(ctx, nil); err != nil {
		return err
	}
	return s.open(ctx)
}

// Follow implements [real.Replica]. A server that is no standby copies all data of its new primary.
func (s *server) Follow(ctx context.Context, addr string) error {
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		return err
	}
	conf := "primary_conninfo = " + escaped(fmt.Sprintf("host=%s port=%s user=%s password=%s application_name=%s sslmode=disable",
		host, port, loginName, escaped(s.spec.Password), s.spec.Name)) + "\n"
	var standby bool
	if err := s.pool.Load().QueryRow(ctx, "SELECT pg_is_in_recovery()").Scan(&standby); err != nil {
		return err
	}
	if !standby {
		return s.takeOver(ctx, addr, conf)
	}
	if err := s.write(map[string]string{"postgresql.auto.conf": conf}); err != nil {
		return err
	}
	return s.do(ctx, "SELECT pg_reload_conf()")
}

// takeOver makes the server a standby of the server at the address, with a copy of that server's
// data.
func (s *server) takeOver(ctx context.Context, addr, conf string) error {
	if err := s.Kill(); err != nil {
		return err
	}
	err := s.Daemon.Restart(ctx, func() error {
		if err := os.RemoveAll(s.data()); err != nil {
			return err
		}
		source := url.URL{Scheme: "postgres", User: url.User(loginName), Host: addr}
		in := s.host.options.Installation
		cmd := in.as(exec.CommandContext(ctx, in.program("pg_basebackup"),
			"--pgdata", s.data(), "--dbname", source.String(), "--checkpoint", "fast", "--no-sync", "--no-password"))
		cmd.Dir = s.Dir()
		cmd.Env = append(cmd.Env, "PGPASSWORD="+s.spec.Password) // other users can't read the environment
		if said, err := in.runs.output(cmd); err != nil {
			return fmt.Errorf("pg_basebackup: %w: %s", err, strings.TrimSpace(string(said)))
		}
		return s.write(map[string]string{"standby.signal": "", "postgresql.auto.conf": conf})
	})
	if err != nil {
		return err
	}
	return s.open(ctx)
}

// Promote implements [real.Replica]. Commits on the promoted server wait for no standby.
func (s *server) Promote(ctx context.Context) error {
	if err := s.write(map[string]string{"postgresql.auto.conf": ""}); err != nil {
		return err
	}
	var done bool
	if err := s.pool.Load().QueryRow(ctx, "SELECT pg_reload_conf() AND pg_promote(true, 30)").Scan(&done); err != nil {
		return err
	}
	if !done {
		return errors.New("it was not promoted within 30 s")
	}
	return nil
}

// Progress implements [real.Replica], in bytes of the WAL.
func (s *server) Progress(ctx context.Context) (is real.Progress, err error) {
	const ask = `SELECT pg_is_in_recovery(),
		coalesce(pg_wal_lsn_diff(CASE WHEN pg_is_in_recovery() THEN pg_last_wal_replay_lsn() ELSE pg_current_wal_flush_lsn() END, '0/0'), 0)::bigint,
		EXISTS (SELECT FROM pg_stat_wal_receiver WHERE status = 'streaming')`
	var standby bool
	if err := s.pool.Load().QueryRow(ctx, ask).Scan(&standby, &is.Has, &is.Linked); err != nil {
		return is, err
	}
	is.Persistent = true // the WAL is written before the primary is notified
	return is, nil
}
