package topology_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/lockfault/lockfault/checker"
	"github.com/lockfault/lockfault/faults"
	"github.com/lockfault/lockfault/faults/topology"
)

// cutter is a driver that records the cuts of links between nodes and does nothing else.
type cutter struct {
	topology.Driver
	did []string
}

func (c *cutter) Record(e checker.Event) { c.did = append(c.did, "told "+e.Text) }

func (c *cutter) Mend([]topology.Link) {}

func (c *cutter) CutNodes(pairs []topology.Pair) error { return c.do("cut", pairs) }

func (c *cutter) MendNodes(pairs []topology.Pair) error { return c.do("mended", pairs) }

func (c *cutter) do(what string, pairs []topology.Pair) error {
	for _, p := range pairs {
		what += fmt.Sprintf(" %s-%s", p.A, p.B)
	}
	c.did = append(c.did, what)
	return nil
}

func TestNodesAreCutOff(t *testing.T) {
	cut := func(nodes string, from ...string) faults.Fault {
		return faults.PartitionNodes{Nodes: strings.Fields(nodes), From: from}
	}
	heal := func(nodes string, from ...string) faults.Fault {
		return faults.HealNodes{Nodes: strings.Fields(nodes), From: from}
	}
	for _, test := range []struct {
		name  string
		nodes int
		apply []faults.Fault
		did   []string
	}{
		{"one from all", 3, []faults.Fault{cut("n2")}, []string{"told partition n2", "cut n1-n2 n2-n3"}},
		{"one from one", 3, []faults.Fault{cut("n3", "n1")}, []string{"told partition n3 from n1", "cut n1-n3"}},
		{"two from one", 3, []faults.Fault{cut("n1 n2", "n3")}, []string{"told partition n1 n2 from n3", "cut n1-n3 n2-n3"}},
		{"each from all", 3, []faults.Fault{cut("n1 n2 n3")}, []string{"told partition n1 n2 n3", "cut n1-n2 n1-n3 n2-n3"}},
		{"the one in the middle", 5, []faults.Fault{cut("n1", "quorum")}, []string{"told partition n1 from quorum", "cut n1-n3"}},
		{"mended", 3, []faults.Fault{cut("n1"), heal("n1", "n3"), heal("n1"), heal("n1")},
			[]string{"told partition n1", "cut n1-n2 n1-n3", "told heal n1 from n3", "mended n1-n3", "told heal n1", "mended n1-n2", "told heal n1"}},
		{"all mended", 3, []faults.Fault{cut("n1"), faults.Heal{Nodes: []string{"n1"}}, faults.Heal{Clients: []string{"A"}}, faults.Heal{}, faults.Heal{}},
			[]string{"told partition n1", "cut n1-n2 n1-n3", "told heal from n1", "told heal A", "told heal", "mended n1-n2 n1-n3", "told heal"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			driver := &cutter{}
			top := topology.New(topology.Config{Nodes: test.nodes, Peers: true}, driver)
			for _, f := range test.apply {
				if err := top.Apply(f); err != nil {
					t.Fatal(err)
				}
			}
			if !slices.Equal(driver.did, test.did) {
				t.Errorf("got %q\nwant %q", driver.did, test.did)
			}
		})
	}
	driver := &cutter{}
	top := topology.New(topology.Config{Nodes: 3}, driver)
	for _, f := range []faults.Fault{cut("n1"), heal("n1")} {
		if err := top.Apply(f); !errors.Is(err, faults.ErrUnsupported) || len(driver.did) > 0 {
			t.Errorf("where nodes don't talk to one another %q: %v, %q", f, err, driver.did)
		}
	}
	// A node cut off only from itself would appear to have survived a partition, so that fault must
	// be refused.
	for nodes, f := range map[int]faults.Fault{3: cut("n2", "quorum"), 1: cut("n1")} {
		top := topology.New(topology.Config{Nodes: nodes, Peers: true}, driver)
		if err := top.Apply(f); !errors.Is(err, topology.ErrImpossible) || len(driver.did) > 0 {
			t.Errorf("%q of %d nodes: %v, %q", f, nodes, err, driver.did)
		}
	}
	top = topology.New(topology.Config{Nodes: 3, Peers: true}, driver)
	for i, want := range []bool{true, true, false} { // with two others, one, none
		if i > 0 {
			if err := top.Apply(cut("n1", top.Nodes[i].Name)); err != nil {
				t.Fatal(err)
			}
		}
		if got := top.Together(top.Nodes[0]); got != want {
			t.Errorf("cut off from %d others a node is one of a majority: %t", i, got)
		}
	}
	if !top.Together(top.Nodes[1]) {
		t.Error("the two others are no majority")
	}
	top.Nodes[2].Primary.Up = false
	if top.Together(top.Nodes[1]) {
		t.Error("one who is dead belongs to a majority")
	}
}
