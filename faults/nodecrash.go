package faults

// CrashNode ends the server process of a node or of a single server; its connections are reset and new
// ones refused.
type CrashNode struct{ Node string }

// Definition implements [Fault].
func (CrashNode) Definition() Definition {
	return Definition{
		Name: "node-crash", Word: "crash", Target: OnServer,
		Example: "n1 crash", Summary: "end n1's server process; new connections are refused",
		Group: "crash",
		Shown: &Shown{ShownStopped, "down", []string{"restart"}},
		Nemeses: []Nemesis{
			{Name: "server-crash", Summary: "a node's process crashes, and restarts with its data", End: "restart"},
			{Name: "server-empty", Summary: "a node's process crashes, and restarts without its data", End: "restart empty"},
		},
		Searched: []Searched{
			{"restart", "a node restarts with its data", []string{"crash", "restart"}},
			{"restart-empty", "a node restarts without its data", []string{"crash", "restart empty"}},
		},
		RaceFree: []string{""},
		form: formOf[CrashNode](func(f *CrashNode) []Field {
			return []Field{target(&f.Node)}
		}),
	}
}

func (f CrashNode) String() string { return line(f) }

// RestartNode starts a server process again, with the data that it had or Empty. Leases continue to run
// down while the process is down. After a failover the server comes back as a replica of the new
// primary, with the new primary's data.
type RestartNode struct {
	Node  string
	Empty bool
}

// Definition implements [Fault].
func (RestartNode) Definition() Definition {
	return Definition{
		Name: "node-restart", Word: "restart", Target: OnServer,
		Example: "n1 restart empty", Summary: "start n1's crashed server again, with its data or empty",
		Reverses: []string{"node-crash", "failover"}, Reversed: "crashed", Group: "crash",
		RaceFree: []string{"", "empty"},
		form: formOf[RestartNode](func(f *RestartNode) []Field {
			return []Field{target(&f.Node), {Value: FlagField{&f.Empty, "empty"}}}
		}),
	}
}

func (f RestartNode) String() string { return line(f) }

// Requires returns Redis for a restart without data: other services keep theirs.
func (f RestartNode) Requires() Requirement {
	if f.Empty {
		return NeedsRedis
	}
	return NeedsNothing
}
