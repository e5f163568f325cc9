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

// dryRun applies the node faults of a script to a model of the nodes, and so finds impossible
// faults when the script is parsed. If the promoted replica is unknown, dryRun continues with every
// possibility. Faults that depend on the identity of the quorum's node are accepted without a
// check.
type dryRun struct {
	cfg      topology.Config
	quorum   string
	quorums  *regexp.Regexp  // matches the name of that node and its servers, for which scripts have no name
	unsure   map[string]bool // nodes, by name, whose state is unknown
	befell   map[string][]faults.Fault
	branches map[string][]*branch // the possible states of each node
}

// mostWays is the maximum number of possible states of a node to follow. mostFaults is the maximum
// number of faults of a node with several possible states, because each new branch replays all
// faults from the beginning.
const mostWays, mostFaults = 64, 100

func newAhead(s *Script) *dryRun {
	// The quorum's node is an additional node: it may be any of the other nodes or, for strategies
	// with other numbers of nodes, none of them.
	quorum := faults.NodeName(s.Nodes)
	return &dryRun{
		cfg:    topology.Config{Nodes: s.Nodes + 1, Quorum: quorum, Replicas: s.Replicas, TTL: s.TTL},
		quorum: quorum, quorums: regexp.MustCompile(quorum + `(/\d+)?\b`), unsure: map[string]bool{}, befell: map[string][]faults.Fault{}, branches: map[string][]*branch{},
	}
}

// befall applies a fault and returns the reason if it is impossible, or nil.
func (a *dryRun) befall(f faults.Fault) error {
	name := faults.TargetNode(f)
	if name == "" {
		return nil
	}
	node := nodeOf(name)
	if node == faults.Quorum {
		node = a.quorum
	}
	// A fault of the quorum's node may affect any other node, and the reverse.
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
	var impossible error // reason in the first branch, which is the most likely one
	var ways []*branch
	known := map[string]bool{} // states of the node that are already covered
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

// branch is one possible history of a node.
type branch struct {
	top     *topology.Topology
	elected []int // the choice of each election
	next    int   // index of the next election in a replay
	among   int   // number of candidates, if the last fault was an election
}

// way replays the faults of a node with the given outcomes of elections.
func (a *dryRun) way(befell []faults.Fault, elected []int) *branch {
	w := &branch{elected: elected}
	w.top = topology.New(a.cfg, nopDriver{way: w})
	for _, f := range befell {
		_ = w.top.Apply(f) // it was possible before
	}
	w.among = 0
	return w
}

// how returns the state of the node at the end of the branch, as far as it affects which faults are
// possible. Branches with equal states have equal futures.
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

// nopDriver is a topology.Driver without a world: its methods do nothing except choose the
// primaries of elections.
type nopDriver struct {
	topology.Driver // no other method is called: faults of clients and links are not applied here
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
