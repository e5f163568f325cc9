package docker

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/containerd/errdefs"
	"github.com/moby/moby/api/types/container"
	"github.com/moby/moby/api/types/network"
	"github.com/moby/moby/client"
	"github.com/testcontainers/testcontainers-go"
	"github.com/testcontainers/testcontainers-go/log"
	tcredis "github.com/testcontainers/testcontainers-go/modules/redis"
	tcnetwork "github.com/testcontainers/testcontainers-go/network"

	"github.com/lockfault/lockfault/faults/clock"
	"github.com/lockfault/lockfault/faults/process"
	"github.com/lockfault/lockfault/faults/real"
	"github.com/lockfault/lockfault/faults/real/daemon"
)

// dataDir is the directory in containers where servers write. The images of Redis and Valkey
// contain it, owned by their servers' user.
const dataDir = "/data"

// logFile is the servers' log file in containers. After an answer, the file contains everything
// that the server logged before; the engine reads a server's standard output from a pipe with a
// delay.
const logFile = dataDir + "/lockfault.log"

// patience is the maximum time for the engine to do a quick action.
const patience = 30 * time.Second

// A server is a container with a Redis server, which may have ended. It is safe for concurrent use.
type server struct {
	host  *Host
	spec  real.ServerSpec
	dir   string
	ready *ready
	clock *clock.File // nil without its own clock

	mu        sync.Mutex              // held while the container changes
	container *tcredis.RedisContainer // nil before the first
	paused    bool
	data      int   // number of starts without data
	page      place // where fullLog begins
	life      place // where the log of the current process begins
}

var _ real.ManagedServer = (*server)(nil)

func (s *server) Addr() string { return s.ready.Addr() }

// Pause stops the server, as [real.ManagedServer] specifies.
func (s *server) Pause() error {
	return s.command("pause", func(ctx context.Context, id string) error {
		if s.paused {
			return nil
		}
		err := insist(ctx, func() error {
			_, err := s.host.engine.ContainerPause(ctx, id, client.ContainerPauseOptions{})
			return err
		}, s.mustRun)
		s.paused = err == nil
		return err
	})
}

// Resume continues the server, as [real.ManagedServer] specifies.
func (s *server) Resume() error {
	return s.command("resume", func(ctx context.Context, id string) error {
		if !s.paused {
			return s.mustRun(ctx)
		}
		err := insist(ctx, func() error {
			_, err := s.host.engine.ContainerUnpause(ctx, id, client.ContainerUnpauseOptions{})
			return err
		}, s.mustRun)
		s.paused = err != nil
		return err
	})
}

// insist repeats a pause or resume of a running container until the engine does it. An engine also
// receives each change as an event from its runtime, and takes over the state in the event when it
// arrives (ProcessEvent in Moby's daemon/monitor.go). A late event of the previous change makes the
// engine refuse the next change, as a conflict, until the event of that change arrives, too.
func insist(ctx context.Context, change func() error, mustRun func(context.Context) error) error {
	for {
		err := change()
		if !errdefs.IsConflict(err) {
			return err
		}
		if over := mustRun(ctx); over != nil {
			return over
		}
		select {
		case <-ctx.Done():
			return err
		case <-time.After(10 * time.Millisecond):
		}
	}
}

// Kill ends the server, as [real.ManagedServer] specifies.
func (s *server) Kill() error {
	return s.command("kill", func(ctx context.Context, id string) error {
		_, err := s.host.engine.ContainerKill(ctx, id, client.ContainerKillOptions{Signal: "KILL"})
		if err != nil && !errdefs.IsConflict(err) { // a conflict means that the container has ended
			return err
		}
		s.paused = false
		over := s.host.engine.ContainerWait(ctx, id, client.ContainerWaitOptions{Condition: container.WaitConditionNotRunning})
		select {
		case err := <-over.Error:
			return err
		case <-over.Result:
			return nil
		}
	})
}

func (s *server) command(what string, do func(ctx context.Context, id string) error) error {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	s.mu.Lock()
	defer s.mu.Unlock()
	err := errOver
	if s.container != nil {
		err = do(ctx, s.container.GetContainerID())
	}
	if err != nil {
		return fmt.Errorf("docker: %s %s: %w", what, s.spec.Name, oneLine(err))
	}
	return nil
}

var errOver = errors.New("its container has ended")

// mustRun returns an error unless the container runs.
func (s *server) mustRun(ctx context.Context) error {
	if s.container == nil {
		return errOver
	}
	state, err := s.container.State(ctx)
	if err == nil && !state.Running {
		err = errOver
	}
	return err
}

// SetClock sets the server's clock, as [real.ManagedServer] specifies.
func (s *server) SetClock(offset time.Duration, rate float64) error {
	if s.clock == nil {
		return fmt.Errorf("docker: set the clock of %s: it was started without one of its own", s.spec.Name)
	}
	if err := s.clock.Set(offset, rate); err != nil {
		return fmt.Errorf("docker: set the clock of %s: %w", s.spec.Name, err)
	}
	return nil
}

// Restart starts the server again, as [real.ManagedServer] specifies.
func (s *server) Restart(ctx context.Context, empty bool) error {
	ctx, leave, err := s.host.enter(ctx)
	if err != nil {
		return fmt.Errorf("docker: restart %s: %w", s.spec.Name, err)
	}
	defer leave()
	s.mu.Lock()
	defer s.mu.Unlock()
	switch err := s.mustRun(ctx); {
	case err == nil:
		return fmt.Errorf("docker: restart %s: it is running: kill it first", s.spec.Name)
	case !errors.Is(err, errOver):
		return fmt.Errorf("docker: restart %s: %w", s.spec.Name, oneLine(err))
	}
	if empty {
		s.data++ // removing the data would need another container
	}
	if s.container == nil {
		err = s.create(ctx)
	} else {
		err = s.startContainer(ctx)
	}
	if err != nil {
		return fmt.Errorf("docker: restart %s: %w", s.spec.Name, oneLine(err))
	}
	return nil
}

