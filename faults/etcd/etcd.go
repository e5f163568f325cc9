// Package etcd is a host of etcd servers that are processes of this machine: members of one
// cluster, as many as a strategy has nodes.
//
// What comes in is [real.ServerSpec]; what goes out is addresses on loopback, where the servers
// ask for a password. They end with the host's Close, and with this process however it ends, and
// keep everything in one temporary directory. The package knows nothing of faults, links or clients.
package etcd

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/lockfault/lockfault/faults"
	"github.com/lockfault/lockfault/faults/real"
	"github.com/lockfault/lockfault/faults/real/daemon"
	"github.com/lockfault/lockfault/faults/real/proxy"
	"github.com/lockfault/lockfault/internal/ports"
)

// How often a leader says that it is there, and after how long a silence there is another: a
// half and a quarter of what etcd is shipped with, so that leases of a second are possible, since
// none is shorter than one and a half elections.
const (
	heartbeat = 50 * time.Millisecond
	election  = 500 * time.Millisecond
)

// startLimit is how long a server may take until it answers.
const startLimit = 30 * time.Second

// Options say how a [Host] starts servers.
type Options struct {
	// Binary is the server program, as [Find] finds it.
	Binary string
	// Members is how many servers there will be: n1 to nN, in Node of [real.ServerSpec]. At least 1.
	Members int
	// Dir is where the host's temporary directory is made; empty means [os.TempDir].
	Dir string
}

// A Host starts the members of a cluster. [New] makes one. Safe for concurrent use.
type Host struct {
	*daemon.Host
	*daemon.PeerProxy
	options Options
	token   string // that tells this cluster from others
	tokens  string // how its members know their clients
	peers   []peer // n1 to nN

	mu      sync.Mutex
	members []*server
}

// A peer is where a member listens for the others, and where they are told that it does.
type peer struct{ port, way int }

var _ real.ClusterHost = (*Host)(nil)

// dirPrefix is how the name of a host's directory begins.
const dirPrefix = "lockfault-etcd-"

// Sweep removes the directories of hosts whose processes died without a word, as [daemon.Sweep] says.
func Sweep(parent string) { daemon.Sweep(parent, dirPrefix) }

// New makes the host's directory. It starts nothing.
func New(options Options) (*Host, error) {
	base, err := daemon.New(daemon.Options{Name: "etcd", Prefix: dirPrefix, Dir: options.Dir, Limit: startLimit})
	if err != nil {
		return nil, err
	}
	h := &Host{Host: base, PeerProxy: base.NewWays(), options: options, token: rand.Text()}
	for i := range max(1, options.Members) {
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

// Start implements [real.Host]. A member answers when a majority is there: the others must be started
// at the same time.
func (h *Host) Start(ctx context.Context, spec real.ServerSpec) (real.Server, error) {
	ctx, leave, err := h.Enter(ctx)
	if err != nil {
		return nil, fmt.Errorf("etcd: start %s: %w", spec.Name, err)
	}
	defer leave()
	s := &server{host: h}
	if s.Member, err = h.Member(spec, len(h.peers), "it is linked statically", withoutData); err != nil {
		return nil, fmt.Errorf("etcd: start %s: %w", spec.Name, err)
	}
	if s.Daemon, err = h.Add(spec.Name, daemon.Program{Command: s.command, Answers: s.answers, PortTaken: "address already in use", Close: s.close}); err != nil {
		return nil, fmt.Errorf("etcd: start %s: %w", spec.Name, err)
	}
	h.Join(s.Number, s.Daemon)
	h.mu.Lock()
	h.members = append(h.members, s)
	h.mu.Unlock()
	if err := s.start(ctx); err != nil {
		return nil, fmt.Errorf("etcd: start %s: %w", spec.Name, err)
	}
	return s, nil
}

// cluster returns all members as etcd is told of them.
func (h *Host) cluster() string {
	var list []string
	for i, peer := range h.peers {
		list = append(list, fmt.Sprintf("n%d=http://%s", i+1, ports.Address(peer.way)))
	}
	return strings.Join(list, ",")
}

func (h *Host) all() []*server {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Clone(h.members)
}

// Service is how worlds speak with etcd.
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
