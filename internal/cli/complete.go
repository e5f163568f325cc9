package cli

import (
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/lockfault/lockfault/internal/cli/kit"
	"github.com/lockfault/lockfault/internal/cli/selection"
	"github.com/lockfault/lockfault/internal/worlds"
	"github.com/lockfault/lockfault/scenarios"
	"github.com/lockfault/lockfault/strategies"
)

// complete registers shell completion for arguments and flags that take names. Files are completed
// in addition wherever names are.
func complete(root *cobra.Command, registry strategies.Registry) {
	addCompletion(root)
	args := map[string][]func() []string{
		"trace":   {registry.Names, selection.AllScenarios},
		"play":    {registry.Names, selection.AllScenarios},
		"map":     {registry.Names, selection.AllScenarios},
		"explore": {registry.Names},
		"soak":    {registry.Names},
		"show":    {selection.AllScenarios},
	}
	flags := map[string]func() []string{
		"strategy": func() []string { return append(registry.Names(), tagged(registry)...) },
		"scenario": scenarios.Names,
		"world":    worlds.Names,
		"anomaly":  kit.AnomalyNames,
	}
	for _, cmd := range root.Commands() {
		if names := args[cmd.Name()]; names != nil {
			cmd.ValidArgsFunction = kit.CompleteArgs(names...)
		}
		for flag, names := range flags {
			if cmd.Flags().Lookup(flag) != nil {
				kit.CompleteFlag(cmd, flag, names)
			}
		}
	}
}

// addCompletion adds cobra's command that prints shell completion scripts. Unknown shells are usage
// errors.
func addCompletion(root *cobra.Command) {
	root.InitDefaultCompletionCmd()
	cmd, _, _ := root.Find([]string{"completion"}) // exists since the line above
	cmd.Short = "Print a shell completion script"
	cmd.Example = "  source <(" + kit.Product + " completion bash)"
	cmd.Args = cobra.ArbitraryArgs
	for _, shell := range cmd.Commands() {
		shell.Args = kit.NoArgs
	}
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		shells := kit.Each(cmd.Commands(), (*cobra.Command).Name)
		if len(args) > 0 {
			return kit.OneOf("shell", args[0], shells)
		}
		return kit.Usage("%q needs the name of a shell: %s", cmd.Name(), strings.Join(shells, ", "))
	}
}

// tagged returns the tags of all strategies, with "@" in front and without duplicates.
func tagged(registry strategies.Registry) (tags []string) {
	for _, s := range registry.All() {
		for _, tag := range s.Tags {
			if !slices.Contains(tags, "@"+tag) {
				tags = append(tags, "@"+tag)
			}
		}
	}
	return tags
}
