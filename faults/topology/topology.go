// Package topology is the state machine of servers, their clients and the links between them. The
// package tracks which server leads and follows which, which are up, stopped, cut off or split, how
// links are slowed, what each clock shows, what a fault means in each state, and which faults are
// impossible.
//
// Faults come in through [Topology.Apply]. The resulting actions go out to the [Driver] of a world,
// one after the other, and so do the events that record them. A world executes actions and reports
// what it observes; it decides nothing by itself. The parser of scripts runs the same machine
// without a world, and so detects impossible faults before a run.
//
// The package may import only faults and checker.
package topology

import (
	"errors"
	"fmt"
	"time"

	"github.com/lockfault/lockfault/checker"
	"github.com/lockfault/lockfault/faults"
)

// ErrImpossible reports that no world could apply a fault in the present state, such as an
// operator's command to a server that is down. The wrapping error states the reason and what to do
// first.
var ErrImpossible = errors.New("impossible")

// Config holds the parameters of a topology.
type Config struct {
	// Nodes is the number of independent nodes, and Replicas the number of replicas of each node.
	Nodes, Replicas int
	// Quorum is the node that completes a majority; empty means the middle node.
	Quorum string
	// TTL is the lease, to which faults with spans in TTLs refer.
	TTL time.Duration
	// Seed determines the jitter. Base and Jitter are the one-way latency of every link until a
	// fault changes it.
	Seed         uint64
	Base, Jitter time.Duration
	// Peers states that the nodes are the members of a cluster, communicate with each other, and
	// the driver can cut the links between them.
	Peers bool
	// Key is the lock's own key, which Evict removes.
	Key string
	// Promoted states that an external system promotes servers and the world only watches: after
	// the crash of a primary, [Driver.Elect] waits for the promotion.
	Promoted bool
}

// Topology is the state of everything that faults change. Create one with [New]. A Topology is not
// safe for concurrent use; it calls the Driver on the goroutine of the caller.
type Topology struct {
	Gate    *faults.Gate
	Nodes   []*Node
	Servers []*Server // of all nodes, each at its ID
	Links   Links

	cfg     Config
	driver  Driver
	clients map[string]*Client
	held    []Message
	apart   map[Pair]bool // nodes that are cut off from one another
}

// New returns a topology in which every server is up and the first server of each node is its
// primary.
func New(cfg Config, driver Driver) *Topology {
	t := &Topology{Gate: faults.NewGate(cfg.Nodes), Links: newLinks(cfg), cfg: cfg, driver: driver, clients: map[string]*Client{}, apart: map[Pair]bool{}}
	for i := range cfg.Nodes {
		n := &Node{Name: faults.NodeName(i), split: map[string]bool{}}
		for k := range 1 + cfg.Replicas {
			s := &Server{ID: len(t.Servers), Name: fmt.Sprintf("%s/%d", n.Name, k), Node: n, Up: true, Clock: trueTime}
			t.Servers = append(t.Servers, s)
			n.Servers = append(n.Servers, s)
			if k > 0 {
				s.Leader = n.Servers[0]
			}
		}
		n.Primary = n.Servers[0]
		t.Nodes = append(t.Nodes, n)
	}
	return t
}

// Apply decides what the fault means now, records the fault, and has the driver execute it. If the
// error wraps [ErrImpossible], the fault is impossible now and nothing was done. If it wraps
// [faults.ErrUnsupported], the topology does not have this fault. Any other error is from the
// driver.
func (t *Topology) Apply(f faults.Fault) error {
	switch f := f.(type) {
	case faults.Order:
		t.record(f, "", "")
		t.Gate.Add(f, t.cfg.TTL)
		return nil
	case faults.Pass:
		t.record(f, "", "")
		t.pass(f)
		return nil
	case faults.Clear:
		t.record(f, "", "")
		t.Gate.Clear(f.Clients)
		return nil
	}
	switch f.Definition().Target {
	case faults.OnClient:
		return t.applyToClient(f, t.Client(faults.TargetClient(f)))
	case faults.OnNode, faults.OnServer:
		return t.applyToNode(f, faults.TargetNode(f))
	case faults.BetweenNodes:
		return t.applyBetween(f)
	}
	return t.applyToLinks(f)
}

func (t *Topology) record(f faults.Fault, client, node string) {
	t.driver.Record(checker.Event{Kind: checker.Fault, Client: client, Node: node, Text: f.String()})
}

// impossible returns an error that wraps ErrImpossible, with the fault and the formatted reason.
func impossible(f faults.Fault, format string, args ...any) error {
	return fmt.Errorf("%q is %w: %s", f, ErrImpossible, fmt.Sprintf(format, args...))
}
