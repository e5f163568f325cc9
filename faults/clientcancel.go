package faults

// CancelClient ends the context of the client's current operation, if it has one, as a caller that
// gives up does. The harness that runs the script does this, because no World knows of operations:
// for Apply it has no effect.
type CancelClient struct{ Client string }

// Definition implements [Fault].
func (CancelClient) Definition() Definition {
	return Definition{
		Name: "client-cancel", Word: "cancel", Target: OnClient,
		Example: "A cancel", Summary: "end the context of the operation that A is in, as when its caller gives up",
		Synonyms: []string{"abort", "interrupt", "give-up"},
		form: formOf[CancelClient](func(f *CancelClient) []Field {
			return []Field{target(&f.Client)}
		}),
	}
}

func (f CancelClient) String() string { return line(f) }
