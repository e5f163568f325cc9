package faults

// Bandwidth limits each connection between clients and nodes, in each direction, to Rate. A message
// occupies the line for its length divided by Rate, after the messages before it, and then takes its
// latency. The zero Rate removes the limit. An empty list means all.
type Bandwidth struct {
	Clients, Nodes []string
	Rate           Rate
}

// Definition implements [Fault].
func (Bandwidth) Definition() Definition {
	return Definition{
		Name: "bandwidth", Word: "bandwidth", Target: OnLinks,
		Example: "bandwidth A n1 200B/ttl", Summary: "let each connection of A to n1 carry 200 bytes per TTL, one way; without names, on all links",
		Synonyms: []string{"throttle"},
		form: formOf[Bandwidth](func(f *Bandwidth) []Field {
			return []Field{clientList(&f.Clients), nodeList(&f.Nodes), {Value: RateField{&f.Rate, true}}}
		}),
	}
}

func (f Bandwidth) String() string { return line(f) }
