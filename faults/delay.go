package faults

import "time"

// Delay lets each matching message arrive By later.
type Delay struct {
	Match Match
	By    Span
	Times int
}

// Definition implements [Fault].
func (Delay) Definition() Definition {
	return Definition{
		Name: "delay", Word: "delay", Target: OnMessages,
		Example: "delay A after SET by 1.1ttl times 1", Summary: "let matching messages arrive that much later",
		form: formOf[Delay](func(f *Delay) []Field {
			return orderFields(&f.Match, &f.Times, Field{Keyword: "by", Clause: true, Value: SpanField{&f.By, PositiveSpan}})
		}),
	}
}

func (f Delay) String() string { return line(f) }

// About returns the order's match. About implements [Order].
func (f Delay) About() Match { return f.Match }

func (f Delay) order(ttl time.Duration) order {
	return order{match: f.Match, does: Delays, by: f.By.Of(ttl), left: f.Times}
}
