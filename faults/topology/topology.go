// Package topology is the one state machine of what a script can know of the
// servers, their clients and the ways between them: who leads, who follows
// whom, what is up, stopped, cut off, split or slowed, what each clock shows,
// what a fault means in each state, and which faults are impossible then.
//
// Faults come in through [Topology.Apply]; what is to be done about them goes
// out to the [Driver] of a world, one deed after the other, and so do the
// events that tell of them. A world carries out and reports what it sees; it
// decides nothing of its own. The parser of scripts plays the same machine
// without a world, and so knows beforehand what is impossible.
//
// The package may import faults and checker only.
package topology

import (
	"errors"
	"fmt"
	"time"

	"github.com/lockfault/lockfault/checker"
	"github.com/lockfault/lockfault/faults"
)

// ErrImpossible says that nobody could do a fault as things are, in no world:
// an operator's order to a server that is down, for one. The sentence around it
// says why, and what to do first.
var ErrImpossible = errors.New("impossible")

// Config is what a topology is made from.
type Config struct {
	// Nodes is how many independent nodes there are, Replicas how many
	// replicas each has.
	Nodes, Replicas int
	// Quorum is the node that completes a majority; empty means the one in
	// the middle.
	Quorum string
	// TTL is the lease; faults that speak in TTLs mean this one.
	TTL time.Duration
	// Seed decides the jitter, Base and Jitter are the latency of every link
	// until a fault changes it, one way.
	Seed         uint64
	Base, Jitter time.Duration
	// Peers says that nodes talk to one another: they are the members of a cluster, and the hands can cut
	// the ways between them.
	Peers bool
	// Promoted says that servers are promoted by somebody else, whom the
	// world only watches: after the crash of a primary [Driver.Elect] waits
	// for it.
	Promoted bool
}

// A Topology is the state of everything that faults befall. Make one with
// [New]. Not safe for concurrent use; the hands are called by Apply's caller.
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

// New returns the topology in which every server is up, and the first of each
// node is its primary.
func New(cfg Config, hands Driver) *Topology {
	t := &Topology{Gate: faults.NewGate(cfg.Nodes), Links: newLinks(cfg), cfg: cfg, driver: hands, clients: map[string]*Client{}, apart: map[Pair]bool{}}
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

// Apply decides what the fault means now, tells of it, and has it carried out.
// An error that wraps [ErrImpossible] says that it can't be, and that nothing
// was done; any other is the hands' own.
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
	if name := faults.TargetClient(f); name != "" {
		return t.applyToClient(f, t.Client(name))
	}
	if name := faults.TargetNode(f); name != "" {
		return t.applyToNode(f, name)
	}
	if faults.BetweenNodes(f) {
		return t.applyBetween(f)
	}
	return t.applyToLinks(f)
}

func (t *Topology) record(f faults.Fault, client, node string) {
	t.driver.Record(checker.Event{Kind: checker.Fault, Client: client, Node: node, Text: f.String()})
}

// impossible says that nobody can do that.
func impossible(f faults.Fault, format string, args ...any) error {
	return fmt.Errorf("%q is %w: %s", f, ErrImpossible, fmt.Sprintf(format, args...))
}
