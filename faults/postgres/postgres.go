// Package postgres is a host of PostgreSQL servers that are processes of this machine: a primary for
// each node, and standbys that follow it.
//
// What comes in is [real.ServerSpec]; what goes out is addresses on loopback, where the servers
// ask for a password. They end with the host's Close, and with this process however it ends, and
// keep everything in one temporary directory. [Wire] is what is spoken with them, for links that look at it. The
// package does no faults, and knows no clients.
package postgres

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/lockfault/lockfault/faults"
	"github.com/lockfault/lockfault/faults/real"
	"github.com/lockfault/lockfault/faults/real/daemon"
	"github.com/lockfault/lockfault/faults/real/proxy"
)

// startLimit is how long a server may take until it answers.
const startLimit = 30 * time.Second

// Options say how a [Host] starts servers.
type Options struct {
	// Installation is what [Find] found.
	Installation *Installation
	// Replicas says that there will be standbys.
	Replicas bool
	// Pooler is what [FindPooler] found; if it isn't empty, what clients see is a pooler in front of each server.
	Pooler string
	// Dir is where the host's temporary directory is made; empty means [os.TempDir]. If this
	// process is root's, another user must be able to reach it.
	Dir string
}

// A Host starts servers. [New] makes one. Safe for concurrent use.
type Host struct {
	*daemon.Host
	options Options
}

var _ real.Host = (*Host)(nil)

// dirPrefix is how the name of a host's directory begins. Sockets are in it, whose paths are short.
const dirPrefix = "lockfault-pg-"

// Sweep removes the directories of hosts whose processes died without a word, as [daemon.Sweep] says.
func Sweep(parent string) { daemon.Sweep(parent, dirPrefix) }

// New makes the host's directory. It starts nothing.
func New(options Options) (*Host, error) {
	base, err := daemon.New(daemon.Options{Name: "postgres", Prefix: dirPrefix, Dir: options.Dir, Limit: startLimit, Families: true})
	if err != nil {
		return nil, err
	}
	h := &Host{Host: base, options: options}
	if err := options.Installation.runs.opens(h.Dir()); err != nil {
		return nil, errors.Join(fmt.Errorf("postgres: %w", err), h.Close())
	}
	return h, nil
}

// Start implements [real.Host]. A server that was told to follow nobody yet is there when it takes
// connections; it has what an empty cluster has.
func (h *Host) Start(ctx context.Context, spec real.ServerSpec) (real.Server, error) {
	ctx, leave, err := h.Enter(ctx)
	if err != nil {
		return nil, fmt.Errorf("postgres: start %s: %w", spec.Name, err)
	}
	defer leave()
	if spec.Password == "" {
		return nil, fmt.Errorf("postgres: start %s: a server must have a password", spec.Name)
	}
	s := &server{host: h, spec: spec}
	if s.Daemon, err = h.Add(spec.Name, daemon.Program{Command: s.command, Answers: s.answers, PortTaken: "could not bind", Reason: failureReason, Close: s.leave}); err == nil {
		err = s.start(ctx)
	}
	if err != nil {
		return nil, fmt.Errorf("postgres: start %s: %w", spec.Name, err)
	}
	if h.options.Pooler == "" {
		return s, nil
	}
	p, err := h.startPooler(ctx, s)
	if err != nil {
		return nil, fmt.Errorf("postgres: start the pooler of %s: %w", spec.Name, err)
	}
	return p, nil
}

// Service is how worlds speak with PostgreSQL.
type Service struct{}

var _ real.Replicator = Service{}

// Name implements [real.Service].
func (Service) Name() string { return "postgres" }

// Login implements [real.Service].
func (Service) Login(password string) real.Login {
	return real.Login{Username: loginName, Password: password}
}

// Speaks implements [real.Service].
func (Service) Speaks() proxy.Protocol { return Wire{} }

// Commands implements [real.Service].
func (Service) Commands() []string { return append(faults.Statements(), faults.PostgresMessages()...) }

// Replicates implements [real.Replicator].
func (Service) Replicates() bool { return true }

// MovesClocks implements [real.Clocked].
func (Service) MovesClocks() (set, drift bool) { return true, true }
