// Package zookeeper is a host of ZooKeeper servers that are processes of this machine: the members
// of one ensemble, one per node of the strategy.
//
// The input is a [real.ServerSpec]; the output is an address on loopback, where all reads and
// writes require the password. The servers end with the host's Close, and with this process however
// it ends, and keep all files in one temporary directory. [Wire] is their clients' protocol, for
// links that parse it. The package injects no faults, and must not depend on clients.
package zookeeper

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"
	"time"

	"github.com/lockfault/lockfault/faults"
	"github.com/lockfault/lockfault/faults/real"
	"github.com/lockfault/lockfault/faults/real/daemon"
	"github.com/lockfault/lockfault/faults/real/proxy"
	"github.com/lockfault/lockfault/internal/ports"
)

// tick is ZooKeeper's unit of time; the default is 2 s. Sessions are checked once per tick and last
// for at least two ticks, and a leader checks its followers twice per tick. A session of 1 s
// therefore lives for 1 s to 1.15 s after a server has received a message of its client, and not
// for up to 4 s.
//
// Limits between members are counted in ticks, too, and are converted to keep their length. A
// leader and a follower part after silence without a message, a tenth of ZooKeeper's default of 10
// s. A shorter time would cause an election each time the machine is busy.
const (
	tick    = 100 * time.Millisecond
	silence = time.Second
	joining = 10 * time.Second // until a member has the leader's data
)

// startLimit is the maximum time that a server may take until it answers.
const startLimit = 60 * time.Second

// Options configure how a [Host] starts servers.
type Options struct {
	// Program is the program to start, as returned by [Find].
	Program Program
	// Members is the number of servers: n1 to nN, in Node of [real.ServerSpec]. Less than 1 means
	// 1.
	Members int
	// Dir is where the host's temporary directory is made; empty means [os.TempDir].
	Dir string
}

// A Host starts the members of an ensemble. [New] makes one. It is safe for concurrent use.
type Host struct {
	*daemon.Cluster
	options Options
	peers   []peer        // where n1 to nN listen for one another
	begun   chan struct{} // closed just before the process of n1 starts

	mu          sync.Mutex
	peerProxies []peer // see way
}

// A peer holds two ports of a member: data, where a leader sends its data to followers, and
// election.
type peer struct{ data, election int }

var _ real.ClusterHost = (*Host)(nil)

// dirPrefix begins the name of a host's directory.
const dirPrefix = "lockfault-zookeeper-"

// Sweep removes the directories of hosts whose processes died without cleaning up, as
// [daemon.Sweep] specifies.
func Sweep(parent string) { daemon.Sweep(parent, dirPrefix) }

// New makes the host's directory. It starts no server.
func New(options Options) (*Host, error) {
	options.Members = max(1, options.Members)
	base, err := daemon.NewCluster(daemon.ClusterOptions{
		Options: daemon.Options{Name: "zookeeper", Prefix: dirPrefix, Dir: options.Dir, Limit: startLimit},
		Members: options.Members, NoEmpty: withoutData,
	})
	if err != nil {
		return nil, err
	}
	h := &Host{Cluster: base, options: options, begun: make(chan struct{})}
	if err := errors.Join(h.open(options.Members), writeLogging(h.Dir())); err != nil {
		return nil, errors.Join(fmt.Errorf("zookeeper: %w", err), h.Close())
	}
	return h, nil
}

// open takes ports for the members, and opens the ways between them. Each member has its own ways:
// a member with the smaller number in ZooKeeper closes a connection as soon as it has sent its
// name, so the owner of that connection could not be found any more.
func (h *Host) open(members int) error {
	for range members {
		data, err := h.Ports().Take()
		election, errToo := h.Ports().Take()
		if err := errors.Join(err, errToo); err != nil {
			return err
		}
		h.peers = append(h.peers, peer{data, election})
	}
	h.peerProxies = slices.Repeat([]peer{{}}, members*members)
	for from := range members {
		for to, at := range h.peers {
			if from != to {
				data, err := h.Between(from+1, to+1, at.data, nil)
				election, errToo := h.Between(from+1, to+1, at.election, func(r io.Reader, w io.Writer) error {
					return introduce(r, w, ports.Address(h.peers[from].election), ports.Address(h.way(to, from).election))
				})
				if err := errors.Join(err, errToo); err != nil {
					return err
				}
				at = peer{data, election}
			}
			h.mu.Lock()
			h.peerProxies[from*members+to] = at
			h.mu.Unlock()
		}
	}
	return nil
}

// way returns the ports at which one member reaches another, by their indexes in peers; a member
// reaches itself at its own ports.
func (h *Host) way(from, to int) peer {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.peerProxies[from*len(h.peers)+to]
}

// Start implements [real.Host]. A member answers only with a majority: start the other members at
// the same time.
func (h *Host) Start(ctx context.Context, spec real.ServerSpec) (real.Server, error) {
	s := &server{host: h}
	err := h.Begin(ctx, spec.Name, func(ctx context.Context) (err error) {
		program := daemon.Program{Command: s.command, Answers: s.answers, PortTaken: "Address already in use", Reason: failureReason, Close: s.close}
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

// Service is ZooKeeper as a [real.Service].
type Service struct{}

var _ real.Clustered = Service{}

// Name implements [real.Service].
func (Service) Name() string { return "zookeeper" }

// Clusters implements [real.Clustered].
func (Service) Clusters() bool { return true }

// Login implements [real.Service]. The login is a user and password of ZooKeeper's scheme "digest".
func (Service) Login(password string) real.Login {
	return real.Login{Username: user, Password: password}
}

// Speaks implements [real.Service].
func (Service) Speaks() proxy.Protocol { return Wire{} }

// Commands implements [real.Service].
func (Service) Commands() []string { return faults.ZooKeeperRequests() }

// MovesClocks implements [real.Clocked]. Java waits in the kernel until a moment that it computes
// from its own clock: with a clock at another rate it would wait too long, or not at all.
func (Service) MovesClocks() (set, drift bool) { return true, false }
