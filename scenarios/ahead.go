package scenarios

import (
	"errors"
	"strings"

	"github.com/lockfault/lockfault/checker"
	"github.com/lockfault/lockfault/faults"
	"github.com/lockfault/lockfault/faults/topology"
)

// ahead plays the faults of nodes before anybody does, and so finds those that
// nobody could do. What it can't know it lets pass: which replica a failover
// promotes, and which node the quorum's is.
type ahead struct {
	top    *topology.Topology
	unsure map[string]bool // nodes, by name, of which it doesn't know how they are
}

func newAhead(s *Script) *ahead {
	a := &ahead{unsure: map[string]bool{}}
	// The quorum's node is one more: it is any of the others or, for
	// strategies on other numbers of nodes, none.
	a.top = topology.New(topology.Config{Nodes: s.Nodes + 1, Quorum: faults.NodeName(s.Nodes), Replicas: s.Replicas, TTL: s.TTL}, blind{a: a})
	return a
}

// befall returns why a fault is impossible, nil if nothing says so.
func (a *ahead) befall(f faults.Fault) error {
	name := faults.NodeOf(f)
	if name == "" {
		return nil
	}
	quorum := a.top.Nodes[len(a.top.Nodes)-1].Name
	node := nodeOf(name)
	if node == faults.Quorum {
		node = quorum
	}
	// What befalls the quorum's node may befall any other, and the reverse.
	for _, n := range a.top.Nodes {
		a.unsure[n.Name] = a.unsure[n.Name] || (n.Name == quorum) != (node == quorum)
	}
	if a.unsure[node] {
		return nil
	}
	if err := a.top.Apply(f); errors.Is(err, topology.ErrImpossible) {
		return errors.New(strings.ReplaceAll(err.Error(), quorum+"/", faults.Quorum+"/"))
	}
	return nil
}

// blind are the hands of no world.
type blind struct {
	topology.Hands // nothing else is called: clients and links befall nobody here
	a              *ahead
}

func (blind) Tell(checker.Event)                                       {}
func (blind) Lead(*topology.Node) error                                { return nil }
func (blind) Settle(*topology.Server)                                  {}
func (blind) Observe(*topology.Server, checker.Cause)                  {}
func (blind) Kill(*topology.Server) error                              { return nil }
func (blind) Start(*topology.Server, bool) error                       { return nil }
func (blind) Stop(*topology.Server) error                              { return nil }
func (blind) Continue(*topology.Server) error                          { return nil }
func (blind) Promote(*topology.Server) error                           { return nil }
func (blind) Follow(*topology.Server) error                            { return nil }
func (blind) Shape(*topology.Server) error                             { return nil }
func (blind) Evict(*topology.Server) error                             { return nil }
func (blind) SetClock(*topology.Server, topology.Clock) error          { return nil }
func (blind) Operate(*topology.Server, checker.Cause, ...string) error { return nil }

func (b blind) Elect(n *topology.Node, among []*topology.Server) (*topology.Server, error) {
	b.a.unsure[n.Name] = len(among) > 1
	return among[0], nil
}
