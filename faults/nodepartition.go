package faults

// PartitionNodes cuts each of Nodes, at least one, off from each of From, in both directions. An empty
// From means all other nodes. Data on a cut link waits, and neither end is notified. The nodes must
// communicate as members of a cluster.
type PartitionNodes struct{ Nodes, From []string }

// Definition implements [Fault].
func (PartitionNodes) Definition() Definition {
	return Definition{
		Name: "node-partition", Word: "partition", Target: BetweenNodes,
		Example: "partition n1 from n2 n3", Summary: "cut n1 off from the other members of its cluster; without from, from all",
		Requires: NeedsPeers, Group: "links",
		Shown: &Shown{ShownCut, "cut off", []string{"heal"}},
		form: formOf[PartitionNodes](func(f *PartitionNodes) []Field {
			return []Field{nodeList(&f.Nodes), nodesAfter("from", &f.From)}
		}),
	}
}

func (f PartitionNodes) String() string { return line(f) }

// HealNodes restores the links that [PartitionNodes] cut.
type HealNodes struct{ Nodes, From []string }

// Definition implements [Fault].
func (HealNodes) Definition() Definition {
	return Definition{
		Name: "node-heal", Word: "heal", Target: BetweenNodes,
		Example: "heal n1 from n2 n3", Summary: "mend what partition cut between n1 and the other members; without from, all",
		Requires: NeedsPeers, Group: "links", EndsOnly: true,
		form: formOf[HealNodes](func(f *HealNodes) []Field {
			return []Field{nodeList(&f.Nodes), nodesAfter("from", &f.From)}
		}),
	}
}

func (f HealNodes) String() string { return line(f) }
