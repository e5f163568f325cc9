// Package process is a host of Redis servers that are processes of this
// machine: redis-server or valkey-server, from version 6 on, and sentinels.
//
// What comes in is [real.ServerSpec]; what goes out is addresses on loopback.
// The servers listen nowhere else, want a password that stands in no command
// line, and keep everything in one temporary directory. They end with the
// host's Close, and with this process however it ends. The package knows
// nothing of faults, links or clients.
package process

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"time"

	"github.com/lockfault/lockfault/faults/process/clock"
	"github.com/lockfault/lockfault/faults/real"
	"github.com/lockfault/lockfault/internal/child"
)

// Options say how a [Host] starts servers. The zero value is valid to use.
type Options struct {
	// Binary is the server program, a name on PATH or a file. Empty means
	// redis-server or, if there is none, valkey-server.
	Binary string
	// Dir is where the host's temporary directory is made, and where those
	// that dead processes left are removed; empty means [os.TempDir].
	Dir string
	// CC is the C compiler that builds the clock shim, with its arguments;
	// empty means cc. It is only asked when a server's clock will be moved
	// and the shim was not built before.
	CC string
	// StartLimit is how long a server may take until it answers; less than 1
	// means 20 s, for machines as slow and busy as can be.
	StartLimit time.Duration
}

// A Host starts Redis servers as processes. [New] makes one. Safe for
// concurrent use.
type Host struct {
	options Options
	binary  binary
	dir     string
	lock    *os.File // says that the directory has an owner
	ports   *ports
	starter *child.Launcher
	starts  real.Starts

	mu      sync.Mutex
	members map[string]member

	once     sync.Once
	closeErr error
}

var _ real.SentinelHost = (*Host)(nil)

// A member is what a host started, or tried to: a server or a sentinel.
type member interface {
	Log() string
	close() error
}

// New finds the server program and makes the host's directory. It starts
// nothing but the program once, to ask for its version. The error is a
// *[BinaryError] where the program is to blame.
func New(options Options) (*Host, error) {
	if err := child.Supported(); err != nil {
		return nil, err
	}
	binary, err := find(options.Binary)
	if err != nil {
		return nil, err
	}
	if options.StartLimit < 1 {
		options.StartLimit = 20 * time.Second
	}
	dir, lock, err := makeDir(options.Dir)
	if err != nil {
		return nil, fmt.Errorf("process: make a temporary directory: %w: name a directory that can be written to with TMPDIR", err)
	}
	starter, err := child.NewLauncher()
	if err != nil {
		return nil, errors.Join(fmt.Errorf("process: %w", err), os.RemoveAll(dir), lock.Close())
	}
	h := &Host{
		options: options,
		binary:  binary,
		dir:     dir,
		lock:    lock,
		ports:   newPorts(),
		starter: starter,
		members: map[string]member{},
	}
	return h, nil
}

// Version is the server program's name and version, as in "Redis 7.0.15".
func (h *Host) Version() string { return h.binary.version }

// enter begins a call that may start something; leave ends it.
func (h *Host) enter(ctx context.Context) (_ context.Context, leave func(), err error) {
	return h.starts.Enter(ctx, h.options.StartLimit)
}

// CanMoveClocks returns nil if servers can be started with a Clock, and else
// an error that wraps [real.ErrNoClock] and says why. It blocks while the shim
// is compiled for the first time.
func (h *Host) CanMoveClocks(ctx context.Context) error {
	ctx, leave, err := h.enter(ctx)
	if err != nil {
		return fmt.Errorf("process: %w", err)
	}
	defer leave()
	if _, err := h.shim(ctx); err != nil {
		return fmt.Errorf("process: %w: %w", real.ErrNoClock, err)
	}
	return nil
}

// shim returns the library that moves a clock.
func (h *Host) shim(ctx context.Context) (string, error) {
	dirs := []string{h.dir}
	if cache, err := clock.CacheDir(); err == nil {
		dirs = []string{cache, h.dir}
	}
	return clock.Build(ctx, h.options.CC, dirs...)
}

// fileName matches what can name a directory.
var fileName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]*$`)

// Start starts a server, as [real.Host] says.
func (h *Host) Start(ctx context.Context, spec real.ServerSpec) (real.Server, error) {
	if err := check(spec.Name, spec.Password); err != nil {
		return nil, err
	}
	ctx, leave, err := h.enter(ctx)
	if err != nil {
		return nil, fmt.Errorf("process: start %s: %w", spec.Name, err)
	}
	defer leave()
	s := &server{host: h, spec: spec, dir: filepath.Join(h.dir, spec.Name)}
	if err := h.register(spec.Name, s); err != nil {
		return nil, err
	}
	if err := s.start(ctx); err != nil {
		return nil, fmt.Errorf("process: start %s: %w", spec.Name, err)
	}
	return s, nil
}

// check refuses what can't stand in a configuration.
func check(name, password string) error {
	if !fileName.MatchString(name) {
		return fmt.Errorf("process: %q can't name a server: take letters, digits, dots and dashes", name)
	}
	if password == "" {
		return fmt.Errorf("process: start %s: a server must have a password", name)
	}
	if strings.ContainsFunc(password, func(r rune) bool { return r < ' ' || r > '~' }) {
		return fmt.Errorf("process: start %s: a password must be printable ASCII", name)
	}
	return nil
}

// register makes the member one that Close ends. Its name must be new.
func (h *Host) register(name string, m member) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.members[name] != nil {
		return fmt.Errorf("process: start %s: there is one of that name", name)
	}
	h.members[name] = m
	return nil
}

// all returns the members by name.
func (h *Host) all() map[string]member {
	h.mu.Lock()
	defer h.mu.Unlock()
	return maps.Clone(h.members)
}

// CopyLogs copies the log of every server and sentinel, those that failed to start too,
// into the directory, as NAME.log. It makes the directory, and replaces what
// is there. Not after Close.
func (h *Host) CopyLogs(dir string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return fmt.Errorf("process: copy logs: %w", err)
	}
	var errs []error
	for name, m := range h.all() {
		if err := copyFile(filepath.Join(dir, name+".log"), m.Log()); err != nil && !errors.Is(err, os.ErrNotExist) {
			errs = append(errs, fmt.Errorf("process: copy logs: %w", err))
		}
	}
	return errors.Join(errs...)
}

func copyFile(to, from string) error {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.Create(to)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	return errors.Join(err, out.Close())
}

// Close ends everything, as [real.Host] says.
func (h *Host) Close() error {
	h.once.Do(func() {
		h.starts.End()
		var errs []error
		for _, m := range h.all() {
			errs = append(errs, m.close())
		}
		errs = append(errs, h.starter.Close())
		h.closeErr = errors.Join(append(errs, os.RemoveAll(h.dir), h.lock.Close())...)
	})
	return h.closeErr
}
