// Package docker is a host of Redis servers that are containers. The image may be any whose entry
// point takes a configuration file, as those of Redis and Valkey do.
//
// The input is a [real.ServerSpec]; the output is an address on loopback. A host's servers have
// their own networks. Their ports are published only on loopback; servers require a password, which
// appears in no command line and no environment. Containers and networks end with the host's Close,
// and by a [Watch] in another process if this process is killed. The engine must run on this
// machine. The package must not depend on faults, links or clients.
//
// # What testcontainers is used for
//
// Testcontainers finds the engine, builds images, makes networks, and creates and starts
// containers; its Redis module selects the port to publish and puts the configuration where the
// image's entry point finds it. This package asks the engine itself for the rest: pause, kill, and
// removal of everything with a label. Testcontainers' own cleanup is a container of an image that
// must be pulled, so it is switched off.
package docker

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"time"

	"github.com/testcontainers/testcontainers-go"

	"github.com/lockfault/lockfault/faults/clock"
	"github.com/lockfault/lockfault/faults/real"
	"github.com/lockfault/lockfault/internal/reaper"
	"github.com/lockfault/lockfault/internal/tempdir"
)

// Options configure how a [Host] starts servers. The zero value is ready to use.
type Options struct {
	// Image is the image of the servers. A missing image is pulled.
	Image string
	// Dir is where the host's temporary directory is made, and where the directories of dead
	// processes are removed; empty means [os.TempDir].
	Dir string
	// Watchman returns the command of a process that calls [Watch] on its standard input. Nil means
	// that containers and networks stay if this process is killed.
	Watchman func() *exec.Cmd
}

// startLimit is the maximum time that a server may take until it answers, enough for very slow and
// busy machines.
const startLimit = time.Minute

// A Host starts Redis servers as containers. [New] makes one. It is safe for concurrent use.
type Host struct {
	options  Options
	engine   *testcontainers.DockerClient
	run      string // label of everything that the host makes
	dir      *tempdir.Dir
	watchman *reaper.Reaper // nil without a watchman
	making   *pendingCreates
	starts   real.Starts

	net hostNetwork

	mu      sync.Mutex
	servers map[string]*server

	once     sync.Once
	closeErr error
}

var _ real.GatewayHost = (*Host)(nil)

// New finds the engine and the image and makes the host's directory. It blocks while a missing
// image is pulled. The error is an *[EngineError] if no engine answers, and an *[ImageError] if the
// image doesn't exist.
func New(ctx context.Context, options Options) (*Host, error) {
	engine, err := prepare(ctx, options.Image)
	if err != nil {
		return nil, err
	}
	if parent, err := filepath.Abs(cmp.Or(options.Dir, os.TempDir())); err == nil {
		sweepDead(ctx, engine.Client, parent) // before tempdir.Make removes the directories that name them
	}
	dir, err := tempdir.Make(options.Dir, dirPrefix)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("docker: make a temporary directory: %w: name a directory that can be written to with TMPDIR", err), engine.Close())
	}
	h := &Host{
		options: options, engine: engine, run: rand.Text(), dir: dir,
		making:  &pendingCreates{items: map[string]bool{}},
		servers: map[string]*server{},
	}
	if options.Watchman != nil {
		orders := reaperMessage{Engine: engine.DaemonHost(), Run: h.run, Dir: dir.Path()}
		if h.watchman, err = startWatchman(options.Watchman, orders, h.making); err != nil {
			return nil, errors.Join(fmt.Errorf("docker: %w", err), dir.Remove(), engine.Close())
		}
		h.making.watchman = h.watchman
	}
	return h, nil
}

// enter begins a call that may start a container; leave ends the call.
func (h *Host) enter(ctx context.Context) (_ context.Context, leave func(), err error) {
	return h.starts.Enter(ctx, startLimit)
}

// serverName matches valid names of servers, which name a container's host and a directory.
var serverName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9-]*$`)

// Start starts a server, as [real.Host] specifies.
func (h *Host) Start(ctx context.Context, spec real.ServerSpec) (real.Server, error) {
	if !serverName.MatchString(spec.Name) {
		return nil, fmt.Errorf("docker: %q can't name a server: take letters, digits and dashes", spec.Name)
	}
	if spec.Password == "" || strings.ContainsFunc(spec.Password, func(r rune) bool { return r < ' ' || r > '~' }) {
		return nil, fmt.Errorf("docker: start %s: a server must have a password of printable ASCII", spec.Name)
	}
	ctx, leave, err := h.enter(ctx)
	if err != nil {
		return nil, fmt.Errorf("docker: start %s: %w", spec.Name, err)
	}
	defer leave()
	over, err := turn(ctx)
	if err != nil {
		return nil, fmt.Errorf("docker: start %s: %w", spec.Name, err)
	}
	defer over()
	s := &server{host: h, spec: spec, dir: filepath.Join(h.dir.Path(), spec.Name), ready: &ready{password: spec.Password}}
	if err := h.register(s); err != nil {
		return nil, err
	}
	if err := s.start(ctx); err != nil {
		return nil, fmt.Errorf("docker: start %s: %w", spec.Name, oneLine(err))
	}
	return s, nil
}

// register adds a server to the host. Its name must be unused.
func (h *Host) register(s *server) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.servers[s.spec.Name] != nil {
		return fmt.Errorf("docker: start %s: there is one of that name", s.spec.Name)
	}
	h.servers[s.spec.Name] = s
	return nil
}

// all returns the servers by name.
func (h *Host) all() map[string]*server {
	h.mu.Lock()
	defer h.mu.Unlock()
	return maps.Clone(h.servers)
}

// shim returns the path of the library that moves a clock.
func (h *Host) shim(ctx context.Context) (string, error) {
	return clock.Library(ctx, "", h.dir.Path())
}

// NewPage makes CopyLogs begin at the current end of each log.
func (h *Host) NewPage() {
	for _, s := range h.all() {
		s.newPage()
	}
}

// CopyLogs copies what each server, including those that failed to start, has logged since the last
// NewPage to NAME.log in the directory. It makes the directory, and replaces existing files. Don't
// call it after Close.
func (h *Host) CopyLogs(dir string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return fmt.Errorf("docker: copy logs: %w", err)
	}
	var errs []error
	for name, s := range h.all() {
		text, err := s.fullLog()
		if err == nil {
			err = os.WriteFile(filepath.Join(dir, name+".log"), text, 0o644)
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("docker: copy the log of %s: %w", name, err))
		}
	}
	return errors.Join(errs...)
}

// farewell is the maximum time for the removal of containers and networks.
const farewell = time.Minute

// Close ends everything, as [real.Host] specifies.
func (h *Host) Close() error {
	h.once.Do(func() {
		h.starts.End()
		var errs []error
		for _, s := range h.all() {
			errs = append(errs, s.close())
		}
		ctx, cancel := context.WithTimeout(context.Background(), farewell)
		defer cancel()
		err := sweep(ctx, h.engine.Client, h.run, h.making.left())
		if err == nil {
			// A watchman that has already ended isn't needed any more.
			_ = send(h.watchman, reaperMessage{Dismissed: true})
		}
		errs = append(errs, h.watchman.Close(), err, h.dir.Remove(), h.engine.Close())
		h.closeErr = errors.Join(errs...)
	})
	return h.closeErr
}

// oneLine returns an error whose text is on one line.
func oneLine(err error) error { return &lineError{err} }

type lineError struct{ err error }

func (e *lineError) Error() string { return strings.Join(strings.Fields(e.err.Error()), " ") }
func (e *lineError) Unwrap() error { return e.err }
