// Package daemon runs the servers of a host as processes of this machine: in one temporary
// directory, on loopback ports, each with its own log. The servers end with the host's Close, and
// with this process however it ends.
//
// The input is [Program]s, which define how a server is started and when it is ready; the output is
// [Daemon]s, which can be stopped, continued, killed and started again. The package must not depend
// on the kind of server.
package daemon

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/lockfault/lockfault/faults/real"
	"github.com/lockfault/lockfault/internal/ports"
	"github.com/lockfault/lockfault/internal/proc"
	"github.com/lockfault/lockfault/internal/tempdir"
)

// A MissingError reports that the programs of a server were not found. The error says what to do.
type MissingError struct {
	// What is the missing program, Cure says what to do.
	What, Cure string
	Why        error
}

func (e *MissingError) Error() string {
	return fmt.Sprintf("there is no %s (%v): %s", e.What, e.Why, e.Cure)
}

func (e *MissingError) Unwrap() error { return e.Why }

// Environment returns the environment of servers: this process's, without the variables whose names
// begin with one of the prefixes, because they would change the servers' configuration, and with
// others.
func Environment(without []string, with ...string) []string {
	return append(slices.DeleteFunc(os.Environ(), func(entry string) bool {
		return slices.ContainsFunc(without, func(prefix string) bool { return strings.HasPrefix(entry, prefix) })
	}), with...)
}

// Options configure a host.
type Options struct {
	// Name begins errors, such as etcd.
	Name string
	// Prefix begins the names of the hosts' directories.
	Prefix string
	// Dir is where the host's temporary directory is made, and where the directories of dead
	// processes are removed; empty means [os.TempDir].
	Dir string
	// Limit is the maximum time that a server may take until it answers.
	Limit time.Duration
	// CC is the C compiler, with its arguments, for the library that moves clocks; empty means cc.
	// It is called only when a clock is needed and lockfault's cache directory doesn't hold the
	// library yet.
	CC string
	// Families reports that servers have children in their own process groups, which must be
	// stopped and killed with the server. It needs Linux.
	Families bool
}

// A Host owns daemons. [New] makes one. It is safe for concurrent use.
type Host struct {
	options  Options
	dir      *tempdir.Dir
	ports    *ports.Ports
	launcher *proc.Launcher
	starts   real.Starts

	mu          sync.Mutex
	daemons     map[string]*Daemon
	pages       map[string]int64 // length of each log at the last NewPage, by name
	peerProxies []*PeerProxy

	once     sync.Once
	closeErr error
}

// Sweep removes the directories of hosts whose processes died without cleaning up. An empty parent
// means [os.TempDir]. [New] does the same first. Directories that can't be removed belong to
// another user, and stay.
func Sweep(parent, prefix string) { tempdir.Sweep(parent, prefix) }

// New makes the host's directory and its launcher. It starts no server.
func New(options Options) (*Host, error) {
	if err := proc.Supported(); err != nil {
		return nil, err
	}
	dir, err := tempdir.Make(options.Dir, options.Prefix)
	if err != nil {
		return nil, fmt.Errorf("%s: make a temporary directory: %w: name a directory that can be written to with TMPDIR", options.Name, err)
	}
	begin := proc.NewLauncher
	if options.Families {
		begin = proc.NewFamilyLauncher
	}
	launcher, err := begin()
	if err != nil {
		return nil, errors.Join(fmt.Errorf("%s: %w", options.Name, err), dir.Remove())
	}
	return &Host{options: options, dir: dir, ports: ports.New(), launcher: launcher, daemons: map[string]*Daemon{}}, nil
}

// Dir returns the path of the host's directory.
func (h *Host) Dir() string { return h.dir.Path() }

// Ports returns the host's ports, for servers that need more than one.
func (h *Host) Ports() *ports.Ports { return h.ports }

// Enter begins a call that may start a process, as [real.Starts] specifies; leave ends the call.
func (h *Host) Enter(ctx context.Context) (_ context.Context, leave func(), err error) {
	return h.starts.Enter(ctx, h.options.Limit)
}

// Begin calls start, which starts the server of that name, as [Host.Enter] specifies. Its errors
// name the server.
func (h *Host) Begin(ctx context.Context, name string, start func(context.Context) error) error {
	ctx, leave, err := h.Enter(ctx)
	if err == nil {
		err = start(ctx)
		leave()
	}
	if err != nil {
		return fmt.Errorf("%s: start %s: %w", h.options.Name, name, err)
	}
	return nil
}

// Add adds a daemon and starts nothing. The name must be unused and valid as a file name. Close
// ends the daemon.
func (h *Host) Add(name string, program Program) (*Daemon, error) {
	d := &Daemon{host: h, name: name, program: program}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.daemons[name] != nil {
		return nil, errors.New("there is one of that name")
	}
	h.daemons[name] = d
	return d, nil
}

// all returns the daemons by name.
func (h *Host) all() map[string]*Daemon {
	h.mu.Lock()
	defer h.mu.Unlock()
	return maps.Clone(h.daemons)
}

// NewPage makes CopyLogs begin at the current end of each log.
func (h *Host) NewPage() {
	pages := map[string]int64{}
	for name, d := range h.all() {
		if info, err := os.Stat(d.Log()); err == nil {
			pages[name] = info.Size()
		}
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.pages = pages
}

// CopyLogs copies what each daemon, including those that failed to start, has logged since the last
// NewPage to NAME.log in the directory. It makes the directory, and replaces existing files. Don't
// call it after Close.
func (h *Host) CopyLogs(dir string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return fmt.Errorf("%s: copy logs: %w", h.options.Name, err)
	}
	h.mu.Lock()
	pages := h.pages
	h.mu.Unlock()
	var errs []error
	for name, d := range h.all() {
		if err := copyFile(filepath.Join(dir, name+".log"), d.Log(), pages[name]); err != nil && !errors.Is(err, os.ErrNotExist) {
			errs = append(errs, fmt.Errorf("%s: copy logs: %w", h.options.Name, err))
		}
	}
	return errors.Join(errs...)
}

// copyFile copies a file from the byte at begin to its end.
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

// Close ends everything, as [real.Host] specifies.
func (h *Host) Close() error {
	h.once.Do(func() {
		h.starts.End()
		var errs []error
		for _, d := range h.all() {
			errs = append(errs, d.close())
		}
		h.mu.Lock()
		ways := h.peerProxies
		h.mu.Unlock()
		for _, w := range ways {
			errs = append(errs, w.close())
		}
		errs = append(errs, h.launcher.Close())
		h.closeErr = errors.Join(append(errs, h.dir.Remove())...)
	})
	return h.closeErr
}