// startContainer starts the existing container again.
func (s *server) startContainer(ctx context.Context) error {
	file, err := s.configure()
	if err != nil {
		return err
	}
	made, err := s.container.Inspect(ctx)
	if err != nil {
		return err
	}
	// The path where the module puts the configuration is only in the container's command.
	if err := s.container.CopyFileToContainer(ctx, file, made.Config.Cmd[0], 0o755); err != nil {
		return err
	}
	s.life = s.here(ctx)
	return s.explain(s.container.Start(ctx))
}

// start starts the server for the first time.
func (s *server) start(ctx context.Context) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := os.MkdirAll(s.dir, 0o700); err != nil {
		return err
	}
	if s.spec.Clock {
		if err := s.getClock(ctx); err != nil {
			return fmt.Errorf("%w: %w", real.ErrNoClock, err)
		}
	}
	if err := s.create(ctx); err != nil {
		return err
	}
	if s.clock != nil && !s.clock.Loaded() {
		return fmt.Errorf("%w: %s doesn't load the shim: take an image of this machine's architecture whose server is linked dynamically", real.ErrNoClock, s.host.options.Image)
	}
	return nil
}

// The files of a clock, in a directory that is shared with the container.
const (
	clockDir   = "/lockfault"
	clockFile  = "clock"
	clockLib   = "clock.so"
	everybody  = 0o666 // the server runs as another user
	everybodyX = 0o755
)

func (s *server) clockDir() string { return filepath.Join(s.dir, "clock") }

// getClock copies the library and makes the clock's file. Other users of this machine can't access
// them, because only its owner can enter the host's directory.
func (s *server) getClock(ctx context.Context) error {
	shim, err := s.host.shim(ctx)
	if err != nil {
		return err
	}
	library, err := os.ReadFile(shim)
	if err != nil {
		return err
	}
	dir := s.clockDir()
	if err := os.Mkdir(dir, everybodyX); err != nil {
		return err
	}
	if s.clock, err = clock.Create(filepath.Join(dir, clockFile)); err != nil {
		return err
	}
	return errors.Join(
		os.WriteFile(filepath.Join(dir, clockLib), library, everybodyX),
		// Independent of the umask:
		os.Chmod(dir, everybodyX),
		os.Chmod(filepath.Join(dir, clockLib), everybodyX),
		os.Chmod(filepath.Join(dir, clockFile), everybody),
	)
}

// configure writes the configuration and returns its file.
func (s *server) configure() (string, error) {
	text := process.ServerConfig(process.Settings{
		Bind: "0.0.0.0", Port: port, Password: s.spec.Password, Dir: dataDir, Log: logFile, Data: s.data,
	})
	file := filepath.Join(s.dir, "redis.conf")
	return file, os.WriteFile(file, []byte(text), 0o600)
}

// create makes a container and starts it. The caller holds mu.
func (s *server) create(ctx context.Context) error {
	file, err := s.configure()
	if err != nil {
		return err
	}
	net, err := s.host.network(ctx)
	if err != nil {
		return err
	}
	options := []testcontainers.ContainerCustomizer{
		testcontainers.WithLogger(log.NewNoopLogger()),
		tcnetwork.WithNetwork([]string{s.spec.Name}, net),
		tcredis.WithConfigFile(file),
		testcontainers.WithWaitStrategyAndDeadline(startLimit, s.ready),
		testcontainers.WithHostConfigModifier(s.shape),
		testcontainers.WithNoStart(),
	}
	if s.clock != nil {
		options = append(options, testcontainers.WithEnv(clockEnv()))
	}
	err = s.host.making.one(ctx, "container "+s.spec.Name, func(ctx context.Context, item string) error {
		options = append(options, testcontainers.WithLabels(s.host.labels(item)))
		made, err := tcredis.Run(ctx, s.host.options.Image, options...)
		if made != nil && made.Container != nil {
			s.container = made
			s.page, s.life = place{}, place{}
		}
		return err
	})
	if err == nil {
		err = s.container.Start(ctx)
	}
	return s.explain(err)
}

// shape publishes the port on loopback and shares the clock's directory.
func (s *server) shape(c *container.HostConfig) {
	c.PortBindings = network.PortMap{
		network.MustParsePort(fmt.Sprint(port, "/tcp")): {{HostIP: netip.MustParseAddr(loopback)}},
	}
	if s.clock != nil {
		// z relabels files on systems with file labels, and has no effect elsewhere.
		c.Binds = []string{s.clockDir() + ":" + clockDir + ":z"}
	}
}

func clockEnv() map[string]string {
	env := map[string]string{}
	for _, entry := range clock.Env(clockDir+"/"+clockLib, clockDir+"/"+clockFile) {
		name, value, _ := strings.Cut(entry, "=")
		env[name] = value
	}
	return env
}

// explain adds the last line of the log to an error of a container's start.
func (s *server) explain(err error) error {
	if err == nil || s.container == nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	printed, logged, _ := s.log(ctx, s.life) // without a log there is nothing to add
	// A server that failed before it could log has printed the reason.
	if line := daemon.Excerpt(cmp.Or(daemon.LastLine(string(logged)), daemon.LastLine(string(printed)))); line != "" {
		return fmt.Errorf("%w; the last line of its log: %s", err, line)
	}
	return err
}

// close frees the resources in this process; the host removes the container.
func (s *server) close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.clock == nil {
		return nil
	}
	return s.clock.Close()
}
