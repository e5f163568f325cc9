package scenarios

import (
	"cmp"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/lockfault/lockfault/checker"
	"github.com/lockfault/lockfault/faults"
	"github.com/lockfault/lockfault/faults/topology"
)

// dryRun plays the faults of nodes before anybody does, and so finds those that
// nobody could do. Where it can't know which replica is promoted it plays on with
// each. What it can't know at all it lets pass: which node the quorum's is.
type dryRun struct {
	cfg      topology.Config
	quorum   string
	quorums  *regexp.Regexp  // matches that node, and its servers, which scripts have no name for
	unsure   map[string]bool // nodes, by name, of which it doesn't know how they are
	befell   map[string][]faults.Fault
	branches map[string][]*branch // what may have become of each node
}

// mostWays is how many ways a node may have gone before they are too many to
// follow, and mostFaults how many faults may have befallen it on the way where
// there are several: each new way is played from the beginning.
const mostWays, mostFaults = 64, 100

func newAhead(s *Script) *dryRun {
	// The quorum's node is one more: it is any of the others or, for
	// strategies on other numbers of nodes, none.
	quorum := faults.NodeName(s.Nodes)
	return &dryRun{
		cfg:    topology.Config{Nodes: s.Nodes + 1, Quorum: quorum, Replicas: s.Replicas, TTL: s.TTL},
		quorum: quorum, quorums: regexp.MustCompile(quorum + `(/\d+)?\b`), unsure: map[string]bool{}, befell: map[string][]faults.Fault{}, branches: map[string][]*branch{},
	}
}

// befall returns why a fault is impossible, nil if nothing says so.
func (a *dryRun) befall(f faults.Fault) error {
	name := faults.TargetNode(f)
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
	if a.branches[node] == nil {
		a.branches[node] = []*branch{a.way(nil, nil)}
	}
	var impossible error // in the likeliest of the ways, which is the first
	var ways []*branch
	known := map[string]bool{} // how the node may be by now
	add := func(w *branch) {
		if how := w.how(node); !known[how] {
			known[how], ways = true, append(ways, w)
		}
	}
	for _, w := range a.branches[node] {
		if err := w.top.Apply(f); errors.Is(err, topology.ErrImpossible) {
			impossible = cmp.Or(impossible, err)
			continue
		}
		add(w)
		for other := 1; other < w.among; other++ {
			elected := append(slices.Clone(w.elected[:len(w.elected)-1]), other)
			add(a.way(append(slices.Clone(a.befell[node]), f), elected))
		}
		w.among = 0
	}
	if len(ways) == 0 {
		return errors.New(a.quorums.ReplaceAllString(impossible.Error(), faults.Quorum))
	}
	a.befell[node], a.branches[node] = append(a.befell[node], f), ways
	a.unsure[node] = len(ways) > mostWays || len(ways) > 1 && len(a.befell[node]) > mostFaults
	return nil
}

// A branch is one of those that a node may have gone.
type branch struct {
	top     *topology.Topology
	elected []int // whom each election made the primary
	next    int   // of those, in a game that is played again
	among   int   // how many there were to choose from, if the last fault was an election
}

// way plays what befell a node again, with the outcomes of elections that there
// were.
func (a *dryRun) way(befell []faults.Fault, elected []int) *branch {
	w := &branch{elected: elected}
	w.top = topology.New(a.cfg, nopDriver{way: w})
	for _, f := range befell {
		_ = w.top.Apply(f) // it could be done before
	}
	w.among = 0
	return w
}

// how says how the node is at the end of the way, as far as it decides what can
// befall it: ways that end alike go on alike.
func (w *branch) how(node string) string {
	var b strings.Builder
	for _, n := range w.top.Nodes {
		if n.Name != node {
			continue
		}
		for _, s := range n.Servers {
			fmt.Fprint(&b, s.Up, s.Paused, s.Leader == nil, s == n.Primary, s == n.Rival, " ")
		}
	}
	return b.String()
}

// nopDriver are the hands of no world.
type nopDriver struct {
	topology.Driver // nothing else is called: clients and links befall nobody here
	way             *branch
}

func (nopDriver) Record(checker.Event)                                     {}
func (nopDriver) Lead(*topology.Node) error                                { return nil }
func (nopDriver) Settle(*topology.Server)                                  {}
func (nopDriver) Observe(*topology.Server, checker.Cause)                  {}
func (nopDriver) Kill(*topology.Server) error                              { return nil }
func (nopDriver) Start(*topology.Server, bool) error                       { return nil }
func (nopDriver) Stop(*topology.Server) error                              { return nil }
func (nopDriver) Continue(*topology.Server) error                          { return nil }
func (nopDriver) Promote(*topology.Server) error                           { return nil }
func (nopDriver) Follow(*topology.Server) error                            { return nil }
func (nopDriver) Shape(*topology.Server) error                             { return nil }
func (nopDriver) Evict(*topology.Server) error                             { return nil }
func (nopDriver) SetClock(*topology.Server, topology.Clock) error          { return nil }
func (nopDriver) Operate(*topology.Server, checker.Cause, ...string) error { return nil }

func (b nopDriver) Elect(_ *topology.Node, among []*topology.Server) (*topology.Server, error) {
	w := b.way
	if w.next == len(w.elected) {
		w.elected, w.among = append(w.elected, 0), len(among)
	}
	w.next++
	return among[w.elected[w.next-1]], nil
}
