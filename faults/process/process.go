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
	"github.com/lockfault/lockfault/internal/ports"
	"github.com/lockfault/lockfault/internal/tempdir"
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
	dir     *tempdir.Dir
	ports   *ports.Ports
	starter *child.Launcher
	starts  real.Starts

	mu      sync.Mutex
	members map[string]member
	pages   map[string]int64 // how long logs were at the last NewPage, by member

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
	dir, err := tempdir.Make(options.Dir, dirPrefix)
	if err != nil {
		return nil, fmt.Errorf("process: make a temporary directory: %w: name a directory that can be written to with TMPDIR", err)
	}
	starter, err := child.NewLauncher()
	if err != nil {
		return nil, errors.Join(fmt.Errorf("process: %w", err), dir.Remove())
	}
	h := &Host{
		options: options,
		binary:  binary,
		dir:     dir,
		ports:   ports.New(),
		starter: starter,
		members: map[string]member{},
	}
	return h, nil
}

// dirPrefix is how the name of a host's directory begins.
const dirPrefix = "lockfault-servers-"

// Sweep removes the directories of hosts whose processes died without a word;
// an empty parent means [os.TempDir]. [New] does that first. What can't be
// removed is another user's, and stays.
func Sweep(parent string) { tempdir.Sweep(parent, dirPrefix) }

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
	dirs := []string{h.dir.Path()}
	if cache, err := clock.CacheDir(); err == nil {
		dirs = []string{cache, h.dir.Path()}
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
	s := &server{host: h, spec: spec, dir: filepath.Join(h.dir.Path(), spec.Name)}
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

// NewPage has the logs begin anew for CopyLogs.
func (h *Host) NewPage() {
	pages := map[string]int64{}
	for name, m := range h.all() {
		if info, err := os.Stat(m.Log()); err == nil {
			pages[name] = info.Size()
		}
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.pages = pages
}

// CopyLogs copies what every server and sentinel, those that failed to start too,
// has logged since the last NewPage into the directory, as NAME.log. It makes the
// directory, and replaces what is there. Not after Close.
func (h *Host) CopyLogs(dir string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return fmt.Errorf("process: copy logs: %w", err)
	}
	h.mu.Lock()
	pages := h.pages
	h.mu.Unlock()
	var errs []error
	for name, m := range h.all() {
		if err := copyFile(filepath.Join(dir, name+".log"), m.Log(), pages[name]); err != nil && !errors.Is(err, os.ErrNotExist) {
			errs = append(errs, fmt.Errorf("process: copy logs: %w", err))
		}
	}
	return errors.Join(errs...)
}

// copyFile copies a file from that byte on.
func copyFile(to, from string, begin int64) error {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	if _, err := in.Seek(begin, io.SeekStart); err != nil {
		return err
	}
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
		h.closeErr = errors.Join(append(errs, h.dir.Remove())...)
	})
	return h.closeErr
}
