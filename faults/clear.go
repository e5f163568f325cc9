package faults

// Clear ends all delays, drops and resets for the named clients, or for all clients if none is named.
// Holds stay until [Pass].
type Clear struct{ Clients []string }

// Definition implements [Fault].
func (Clear) Definition() Definition {
	return Definition{
		Name: "clear", Word: "clear", Target: OnMessages,
		Example: "clear A", Summary: "end all delays, drops and resets for A; without names, for all",
		EndsOnly: true,
		form: formOf[Clear](func(f *Clear) []Field {
			return []Field{clientList(&f.Clients)}
		}),
	}
}

func (f Clear) String() string { return line(f) }
