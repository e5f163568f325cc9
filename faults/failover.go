package faults

// Failover crashes a node's primary and promotes its most advanced replica, with the data that was
// replicated by then. Clients are routed to the new primary.
type Failover struct{ Node string }

// Definition implements [Fault].
func (Failover) Definition() Definition {
	return Definition{
		Name: "failover", Word: "failover", Target: OnNode,
		Example: "n1 failover", Summary: "crash n1's primary and promote its replica with what was replicated so far",
		Synonyms: []string{"promote", "elect"}, Requires: NeedsReplicas, Group: "replicas",
		Shown: &Shown{Appearance: ShownStopped, Label: "failed over"}, // of the server that was replaced
		Nemeses: []Nemesis{
			{Name: "failover", Summary: "a node's primary crashes, a replica is promoted, and the old primary restarts as its replica", End: "restart"},
		},
		form: formOf[Failover](func(f *Failover) []Field {
			return []Field{target(&f.Node)}
		}),
	}
}

func (f Failover) String() string { return line(f) }
