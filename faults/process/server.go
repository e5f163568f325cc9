package process

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"github.com/lockfault/lockfault/faults/process/clock"
	"github.com/lockfault/lockfault/faults/real"
	"github.com/lockfault/lockfault/internal/child"
	"github.com/lockfault/lockfault/internal/ports"
)

// A server is a redis-server process, or where one was. Safe for concurrent
// use.
type server struct {
	host *Host
	spec real.ServerSpec
	dir  string
	port atomic.Int32 // 0 until it has one

	clock *clock.File // nil if it has no clock of its own
	shim  string      // the library that gives it one

	mu   sync.Mutex  // held while something about the process changes
	proc *child.Proc // nil until it has answered for the first time
}

var _ real.Owned = (*server)(nil)

func (s *server) Addr() string { return ports.Address(int(s.port.Load())) }
func (s *server) Log() string  { return filepath.Join(s.dir, "log") }
func (s *server) data() string { return filepath.Join(s.dir, "data") }

func (s *server) Pause() error  { return s.tell("pause", (*child.Proc).Pause) }
func (s *server) Resume() error { return s.tell("resume", (*child.Proc).Resume) }
func (s *server) Kill() error   { return s.tell("kill", (*child.Proc).Kill) }

func (s *server) tell(what string, do func(*child.Proc) error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := do(s.proc); err != nil {
		return fmt.Errorf("process: %s %s: %w", what, s.spec.Name, err)
	}
	return nil
}

// Restart starts it again, as [real.Owned] says.
func (s *server) Restart(ctx context.Context, empty bool) error {
	ctx, leave, err := s.host.enter(ctx)
	if err != nil {
		return fmt.Errorf("process: restart %s: %w", s.spec.Name, err)
	}
	defer leave()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.proc.Alive() {
		return fmt.Errorf("process: restart %s: it is running: kill it first", s.spec.Name)
	}
	if empty {
		if err := os.RemoveAll(s.data()); err != nil {
			return fmt.Errorf("process: restart %s: %w", s.spec.Name, err)
		}
	}
	if err := s.launch(ctx); err != nil {
		return fmt.Errorf("process: restart %s: %w", s.spec.Name, err)
	}
	return nil
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
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.spec.Clock {
		if err := s.getClock(ctx); err != nil {
			return fmt.Errorf("%w: %w", real.ErrNoClock, err)
		}
	}
	if err := s.launch(ctx); err != nil {
		return err
	}
	if s.spec.Clock && !s.clock.Loaded() {
		return errors.Join(fmt.Errorf("%w: %s doesn't load the shim: take one that is linked dynamically", real.ErrNoClock, s.host.binary.path), s.proc.Kill())
	}
	return nil
}

// getClock gets the library and makes the clock's file.
func (s *server) getClock(ctx context.Context) error {
	if err := os.MkdirAll(s.dir, 0o700); err != nil {
		return err
	}
	var err error
	if s.shim, err = s.host.shim(ctx); err != nil {
		return err
	}
	s.clock, err = clock.Create(filepath.Join(s.dir, "clock"))
	return err
}

// launch starts the process and waits until it answers. A server that had a
// port keeps it if it can: others may know it by that. The caller holds mu.
func (s *server) launch(ctx context.Context) error {
	if err := os.MkdirAll(s.data(), 0o700); err != nil {
		return err
	}
	return s.host.onPort(&s.port, func(port int) error {
		c := serverConfig(Settings{Bind: ports.Loopback, Port: port, Password: s.spec.Password, Dir: s.data(), Log: s.Log()})
		file := filepath.Join(s.dir, "redis.conf")
		if err := c.write(file); err != nil {
			return err
		}
		cmd := exec.Command(s.host.binary.path, file)
		cmd.Dir, cmd.Env = s.dir, environment()
		if s.clock != nil {
			cmd.Env = append(cmd.Env, clock.Env(s.shim, s.clock.Path())...)
		}
		p, err := s.host.launch(ctx, cmd, port, s.spec.Password, s.Log())
		if err == nil {
			s.proc = p
		}
		return err
	})
}

// close ends the process.
func (s *server) close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	var errs []error
	if s.proc != nil {
		errs = append(errs, s.proc.Kill())
	}
	if s.clock != nil {
		errs = append(errs, s.clock.Close())
	}
	return errors.Join(errs...)
}
