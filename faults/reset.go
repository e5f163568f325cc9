package faults

import "time"

// Reset loses a matching message and closes its connection: both ends see the close.
type Reset struct {
	Match Match
	Times int // how many messages; 0 means every message
}

// Definition implements [Fault].
func (Reset) Definition() Definition {
	return Definition{
		Name: "reset", Word: "reset", Target: OnMessages,
		Example: "reset A before SET times 1", Summary: "lose a matching message and close its connection",
		form: formOf[Reset](func(f *Reset) []Field {
			return orderFields(&f.Match, &f.Times)
		}),
	}
}

func (f Reset) String() string { return line(f) }

// About returns the order's match. About implements [Order].
func (f Reset) About() Match { return f.Match }

func (f Reset) order(time.Duration) order { return order{match: f.Match, does: Resets, left: f.Times} }
