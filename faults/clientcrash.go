package faults

// CrashClient ends the process of a client; its connections close.
type CrashClient struct{ Client string }

// Definition implements [Fault].
func (CrashClient) Definition() Definition {
	return Definition{
		Name: "client-crash", Word: "crash", Target: OnClient,
		Example: "A crash", Summary: "end A's process; its connections close",
		Synonyms: []string{"kill", "die", "exit", "terminate", "down"}, Group: "crash",
		Nemeses: []Nemesis{{Name: "crash", Summary: "a client's process crashes, and is started again", End: "restart"}},
		form: formOf[CrashClient](func(f *CrashClient) []Field {
			return []Field{target(&f.Client)}
		}),
	}
}

func (f CrashClient) String() string { return line(f) }

// RestartClient starts the process of a crashed client again, without the memory of its former
// run.
type RestartClient struct{ Client string }

// Definition implements [Fault].
func (RestartClient) Definition() Definition {
	return Definition{
		Name: "client-restart", Word: "restart", Target: OnClient,
		Example: "A restart", Summary: "start A's crashed process anew, without a memory",
		Synonyms: []string{"start", "reboot", "revive", "recover", "up"}, Group: "crash",
		Reverses: []string{"client-crash"}, Reversed: "crashed",
		form: formOf[RestartClient](func(f *RestartClient) []Field {
			return []Field{target(&f.Client)}
		}),
	}
}

func (f RestartClient) String() string { return line(f) }
