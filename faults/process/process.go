// Package process is a host of Redis servers that are processes of this machine: redis-server or
// valkey-server, version 6 or newer, and sentinels.
//
// The input is a [real.ServerSpec]; the output is an address on loopback. The servers listen only
// on loopback, require a password that appears in no command line, and keep all files in one
// temporary directory. They end with the host's Close, and with this process however it ends. The
// package must not depend on faults, links or clients.
package process

import (
	"context"
	"fmt"
	"regexp"
	"strings"
	"time"

	"github.com/lockfault/lockfault/faults/real"
	"github.com/lockfault/lockfault/faults/real/daemon"
	"github.com/lockfault/lockfault/internal/proc"
)

// Options configure how a [Host] starts servers. The zero value is ready to use.
type Options struct {
	// Binary is the server program, a name on PATH or a file. Empty means redis-server or, if that
	// is not found, valkey-server.
	Binary string
	// Dir is where the host's temporary directory is made, and where the directories of dead
	// processes are removed; empty means [os.TempDir].
	Dir string
	// CC is the C compiler, with its arguments, for the clock shim; empty means cc. It is called
	// only if a server's clock will be moved and the shim was not built before.
	CC string
	// StartLimit is the maximum time that a server may take until it answers; less than 1 means 20
	// s, enough for very slow and busy machines.
	StartLimit time.Duration
}

// A Host starts Redis servers as processes. [New] makes one. It is safe for concurrent use.
type Host struct {
	*daemon.Host
	options Options
	binary  binary
}

var _ real.SentinelHost = (*Host)(nil)

// New finds the server program and makes the host's directory. It runs only the program, once, to
// get its version. If the program is the cause of an error, the error is a *[BinaryError].
func New(options Options) (*Host, error) {
	if err := proc.Supported(); err != nil {
		return nil, err
	}
	binary, err := find(options.Binary)
	if err != nil {
		return nil, err
	}
	if options.StartLimit < 1 {
		options.StartLimit = 20 * time.Second
	}
	h, err := daemon.New(daemon.Options{Name: "process", Prefix: dirPrefix, Dir: options.Dir, Limit: options.StartLimit, CC: options.CC})
	if err != nil {
		return nil, err
	}
	return &Host{Host: h, options: options, binary: binary}, nil
}

// dirPrefix begins the name of a host's directory.
const dirPrefix = "lockfault-servers-"

// Sweep removes the directories of hosts whose processes died without cleaning up, as
// [daemon.Sweep] specifies.
func Sweep(parent string) { daemon.Sweep(parent, dirPrefix) }

// Version returns the server program's name and version, such as "Redis 7.0.15".
func (h *Host) Version() string { return h.binary.version }

// fileName matches valid names of servers, which name directories.
var fileName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]*$`)

// Start starts a server, as [real.Host] specifies.
func (h *Host) Start(ctx context.Context, spec real.ServerSpec) (real.Server, error) {
	if err := check(spec.Name, spec.Password); err != nil {
		return nil, err
	}
	s := &server{host: h, spec: spec}
	err := h.Begin(ctx, spec.Name, func(ctx context.Context) (err error) {
		if s.Daemon, err = h.Add(spec.Name, s.program()); err != nil {
			return err
		}
		return s.start(ctx)
	})
	if err != nil {
		return nil, err
	}
	return s, nil
}

// check returns an error if a name or password is invalid in a configuration.
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
