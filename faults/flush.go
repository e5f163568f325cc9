package faults

// Flush runs FLUSHALL on a node, as an operator would.
type Flush struct{ Node string }

// Definition implements [Fault].
func (Flush) Definition() Definition {
	return Definition{
		Name: "flush", Word: "flush", Target: OnNode,
		Example: "n1 flush", Summary: "FLUSHALL on n1 by an operator",
		Synonyms: []string{"flushall", "flushdb", "wipe"}, Requires: NeedsRedis, Group: "node",
		Nemeses:  []Nemesis{{Name: "flush", Summary: "an operator removes all keys of a node"}},
		Searched: []Searched{{"flush", "a node is flushed", []string{"flush"}}},
		RaceFree: []string{""},
		form: formOf[Flush](func(f *Flush) []Field {
			return []Field{target(&f.Node)}
		}),
	}
}

func (f Flush) String() string { return line(f) }
