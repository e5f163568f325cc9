package faults

// MaxRate is the maximum rate of a clock, as a multiple of true time.
const MaxRate = 1000

// NodeDrift makes the clock of a node or of a single server run Rate times as fast as true time from
// now on. Rate must be above 0 and at most [MaxRate].
type NodeDrift struct {
	Node string
	Rate float64
}

// Definition implements [Fault].
func (NodeDrift) Definition() Definition {
	return Definition{
		Name: "drift", Word: "drift", Target: OnServer,
		Example: "n1 drift 1.5", Summary: "let n1's clock run 1.5 times as fast as true time from now on",
		Requires: NeedsDrift, Group: "node",
		Shown: &Shown{ShownOdd, "drift", []string{"drift"}},
		form: formOf[NodeDrift](func(f *NodeDrift) []Field {
			return []Field{target(&f.Node), {Value: DriftField{&f.Rate}}}
		}),
	}
}

func (f NodeDrift) String() string { return line(f) }
