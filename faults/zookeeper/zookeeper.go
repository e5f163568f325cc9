// Package zookeeper is a host of ZooKeeper servers that are processes of this machine: members of one
// ensemble, as many as a strategy has nodes.
//
// What comes in is [real.ServerSpec]; what goes out is addresses on loopback, where nobody reads or writes
// anything without the password. They end with the host's Close, and with this process however it ends, and
// keep everything in one temporary directory. [Wire] is what is spoken with them, for links that look at it. The
// package does no faults, and knows no clients.
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

// tick is the unit in which ZooKeeper counts: it is shipped with one of 2 s. Sessions are looked at once in a tick
// and last for two at least, and a leader asks its followers twice in one who is still there. So a session
// of a second lives for 1 to 1.15 s after a server has heard of its client, and not for up to 4 s.
//
// What members bear of each other is counted in ticks, too, and keeps its length: a leader and a follower that
// hear nothing of each other for silence part, of the 10 s that ZooKeeper is shipped with a tenth. Less
// would be an election each time that the machine is busy.
const (
	tick    = 100 * time.Millisecond
	silence = time.Second
	joining = 10 * time.Second // until a member has what the leader has
)

// startLimit is how long a server may take until it answers.
const startLimit = 60 * time.Second

// Options say how a [Host] starts servers.
type Options struct {
	// Program is what is started, as [Find] finds it.
	Program Program
	// Members is how many servers there will be: n1 to nN, in Node of [real.ServerSpec]. At least 1.
	Members int
	// Dir is where the host's temporary directory is made; empty means [os.TempDir].
	Dir string
}

// A Host starts the members of an ensemble. [New] makes one. Safe for concurrent use.
type Host struct {
	*daemon.Host
	*daemon.PeerProxy
	options Options
	peers   []peer        // where n1 to nN listen for one another
	begun   chan struct{} // closed when the process of n1 is about to be started

	mu          sync.Mutex
	peerProxies []peer // see way
	members     []*server
}

// A peer is two ports of a member: at the one a leader tells those that follow what it has, and the other is for elections.
type peer struct{ data, election int }

var _ real.ClusterHost = (*Host)(nil)

// dirPrefix is how the name of a host's directory begins.
const dirPrefix = "lockfault-zookeeper-"

// Sweep removes the directories of hosts whose processes died without a word, as [daemon.Sweep] says.
func Sweep(parent string) { daemon.Sweep(parent, dirPrefix) }

// New makes the host's directory. It starts nothing.
func New(options Options) (*Host, error) {
	base, err := daemon.New(daemon.Options{Name: "zookeeper", Prefix: dirPrefix, Dir: options.Dir, Limit: startLimit})
	if err != nil {
		return nil, err
	}
	h := &Host{Host: base, PeerProxy: base.NewWays(), options: options, begun: make(chan struct{})}
	if err := h.open(max(1, options.Members)); err != nil {
		return nil, errors.Join(fmt.Errorf("zookeeper: %w", err), h.Close())
	}
	if err := writeLogging(h.Dir()); err != nil {
		return nil, errors.Join(fmt.Errorf("zookeeper: %w", err), h.Close())
	}
	return h, nil
}

// open finds ports for so many members, and opens the ways to them. Each member has ways of its own, for who has the smaller
// number in ZooKeeper closes what it has dialled as soon as it has said its name, and nobody could find out any
// more whose that was.
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

// way returns where one member reaches another, by their places among the peers; itself it reaches where it listens.
func (h *Host) way(from, to int) peer {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.peerProxies[from*len(h.peers)+to]
}

// Start implements [real.Host]. A member answers when a majority is there: the others must be started
// at the same time.
func (h *Host) Start(ctx context.Context, spec real.ServerSpec) (real.Server, error) {
	ctx, leave, err := h.Enter(ctx)
	if err != nil {
		return nil, fmt.Errorf("zookeeper: start %s: %w", spec.Name, err)
	}
	defer leave()
	s := &server{host: h}
	if s.Member, err = h.Member(spec, len(h.peers), "", withoutData); err != nil {
		return nil, fmt.Errorf("zookeeper: start %s: %w", spec.Name, err)
	}
	if s.Daemon, err = h.Add(spec.Name, daemon.Program{Command: s.command, Answers: s.answers, PortTaken: "Address already in use", Reason: failureReason, Close: s.close}); err != nil {
		return nil, fmt.Errorf("zookeeper: start %s: %w", spec.Name, err)
	}
	h.Join(s.Number, s.Daemon)
	h.mu.Lock()
	h.members = append(h.members, s)
	h.mu.Unlock()
	if err := s.start(ctx); err != nil {
		return nil, fmt.Errorf("zookeeper: start %s: %w", spec.Name, err)
	}
	return s, nil
}

// all returns the members that were started.
func (h *Host) all() []*server {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Clone(h.members)
}

// Service is how worlds speak with ZooKeeper.
type Service struct{}

var _ real.Clustered = Service{}

// Name implements [real.Service].
func (Service) Name() string { return "zookeeper" }

// Clusters implements [real.Clustered].
func (Service) Clusters() bool { return true }

// Login implements [real.Service]: as user and password of ZooKeeper's scheme "digest".
func (Service) Login(password string) real.Login {
	return real.Login{Username: user, Password: password}
}

// Speaks implements [real.Service].
func (Service) Speaks() proxy.Protocol { return Wire{} }

// Commands implements [real.Service].
func (Service) Commands() []string { return faults.ZooKeeperRequests() }

// MovesClocks implements [real.Clocked]. What Java waits for it asks the kernel to wait for, until a moment that it has read off its
// clock: with one that runs at another rate it would wait too long, or not at all.
func (Service) MovesClocks() (set, drift bool) { return true, false }
