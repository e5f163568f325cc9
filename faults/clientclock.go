package faults

// ClientClock moves the client's wall clock by By, once.
type ClientClock struct {
	Client string
	By     Span
}

// Definition implements [Fault].
func (ClientClock) Definition() Definition {
	return Definition{
		Name: "client-clock", Word: "clock", Target: OnClient,
		Example: "A clock +1.1ttl", Summary: "move A's wall clock, once, forward or back",
		Synonyms: []string{"skew", "jump"}, Group: "node",
		Nemeses: []Nemesis{{Name: "clock", Summary: "a client's wall clock jumps", Jump: true}},
		form: formOf[ClientClock](func(f *ClientClock) []Field {
			return []Field{target(&f.Client), spanOf(&f.By, SignedSpan)}
		}),
	}
}

func (f ClientClock) String() string { return line(f) }
