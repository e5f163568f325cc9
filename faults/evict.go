package faults

// Evict removes the lock's key from a node, as maxmemory would.
type Evict struct{ Node string }

// Definition implements [Fault].
func (Evict) Definition() Definition {
	return Definition{
		Name: "evict", Word: "evict", Target: OnNode,
		Example: "n1 evict", Summary: "remove the lock's key from n1, as maxmemory would",
		Synonyms: []string{"expire"}, Requires: NeedsRedis, OwnKeys: true, Group: "node",
		Nemeses:  []Nemesis{{Name: "evict", Summary: "a node evicts the lock's key because memory is short"}},
		RaceFree: []string{""},
		form: formOf[Evict](func(f *Evict) []Field {
			return []Field{target(&f.Node)}
		}),
	}
}

func (f Evict) String() string { return line(f) }
