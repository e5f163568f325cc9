package process

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"github.com/lockfault/lockfault/faults/daemon"
	"github.com/lockfault/lockfault/faults/process/clock"
	"github.com/lockfault/lockfault/faults/real"
	"github.com/lockfault/lockfault/internal/ports"
)

// A server is a redis-server process, or where one was. Safe for concurrent
// use.
type server struct {
	*daemon.Daemon
	host *Host
	spec real.ServerSpec

	clock *clock.File // nil if it has no clock of its own
	shim  string      // the library that gives it one
}

var _ real.Owned = (*server)(nil)

func (s *server) data() string { return filepath.Join(s.Dir(), "data") }

// Restart starts it again, as [real.Owned] says.
func (s *server) Restart(ctx context.Context, empty bool) error {
	return s.Daemon.Restart(ctx, func() error {
		if empty {
			return os.RemoveAll(s.data())
		}
		return nil
	})
}

// SetClock moves its clock, as [real.Owned] says.
func (s *server) SetClock(offset time.Duration, rate float64) error {
	if s.clock == nil {
		return fmt.Errorf("process: set the clock of %s: it was started without one of its own", s.spec.Name)
	}
	if err := s.clock.Set(offset, rate); err != nil {
		return fmt.Errorf("process: set the clock of %s: %w", s.spec.Name, err)
	}
	return nil
}

// start starts it for the first time.
func (s *server) start(ctx context.Context) error {
	if s.spec.Clock {
		if err := s.getClock(ctx); err != nil {
			return fmt.Errorf("%w: %w", real.ErrNoClock, err)
		}
	}
	if err := s.Daemon.Start(ctx); err != nil {
		return err
	}
	if s.spec.Clock && !s.clock.Loaded() {
		return errors.Join(fmt.Errorf("%w: %s doesn't load the shim: take one that is linked dynamically", real.ErrNoClock, s.host.binary.path), s.Kill())
	}
	return nil
}

// getClock gets the library and makes the clock's file.
func (s *server) getClock(ctx context.Context) error {
	if err := os.MkdirAll(s.Dir(), 0o700); err != nil {
		return err
	}
	var err error
	if s.shim, err = s.host.shim(ctx); err != nil {
		return err
	}
	s.clock, err = clock.Create(filepath.Join(s.Dir(), "clock"))
	return err
}

// program says how it is started.
func (s *server) program() daemon.Program {
	p := program(s.spec.Password)
	p.Command = s.command
	p.Close = func() error {
		if s.clock == nil {
			return nil
		}
		return s.clock.Close()
	}
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
	if s.clock != nil {
		cmd.Env = append(cmd.Env, clock.Env(s.shim, s.clock.Path())...)
	}
	return cmd, nil
}
