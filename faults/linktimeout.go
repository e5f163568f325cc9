package faults

// Timeout cuts links as [Partition] does, but new connections can be made. Each connection is closed
// in order, at both ends, After the later of its creation and the start of the fault. The later of a
// Partition and a Timeout on one link applies.
type Timeout struct {
	Clients, Nodes []string
	After          Span
}

// Definition implements [Fault].
func (Timeout) Definition() Definition {
	return Definition{
		Name: "timeout", Word: "timeout", Target: OnLinks,
		Example: "timeout A from n1 after 0.5ttl", Summary: "lose everything between A and n1, and close each connection after that time",
		Group: "links",
		Shown: &Shown{ShownCut, "cut off later", []string{"heal"}},
		form: formOf[Timeout](func(f *Timeout) []Field {
			return []Field{someClients(&f.Clients), nodesAfter("from", &f.Nodes), {Keyword: "after", Value: SpanField{&f.After, PositiveSpan}}}
		}),
	}
}

func (f Timeout) String() string { return line(f) }
