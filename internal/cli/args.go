package cli

import (
	"cmp"
	"time"

	"github.com/spf13/cobra"
)

// noArgs refuses arguments of a command that takes none.
func noArgs(cmd *cobra.Command, args []string) error {
	if len(args) > 0 {
		return usage("%q takes no arguments, but was given %q: \"%s --help\" explains it", cmd.Name(), args[0], cmd.CommandPath())
	}
	return nil
}

// exactArgs demands one argument for each of the names.
func exactArgs(names ...string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		switch {
		case len(args) < len(names):
			return usage("%q needs %s: \"%s --help\" explains it", cmd.Name(), names[len(args)], cmd.CommandPath())
		case len(args) > len(names):
			return usage("%q has no use for %q: \"%s --help\" explains it", cmd.Name(), args[len(names)], cmd.CommandPath())
		}
		return nil
	}
}

// The largest values of flags that no other part of the program bounds.
const (
	// longest is the longest time that a flag takes.
	longest = 1_000_000 * time.Hour
	// longestLease is the longest lease of a script, too.
	longestLease = 1000 * time.Hour
	// mostHolders is how many may hold a lock together in a history that is checked.
	mostHolders = 1_000_000
)

// between refuses the value of a flag that is out of range.
func between[T cmp.Ordered](flag string, value, least, most T) error {
	if value < least || value > most {
		return usage("invalid --%s %v: must be between %v and %v", flag, value, least, most)
	}
	return nil
}
