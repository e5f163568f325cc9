package faults

// NodeClock moves the clock of a node or of a single server by By, once.
type NodeClock struct {
	Node string
	By   Span
}

// Definition implements [Fault].
func (NodeClock) Definition() Definition {
	return Definition{
		Name: "node-clock", Word: "clock", Target: OnServer,
		Example: "n1 clock -2ttl", Summary: "move n1's clock, once, forward or back",
		Requires: NeedsClock, Group: "node",
		Nemeses: []Nemesis{{Name: "server-clock", Summary: "a node's clock jumps", Jump: true}},
		Searched: []Searched{
			{"node-clock", "a node's clock jumps ahead by 1.1 TTLs", []string{"clock +1.1ttl"}},
			{"node-clock-back", "a node's clock goes back by 2.1 TTLs", []string{"clock -2.1ttl"}},
		},
		form: formOf[NodeClock](func(f *NodeClock) []Field {
			return []Field{target(&f.Node), spanOf(&f.By, SignedSpan)}
		}),
	}
}

func (f NodeClock) String() string { return line(f) }
