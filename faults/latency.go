package faults

// Latency sets the one-way delay of a message on links between clients and nodes: Base plus or minus
// up to Jitter, drawn separately for each message. Messages of one connection keep their order. An
// empty list means all.
type Latency struct {
	Clients, Nodes []string
	Base, Jitter   Span
}

// Definition implements [Fault].
func (Latency) Definition() Definition {
	return Definition{
		Name: "latency", Word: "latency", Target: OnLinks,
		Example: "latency A n1 50ms jitter 10ms", Summary: "let each message between A and n1 take 40 to 60 ms one way; without names, on all links",
		Synonyms: []string{"lag", "slow"},
		form: formOf[Latency](func(f *Latency) []Field {
			return []Field{clientList(&f.Clients), nodeList(&f.Nodes), spanOf(&f.Base, NotNegativeSpan), jitterOf(&f.Jitter)}
		}),
	}
}

func (f Latency) String() string { return line(f) }
