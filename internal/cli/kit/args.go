package kit

import (
	"cmp"
	"time"

	"github.com/spf13/cobra"
)

// NoArgs returns a usage error if a command without arguments is given any.
func NoArgs(cmd *cobra.Command, args []string) error {
	if len(args) > 0 {
		return Usage("%q takes no arguments, but was given %q: \"%s --help\" explains it", cmd.Name(), args[0], cmd.CommandPath())
	}
	return nil
}

// ExactArgs returns a check that requires one argument for each name.
func ExactArgs(names ...string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		switch {
		case len(args) < len(names):
			return Usage("%q needs %s: \"%s --help\" explains it", cmd.Name(), names[len(args)], cmd.CommandPath())
		case len(args) > len(names):
			return Usage("%q has no use for %q: \"%s --help\" explains it", cmd.Name(), args[len(names)], cmd.CommandPath())
		}
		return nil
	}
}

// SomeArgs returns a check that requires at least one argument; what names the first.
func SomeArgs(what string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) == 0 {
			return ExactArgs(what)(cmd, args)
		}
		return nil
	}
}

// Between returns a usage error if the value of a flag is outside least to most.
func Between[T cmp.Ordered](flag string, value, least, most T) error {
	if value < least || value > most {
		return Usage("invalid --%s %v: must be between %v and %v", flag, value, least, most)
	}
	return nil
}

// MaxWorkers is the largest useful number of worker processes of a search.
const MaxWorkers = 256

// Values of --format for the commands that print tables.
const (
	FormatTable    = "table"
	FormatMarkdown = "markdown"
	FormatJSON     = "json"
)

// Upper bounds of flag values that no other package limits.
const (
	// MaxDuration is the largest duration of a flag.
	MaxDuration = 1_000_000 * time.Hour
	// MaxLease is also the largest lease of a script.
	MaxLease = 1000 * time.Hour
)
