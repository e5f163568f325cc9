package faults

// PauseNode stops the server process of a node or of a single server; messages to it wait.
type PauseNode struct{ Node string }

// Definition implements [Fault].
func (PauseNode) Definition() Definition {
	return Definition{
		Name: "node-pause", Word: "pause", Target: OnServer,
		Example: "n1 pause", Summary: "stop n1's server process; messages wait at its door",
		Group:    "pause",
		Shown:    &Shown{ShownStopped, "stopped", []string{"resume", "restart"}},
		Nemeses:  []Nemesis{{Name: "server-pause", Summary: "a node's process stops", End: "resume"}},
		RaceFree: []string{""},
		form: formOf[PauseNode](func(f *PauseNode) []Field {
			return []Field{target(&f.Node)}
		}),
	}
}

func (f PauseNode) String() string { return line(f) }

// ResumeNode continues a paused server process.
type ResumeNode struct{ Node string }

// Definition implements [Fault].
func (ResumeNode) Definition() Definition {
	return Definition{
		Name: "node-resume", Word: "resume", Target: OnServer,
		Example: "n1 resume", Summary: "let n1's paused server go on",
		Reverses: []string{"node-pause"}, Reversed: "paused", EndsOnly: true, Group: "pause",
		RaceFree: []string{""},
		form: formOf[ResumeNode](func(f *ResumeNode) []Field {
			return []Field{target(&f.Node)}
		}),
	}
}

func (f ResumeNode) String() string { return line(f) }
