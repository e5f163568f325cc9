package faults

// Split promotes a replica of a node while the old primary stays up. The named clients are routed to
// the new primary; all others stay with the old one.
type Split struct {
	Node    string
	Clients []string
}

// Definition implements [Fault].
func (Split) Definition() Definition {
	return Definition{
		Name: "split", Word: "split", Target: OnNode,
		Example: "n1 split C D", Summary: "promote n1's replica for C and D while all others stay with the old primary",
		Requires: NeedsReplicas, Group: "replicas",
		Shown: &Shown{ShownOdd, "split", []string{"join"}},
		form: formOf[Split](func(f *Split) []Field {
			return []Field{target(&f.Node), {Value: ClientsField{&f.Clients, "a client that goes to the new primary"}}}
		}),
	}
}

func (f Split) String() string { return line(f) }

// Join ends a split: the old primary becomes a replica of the new one and loses the data that only the
// old primary had. All clients are routed to the new primary.
type Join struct{ Node string }

// Definition implements [Fault].
func (Join) Definition() Definition {
	return Definition{
		Name: "join", Word: "join", Target: OnNode,
		Example: "n1 join", Summary: "end a split: the old primary follows the new one and forgets what only it had",
		Synonyms: []string{"rejoin", "merge"}, Requires: NeedsReplicas, Group: "replicas",
		Reverses: []string{"split"}, Reversed: "split", EndsOnly: true,
		form: formOf[Join](func(f *Join) []Field {
			return []Field{target(&f.Node)}
		}),
	}
}

func (f Join) String() string { return line(f) }
