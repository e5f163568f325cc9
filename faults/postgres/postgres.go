// Package postgres is a host of PostgreSQL servers that are processes of this machine: a primary
// for each node, and standbys that follow it.
//
// The input is a [real.ServerSpec]; the output is an address on loopback, where the server asks for
// a password. The servers end with the host's Close, and with this process however it ends, and
// keep all files in one temporary directory. [Wire] is their protocol, for links that parse it. The
// package injects no faults, and must not depend on clients.
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

// startLimit is the maximum time that a server may take until it answers.
const startLimit = 30 * time.Second

// Options configure how a [Host] starts servers.
type Options struct {
	// Installation is the result of [Find].
	Installation *Installation
	// Replicas reports that there will be standbys.
	Replicas bool
	// Pooler is the result of [FindPooler]. If it is not empty, clients reach each server through a
	// pooler.
	Pooler string
	// Dir is where the host's temporary directory is made; empty means [os.TempDir]. If this
	// process runs as root, another user must be able to enter it.
	Dir string
}

// A Host starts servers. [New] makes one. It is safe for concurrent use.
type Host struct {
	*daemon.Host
	options Options
}

var _ real.Host = (*Host)(nil)

// dirPrefix begins the name of a host's directory. It is short because the directory contains
// sockets, whose paths must be short.
const dirPrefix = "lockfault-pg-"

// Sweep removes the directories of hosts whose processes died without cleaning up, as
// [daemon.Sweep] specifies.
func Sweep(parent string) { daemon.Sweep(parent, dirPrefix) }

// New makes the host's directory. It starts no server.
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

// Start implements [real.Host]. It returns when the server accepts connections, before a replica
// follows its primary. The data is that of an empty cluster.
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

// Service is PostgreSQL as a [real.Service].
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
