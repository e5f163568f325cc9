package process

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"

	"github.com/lockfault/lockfault/faults/real"
	"github.com/lockfault/lockfault/faults/real/daemon"
	"github.com/lockfault/lockfault/internal/ports"
)

// A server is a redis-server process, which may have ended. It is safe for concurrent use.
type server struct {
	*daemon.Daemon
	host *Host
	spec real.ServerSpec
}

var _ real.ManagedServer = (*server)(nil)

func (s *server) data() string { return filepath.Join(s.Dir(), "data") }

// Restart starts the server again, as [real.ManagedServer] specifies.
func (s *server) Restart(ctx context.Context, empty bool) error {
	return s.Daemon.Restart(ctx, func() error {
		if empty {
			return os.RemoveAll(s.data())
		}
		return nil
	})
}

// start starts the server for the first time.
func (s *server) start(ctx context.Context) error {
	if s.spec.Clock {
		if err := s.OwnClock(ctx); err != nil {
			return err
		}
	}
	return s.Daemon.Start(ctx)
}

// program returns the program of the server.
func (s *server) program() daemon.Program {
	p := program(s.spec.Password)
	p.Command = s.command
	return p
}

func (s *server) command(port int) (*exec.Cmd, error) {
	if err := os.MkdirAll(s.data(), 0o700); err != nil {
		return nil, err
	}
	c := serverConfig(Settings{Bind: ports.Loopback, Port: port, Password: s.spec.Password, Dir: s.data(), Log: s.Log()})
	file := filepath.Join(s.Dir(), "redis.conf")
	if err := c.write(file); err != nil {
		return nil, err
	}
	cmd := exec.Command(s.host.binary.path, file)
	cmd.Env = environment()
	return cmd, nil
}
