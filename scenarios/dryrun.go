package scenarios

import (
	"cmp"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

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
	applied  map[string][]faults.Fault
	branches map[string][]*branch // the possible states of each node
}

// maxBranches is the maximum number of possible states of a node to follow. maxFaults is the maximum
// number of faults of a node with several possible states, because each new branch replays all
// faults from the beginning.
const maxBranches, maxFaults = 64, 100

func newDryRun(s *Script) *dryRun {
	// The quorum's node is an additional node: it may be any of the other nodes or, for strategies
	// with other numbers of nodes, none of them.
	quorum := faults.NodeName(s.Nodes)
	return &dryRun{
		cfg:    topology.Config{Nodes: s.Nodes + 1, Quorum: quorum, Replicas: s.Replicas, TTL: s.TTL},
		quorum: quorum, quorums: regexp.MustCompile(quorum + `(/\d+)?\b`), unsure: map[string]bool{}, applied: map[string][]faults.Fault{}, branches: map[string][]*branch{},
	}
}

// apply applies a fault and returns the reason if it is impossible, or nil.
func (d *dryRun) apply(f faults.Fault) error {
	name := faults.TargetNode(f)
	if name == "" {
		return nil
	}
	node := nodeOf(name)
	if node == faults.Quorum {
		node = d.quorum
	}
	// A fault of the quorum's node may affect any other node, and the reverse.
	for i := range d.cfg.Nodes {
		n := faults.NodeName(i)
		d.unsure[n] = d.unsure[n] || (n == d.quorum) != (node == d.quorum)
	}
	if d.unsure[node] {
		return nil
	}
	if d.branches[node] == nil {
		d.branches[node] = []*branch{d.replay(nil, nil)}
	}
	var impossible error // reason in the first branch, which is the most likely one
	var branches []*branch
	known := map[string]bool{} // states of the node that are already covered
	add := func(w *branch) {
		if state := w.state(node); !known[state] {
			known[state], branches = true, append(branches, w)
		}
	}
	for _, w := range d.branches[node] {
		if err := w.top.Apply(f); errors.Is(err, topology.ErrImpossible) {
			impossible = cmp.Or(impossible, err)
			continue
		}
		add(w)
		for other := 1; other < w.among; other++ {
			elected := append(slices.Clone(w.elected[:len(w.elected)-1]), other)
			add(d.replay(append(slices.Clone(d.applied[node]), f), elected))
		}
		w.among = 0
	}
	if len(branches) == 0 {
		return errors.New(d.quorums.ReplaceAllString(impossible.Error(), faults.Quorum))
	}
	d.applied[node], d.branches[node] = append(d.applied[node], f), branches
	d.unsure[node] = len(branches) > maxBranches || len(branches) > 1 && len(d.applied[node]) > maxFaults
	return nil
}

// branch is one possible history of a node.
type branch struct {
	top     *topology.Topology
	elected []int // the choice of each election
	next    int   // index of the next election in a replay
	among   int   // number of candidates, if the last fault was an election
}

// replay replays the faults of a node with the given outcomes of elections.
func (d *dryRun) replay(past []faults.Fault, elected []int) *branch {
	w := &branch{elected: elected}
	w.top = topology.New(d.cfg, electingDriver{branch: w})
	for _, f := range past {
		_ = w.top.Apply(f) // it was possible before
	}
	w.among = 0
	return w
}

// state returns the state of the node at the end of the branch, as far as it affects which faults are
// possible. Branches with equal states have equal futures.
func (w *branch) state(node string) string {
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

// electingDriver does nothing except choose the primaries of elections.
type electingDriver struct {
	topology.NopDriver
	branch *branch
}

func (d electingDriver) Elect(_ *topology.Node, among []*topology.Server) (*topology.Server, error) {
	w := d.branch
	if w.next == len(w.elected) {
		w.elected, w.among = append(w.elected, 0), len(among)
	}
	w.next++
	return among[w.elected[w.next-1]], nil
}
