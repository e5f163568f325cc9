// Package etcd is a host of etcd servers that are processes of this machine: the members of one
// cluster, one per node of the strategy.
//
// The input is a [real.ServerSpec]; the output is an address on loopback, where the server asks for
// a password. The servers end with the host's Close, and with this process however it ends, and
// keep all files in one temporary directory. [Wire] is their clients' protocol, for links that
// parse it. The package injects no faults, and must not depend on clients.
package etcd

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/lockfault/lockfault/faults"
	"github.com/lockfault/lockfault/faults/real"
	"github.com/lockfault/lockfault/faults/real/daemon"
	"github.com/lockfault/lockfault/faults/real/proxy"
	"github.com/lockfault/lockfault/internal/ports"
)

// The heartbeat interval of a leader, and the silence after which another is elected: a half of
// etcd's defaults for both. The shortest lease is one and a half election timeouts, so a lease of 1
// s is possible.
const (
	heartbeat = 50 * time.Millisecond
	election  = 500 * time.Millisecond
)

// startLimit is the maximum time that a server may take until it answers.
const startLimit = 30 * time.Second

// Options configure how a [Host] starts servers.
type Options struct {
	// Binary is the server program, such as the result of [Find].
	Binary string
	// Members is the number of servers: n1 to nN, in Node of [real.ServerSpec]. Less than 1 means
	// 1.
	Members int
	// Dir is where the host's temporary directory is made; empty means [os.TempDir].
	Dir string
}

// A Host starts the members of a cluster. [New] makes one. It is safe for concurrent use.
type Host struct {
	*daemon.Cluster
	options Options
	token   string // identifies this cluster
	tokens  string // auth-token option with the keys of the members
	peers   []peer // n1 to nN
}

// A peer holds the port on which a member listens for the others, and the port that they are given
// for it.
type peer struct{ port, way int }

var _ real.ClusterHost = (*Host)(nil)

// dirPrefix begins the name of a host's directory.
const dirPrefix = "lockfault-etcd-"

// Sweep removes the directories of hosts whose processes died without cleaning up, as
// [daemon.Sweep] specifies.
func Sweep(parent string) { daemon.Sweep(parent, dirPrefix) }

// New makes the host's directory. It starts no server.
func New(options Options) (*Host, error) {
	options.Members = max(1, options.Members)
	base, err := daemon.NewCluster(daemon.ClusterOptions{
		Options: daemon.Options{Name: "etcd", Prefix: dirPrefix, Dir: options.Dir, Limit: startLimit},
		Members: options.Members, NoClock: "it is linked statically", NoEmpty: withoutData,
	})
	if err != nil {
		return nil, err
	}
	h := &Host{Cluster: base, options: options, token: rand.Text()}
	for i := range options.Members {
		port, err := h.Ports().Take()
		way := port
		if err == nil {
			way, err = h.To(i+1, port)
		}
		if err != nil {
			return nil, errors.Join(fmt.Errorf("etcd: %w", err), h.Close())
		}
		h.peers = append(h.peers, peer{port, way})
	}
	if h.tokens, err = writeKeys(h.Dir()); err != nil {
		return nil, errors.Join(fmt.Errorf("etcd: %w", err), h.Close())
	}
	return h, nil
}

// Start implements [real.Host]. A member answers only with a majority: start the other members at
// the same time.
func (h *Host) Start(ctx context.Context, spec real.ServerSpec) (real.Server, error) {
	s := &server{host: h}
	err := h.Begin(ctx, spec.Name, func(ctx context.Context) (err error) {
		program := daemon.Program{Command: s.command, Answers: s.answers, PortTaken: "address already in use", Close: s.close}
		if s.Member, err = h.AddMember(spec, program); err != nil {
			return err
		}
		return s.start(ctx)
	})
	if err != nil {
		return nil, err
	}
	return s, nil
}

// cluster returns the list of all members in etcd's format.
func (h *Host) cluster() string {
	var list []string
	for i, peer := range h.peers {
		list = append(list, fmt.Sprintf("n%d=http://%s", i+1, ports.Address(peer.way)))
	}
	return strings.Join(list, ",")
}

// Service is etcd as a [real.Service].
type Service struct{}

var _ real.Clustered = Service{}

// Name implements [real.Service].
func (Service) Name() string { return "etcd" }

// Clusters implements [real.Clustered].
func (Service) Clusters() bool { return daemon.CanFindSocketOwner() }

// Login implements [real.Service].
func (Service) Login(password string) real.Login {
	return real.Login{Username: user, Password: password}
}

// Speaks implements [real.Service].
func (Service) Speaks() proxy.Protocol { return Wire{} }

// Commands implements [real.Service].
func (Service) Commands() []string { return faults.EtcdRequests() }
