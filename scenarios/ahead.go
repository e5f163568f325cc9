package scenarios

import (
	"errors"
	"slices"
	"strings"

	"github.com/lockfault/lockfault/checker"
	"github.com/lockfault/lockfault/faults"
	"github.com/lockfault/lockfault/faults/topology"
)

// ahead plays the faults of nodes before anybody does, and so finds those that
// nobody could do. Where it can't know which replica is promoted it plays on with
// each. What it can't know at all it lets pass: which node the quorum's is.
type ahead struct {
	cfg    topology.Config
	quorum string
	unsure map[string]bool // nodes, by name, of which it doesn't know how they are
	befell map[string][]faults.Fault
	ways   map[string][]*way // what may have become of each node
}

// mostWays is how many ways a node may have gone before they are too many to
// follow.
const mostWays = 64

func newAhead(s *Script) *ahead {
	// The quorum's node is one more: it is any of the others or, for
	// strategies on other numbers of nodes, none.
	quorum := faults.NodeName(s.Nodes)
	return &ahead{
		cfg:    topology.Config{Nodes: s.Nodes + 1, Quorum: quorum, Replicas: s.Replicas, TTL: s.TTL},
		quorum: quorum, unsure: map[string]bool{}, befell: map[string][]faults.Fault{}, ways: map[string][]*way{},
	}
}

// befall returns why a fault is impossible, nil if nothing says so.
func (a *ahead) befall(f faults.Fault) error {
	name := faults.NodeOf(f)
	if name == "" {
		return nil
	}
	node := nodeOf(name)
	if node == faults.Quorum {
		node = a.quorum
	}
	// What befalls the quorum's node may befall any other, and the reverse.
	for i := range a.cfg.Nodes {
		n := faults.NodeName(i)
		a.unsure[n] = a.unsure[n] || (n == a.quorum) != (node == a.quorum)
	}
	if a.unsure[node] {
		return nil
	}
	if a.ways[node] == nil {
		a.ways[node] = []*way{a.way(nil, nil)}
	}
	var impossible error
	var ways []*way
	for _, w := range a.ways[node] {
		if err := w.top.Apply(f); errors.Is(err, topology.ErrImpossible) {
			impossible = err
			continue
		}
		ways = append(ways, w)
		for other := 1; other < w.among; other++ {
			elected := append(slices.Clone(w.elected[:len(w.elected)-1]), other)
			ways = append(ways, a.way(append(slices.Clone(a.befell[node]), f), elected))
		}
		w.among = 0
	}
	if len(ways) == 0 {
		return errors.New(strings.ReplaceAll(impossible.Error(), a.quorum+"/", faults.Quorum+"/"))
	}
	a.befell[node], a.ways[node] = append(a.befell[node], f), ways
	a.unsure[node] = len(ways) > mostWays
	return nil
}

// A way is one of those that a node may have gone.
type way struct {
	top     *topology.Topology
	elected []int // whom each election made the primary
	next    int   // of those, in a game that is played again
	among   int   // how many there were to choose from, if the last fault was an election
}

// way plays what befell a node again, with the outcomes of elections that there
// were.
func (a *ahead) way(befell []faults.Fault, elected []int) *way {
	w := &way{elected: elected}
	w.top = topology.New(a.cfg, blind{way: w})
	for _, f := range befell {
		_ = w.top.Apply(f) // it could be done before
	}
	w.among = 0
	return w
}

// blind are the hands of no world.
type blind struct {
	topology.Hands // nothing else is called: clients and links befall nobody here
	way            *way
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

func (b blind) Elect(_ *topology.Node, among []*topology.Server) (*topology.Server, error) {
	w := b.way
	if w.next == len(w.elected) {
		w.elected, w.among = append(w.elected, 0), len(among)
	}
	w.next++
	return among[w.elected[w.next-1]], nil
}
