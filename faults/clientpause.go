package faults

// PauseClient stops the process of a client, as a long garbage collection or SIGSTOP does. Everything
// stops, between and during its commands, timers included.
type PauseClient struct{ Client string }

// Definition implements [Fault].
func (PauseClient) Definition() Definition {
	return Definition{
		Name: "client-pause", Word: "pause", Target: OnClient,
		Example: "A pause", Summary: "stop A's process, timers included, as a long garbage collection would",
		Synonyms: []string{"stop", "freeze", "suspend", "halt", "hang"}, Group: "pause",
		Nemeses: []Nemesis{{Name: "pause", Summary: "a client's process stops", End: "resume"}},
		form: formOf[PauseClient](func(f *PauseClient) []Field {
			return []Field{target(&f.Client)}
		}),
	}
}

func (f PauseClient) String() string { return line(f) }

// ResumeClient continues a paused process.
type ResumeClient struct{ Client string }

// Definition implements [Fault].
func (ResumeClient) Definition() Definition {
	return Definition{
		Name: "client-resume", Word: "resume", Target: OnClient,
		Example: "A resume", Summary: "let A's paused process go on",
		Synonyms: []string{"continue", "unpause", "unfreeze", "wake"}, Group: "pause",
		Reverses: []string{"client-pause"}, Reversed: "paused", EndsOnly: true,
		form: formOf[ResumeClient](func(f *ResumeClient) []Field {
			return []Field{target(&f.Client)}
		}),
	}
}

func (f ResumeClient) String() string { return line(f) }
