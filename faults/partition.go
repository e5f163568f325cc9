package faults

// Partition cuts links between clients and nodes: messages on them are lost in both directions, and
// neither end is notified. An empty list means all.
type Partition struct{ Clients, Nodes []string }

// Definition implements [Fault].
func (Partition) Definition() Definition {
	return Definition{
		Name: "partition", Word: "partition", Target: OnLinks,
		Example: "partition A from n1 n2", Summary: "lose everything between A and the nodes, in both directions; without nodes, from all",
		Synonyms: []string{"isolate", "disconnect", "cut"}, Group: "links",
		Shown:   &Shown{ShownCut, "cut off", []string{"heal"}},
		Nemeses: []Nemesis{{Name: "partition", Summary: "a client is cut off", End: "heal"}},
		form: formOf[Partition](func(f *Partition) []Field {
			return []Field{someClients(&f.Clients), nodesAfter("from", &f.Nodes)}
		}),
	}
}

func (f Partition) String() string { return line(f) }

// Heal restores the links that [Partition] and [Timeout] cut. Without lists it restores every link,
// including the links between nodes that [PartitionNodes] cut.
type Heal struct{ Clients, Nodes []string }

// Definition implements [Fault].
func (Heal) Definition() Definition {
	return Definition{
		Name: "heal", Word: "heal", Target: OnLinks,
		Example: "heal A from n1 n2", Summary: "mend what partition and timeout cut; without names, everything",
		Synonyms: []string{"reconnect", "mend"}, Group: "links", EndsOnly: true,
		form: formOf[Heal](func(f *Heal) []Field {
			return []Field{clientList(&f.Clients), nodesAfter("from", &f.Nodes)}
		}),
	}
}

func (f Heal) String() string { return line(f) }
