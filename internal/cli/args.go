package cli

import (
	"cmp"
	"time"

	"github.com/spf13/cobra"
)

// noArgs returns a usage error if a command without arguments is given any.
func noArgs(cmd *cobra.Command, args []string) error {
	if len(args) > 0 {
		return usage("%q takes no arguments, but was given %q: \"%s --help\" explains it", cmd.Name(), args[0], cmd.CommandPath())
	}
	return nil
}

// exactArgs returns a check that requires one argument for each name.
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

// Upper bounds of flag values that no other package limits.
const (
	// longest is the largest duration of a flag.
	longest = 1_000_000 * time.Hour
	// longestLease is also the largest lease of a script.
	longestLease = 1000 * time.Hour
	// mostHolders is the largest number of simultaneous holders in a checked history.
	mostHolders = 1_000_000
)

// between returns a usage error if the value of a flag is outside least to most.
func between[T cmp.Ordered](flag string, value, least, most T) error {
	if value < least || value > most {
		return usage("invalid --%s %v: must be between %v and %v", flag, value, least, most)
	}
	return nil
}
