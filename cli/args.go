package cli

import (
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
