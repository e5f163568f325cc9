package faults

// ScriptFlush runs SCRIPT FLUSH on a node, as an operator would.
type ScriptFlush struct{ Node string }

// Definition implements [Fault].
func (ScriptFlush) Definition() Definition {
	return Definition{
		Name: "script-flush", Word: "script-flush", Target: OnNode,
		Example: "n1 script-flush", Summary: "SCRIPT FLUSH on n1 by an operator",
		Requires: NeedsRedis, Group: "node",
		RaceFree: []string{""},
		form: formOf[ScriptFlush](func(f *ScriptFlush) []Field {
			return []Field{target(&f.Node)}
		}),
	}
}

func (f ScriptFlush) String() string { return line(f) }
