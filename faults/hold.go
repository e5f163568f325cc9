package faults

import "time"

// Hold stops matching messages at their destination, before they enter, until [Pass].
type Hold struct {
	Match Match
	Times int // how many messages; 0 means every message
}

// Definition implements [Fault].
func (Hold) Definition() Definition {
	return Definition{
		Name: "hold", Word: "hold", Target: OnMessages,
		Example: "hold A B before GETSET on n1 times 1", Summary: "stop matching messages on their way until pass",
		Synonyms: []string{"block", "intercept"}, Group: GateGroup,
		form: formOf[Hold](func(f *Hold) []Field {
			return orderFields(&f.Match, &f.Times)
		}),
	}
}

func (f Hold) String() string { return line(f) }

// About returns the order's match. About implements [Order].
func (f Hold) About() Match { return f.Match }

func (f Hold) order(time.Duration) order { return order{match: f.Match, does: Holds, left: f.Times} }

// Pass delivers the held messages of the named clients, at once and in order of arrival, and ends their
// holds. With Once it delivers only the message held longest and keeps the holds. With Nodes it
// applies only to messages to or from these nodes. An empty list means all.
type Pass struct {
	Clients []string
	Once    bool
	Nodes   []string
}

// Definition implements [Fault].
func (Pass) Definition() Definition {
	return Definition{
		Name: "pass", Word: "pass", Target: OnMessages,
		Example: "pass A once on n1", Summary: "deliver what hold stopped; once delivers only the oldest message, here of those between A and n1",
		Synonyms: []string{"let", "deliver", "allow"}, EndsOnly: true, Group: GateGroup,
		form: formOf[Pass](func(f *Pass) []Field {
			return []Field{someClients(&f.Clients), clause(Field{Value: FlagField{&f.Once, "once"}}), clause(nodesAfter("on", &f.Nodes))}
		}),
	}
}

func (f Pass) String() string { return line(f) }

// GateGroup is the group of hold and pass, which order messages and inject no fault.
const GateGroup = "gate"
