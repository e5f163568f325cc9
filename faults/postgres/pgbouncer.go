package postgres

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/lockfault/lockfault/faults/real"
	"github.com/lockfault/lockfault/faults/real/daemon"
	"github.com/lockfault/lockfault/internal/ports"
	"github.com/lockfault/lockfault/internal/proc"
)

// FindPooler returns the path of PgBouncer. The error says what to install.
func FindPooler() (string, error) {
	if path, err := exec.LookPath("pgbouncer"); err == nil {
		return path, nil
	}
	const usual = "/usr/sbin/pgbouncer" // not on every user's PATH
	if _, err := os.Stat(usual); err == nil {
		return usual, nil
	}
	return "", errors.New("there is no PgBouncer on PATH: install it (apt-get install pgbouncer)")
}

// A pooled server is a PostgreSQL server behind PgBouncer, which runs each transaction in its
// single session on the server. Pauses, kills and restarts affect both processes. It is as safe for
// concurrent use as its two processes.
type pooled struct {
	*server
	pooler *daemon.Daemon
}

var _ real.ManagedServer = (*pooled)(nil)

// startPooler starts the pooler of a running server.
func (h *Host) startPooler(ctx context.Context, s *server) (*pooled, error) {
	p := &pooled{server: s}
	var err error
	if p.pooler, err = h.Add(s.spec.Name+"-pooler", daemon.Program{Command: p.command, Answers: p.answers, PortTaken: "Address already in use"}); err != nil {
		return nil, err
	}
	if err := os.MkdirAll(p.pooler.Dir(), 0o700); err != nil {
		return nil, err
	}
	return p, p.pooler.Start(ctx)
}

// command returns the command of the pooler. Clients and the pooler itself log in with the same
// password.
func (p *pooled) command(port int) (*exec.Cmd, error) {
	_, at, ok := strings.Cut(p.server.Addr(), ":")
	if !ok {
		return nil, fmt.Errorf("%s is no address", p.server.Addr())
	}
	dir := p.pooler.Dir()
	users := filepath.Join(dir, "users.txt")
	if strings.ContainsAny(p.spec.Password, "\"\n") {
		return nil, errors.New("a password in the pooler's file can't have quotes")
	}
	config := filepath.Join(dir, "pgbouncer.ini")
	for file, text := range map[string]string{
		users: fmt.Sprintf("%q \"%s\"\n", loginName, p.spec.Password),
		config: fmt.Sprintf(`[databases]
* = host=%s port=%s
[pgbouncer]
listen_addr = %s
listen_port = %d
unix_socket_dir =
auth_type = scram-sha-256
auth_file = %s
pool_mode = transaction
default_pool_size = 1
ignore_startup_parameters = extra_float_digits, synchronous_commit
server_login_retry = 0.1
`, ports.Loopback, at, ports.Loopback, port, users),
	} {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			return nil, err
		}
	}
	in := p.host.options.Installation
	if err := in.runs.give(dir); err != nil {
		return nil, err
	}
	return in.as(exec.Command(p.host.options.Pooler, config)), nil
}

// answers returns nil when the pooler accepts a login with the password.
func (p *pooled) answers(ctx context.Context, _ *proc.Proc, port int) error {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	config, err := pgx.ParseConfig("host=" + ports.Loopback + " port=" + strconv.Itoa(port) + " dbname=" + database + " sslmode=disable")
	if err != nil {
		return err
	}
	config.User, config.Password, config.DefaultQueryExecMode = loginName, p.spec.Password, pgx.QueryExecModeExec
	c, err := pgx.ConnectConfig(ctx, config)
	if err != nil {
		return err
	}
	return c.Close(ctx)
}

// Addr implements [real.Server]. It returns the pooler's address.
func (p *pooled) Addr() string { return p.pooler.Addr() }

// Pause implements [real.ManagedServer].
func (p *pooled) Pause() error { return errors.Join(p.pooler.Pause(), p.server.Pause()) }

// Resume implements [real.ManagedServer].
func (p *pooled) Resume() error { return errors.Join(p.server.Resume(), p.pooler.Resume()) }

// Kill implements [real.ManagedServer].
func (p *pooled) Kill() error { return errors.Join(p.pooler.Kill(), p.server.Kill()) }

// Restart implements [real.ManagedServer].
func (p *pooled) Restart(ctx context.Context, empty bool) error {
	if err := p.server.Restart(ctx, empty); err != nil {
		return err
	}
	return p.pooler.Restart(ctx, nil)
}
