package faults

// Full makes a server answer every command that could use more memory with an OOM error, as Redis
// does at maxmemory with the policy noeviction: SET and INCR fail, DEL and PEXPIRE do not. In a
// transaction every command fails, and a script fails at its first write if that could use more
// memory. With Off the server has memory again. A restart ends the fault, too.
type Full struct {
	Node string
	Off  bool
}

// Definition implements [Fault].
func (Full) Definition() Definition {
	return Definition{
		Name: "full", Word: "full", Target: OnServer,
		Example: "n1 full", Summary: "n1 has no memory left: commands such as SET fail with OOM until full off or a restart",
		Synonyms: []string{"oom", "maxmemory", "out-of-memory"}, Requires: NeedsRedis, Group: "node",
		Shown:    &Shown{ShownOdd, "full", []string{"full", "restart"}},
		Nemeses:  []Nemesis{{Name: "full", Summary: "a node has no memory left, and denies writes", End: "full off"}},
		RaceFree: []string{"", "off"},
		form: formOf[Full](func(f *Full) []Field {
			return []Field{target(&f.Node), {Value: FlagField{&f.Off, "off"}}}
		}),
	}
}

func (f Full) String() string { return line(f) }

// EndsOthers reports whether the fault ends an earlier one.
func (f Full) EndsOthers() bool { return f.Off }
