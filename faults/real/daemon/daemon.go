// Package daemon runs the servers of a host as processes of this machine: in one temporary
// directory, at ports of loopback, each with a log of its own. They end with the host's Close, and
// with this process however it ends.
//
// What comes in are [Program]s, which say how a server is started and when it is there; what goes out are
// [Daemon]s, which can be stopped, continued, killed and started again. The package doesn't know what
// is served.
package daemon

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/lockfault/lockfault/faults/real"
	"github.com/lockfault/lockfault/internal/ports"
	"github.com/lockfault/lockfault/internal/proc"
	"github.com/lockfault/lockfault/internal/tempdir"
)

// Options say what hosts have of their own.
type Options struct {
	// Name begins errors, such as etcd.
	Name string
	// Prefix is how the names of the hosts' directories begin.
	Prefix string
	// Dir is where the host's temporary directory is made, and where those
	// that dead processes left are removed; empty means [os.TempDir].
	Dir string
	// Limit is how long a server may take until it answers.
	Limit time.Duration
	// CC is the C compiler that builds the library that moves clocks, with its arguments; empty means cc. It is
	// only asked when a clock will be moved and lockfault's cache directory hasn't got the library yet.
	CC string
	// Families says that servers have children in process groups of their own, which are to be stopped
	// and killed with them. It needs Linux.
	Families bool
}

// A Host has daemons. [New] makes one. Safe for concurrent use.
type Host struct {
	options  Options
	dir      *tempdir.Dir
	ports    *ports.Ports
	launcher *proc.Launcher
	starts   real.Starts

	mu          sync.Mutex
	daemons     map[string]*Daemon
	pages       map[string]int64 // how long logs were at the last NewPage, by name
	peerProxies []*PeerProxy

	once     sync.Once
	closeErr error
}

// Sweep removes the directories of hosts whose processes died without a word; an empty parent
// means [os.TempDir]. [New] does that first. What can't be removed is another user's, and stays.
func Sweep(parent, prefix string) { tempdir.Sweep(parent, prefix) }

// New makes the host's directory. It starts nothing.
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

// Dir is the host's directory.
func (h *Host) Dir() string { return h.dir.Path() }

// Ports are the host's, for servers that have more than one.
func (h *Host) Ports() *ports.Ports { return h.ports }

// Enter begins a call that may start something, as [real.Starts] says; leave ends it.
func (h *Host) Enter(ctx context.Context) (_ context.Context, leave func(), err error) {
	return h.starts.Enter(ctx, h.options.Limit)
}

// Add makes a daemon of that name, which must be new and name a file. Close ends it; nothing is
// started yet.
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

// NewPage has the logs begin anew for CopyLogs.
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

// CopyLogs copies what every daemon, those that failed to start too, has logged since the last
// NewPage into the directory, as NAME.log. It makes the directory, and replaces what is there. Not
// after Close.
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
