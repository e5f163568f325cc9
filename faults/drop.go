package faults

import "time"

// Drop loses matching messages.
type Drop struct {
	Match Match
	Times int // how many messages; 0 means every message
}

// Definition implements [Fault].
func (Drop) Definition() Definition {
	return Definition{
		Name: "drop", Word: "drop", Target: OnMessages,
		Example: "drop A messages", Summary: "lose matching messages",
		Synonyms: []string{"lose", "discard"},
		form: formOf[Drop](func(f *Drop) []Field {
			return orderFields(&f.Match, &f.Times)
		}),
	}
}

func (f Drop) String() string { return line(f) }

// About returns the order's match. About implements [Order].
func (f Drop) About() Match { return f.Match }

func (f Drop) order(time.Duration) order { return order{match: f.Match, does: Drops, left: f.Times} }
