// Package zookeeper is a host of ZooKeeper servers that are processes of this machine: members of one
// ensemble, as many as a strategy has nodes.
//
// What comes in is [real.ServerSpec]; what goes out is addresses on loopback, where nobody reads or writes
// anything without the password. They end with the host's Close, and with this process however it ends, and
// keep everything in one temporary directory. The package knows nothing of faults, links or clients.
package zookeeper

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/lockfault/lockfault/faults/daemon"
	"github.com/lockfault/lockfault/faults/real"
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
	options Options
	peers   []peer        // n1 to nN
	begun   chan struct{} // closed when the process of n1 is about to be started

	mu      sync.Mutex
	members []*server
}

// A peer is where a member listens for the others.
type peer struct{ data, election int } // ports

var _ real.Host = (*Host)(nil)

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
	h := &Host{Host: base, options: options, begun: make(chan struct{})}
	for range max(1, options.Members) {
		data, err := h.Ports().Take()
		election, errToo := h.Ports().Take()
		if err := errors.Join(err, errToo); err != nil {
			return nil, errors.Join(fmt.Errorf("zookeeper: %w", err), h.Close())
		}
		h.peers = append(h.peers, peer{data, election})
	}
	if err := writeLogging(h.Dir()); err != nil {
		return nil, errors.Join(fmt.Errorf("zookeeper: %w", err), h.Close())
	}
	return h, nil
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
	if s.Daemon, err = h.Add(spec.Name, daemon.Program{Command: s.command, Answers: s.answers, PortTaken: "Address already in use", Says: says}); err != nil {
		return nil, fmt.Errorf("zookeeper: start %s: %w", spec.Name, err)
	}
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

var _ real.Service = Service{}

// Name implements [real.Service].
func (Service) Name() string { return "zookeeper" }

// Login implements [real.Service]: as user and password of ZooKeeper's scheme "digest".
func (Service) Login(password string) real.Login {
	return real.Login{Username: user, Password: password}
}

// MovesClocks implements [real.Clocked].
func (Service) MovesClocks() bool { return true }
