package cli

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/lockfault/lockfault/checker"
	"github.com/lockfault/lockfault/internal/worlds"
	"github.com/lockfault/lockfault/reports"
	"github.com/lockfault/lockfault/scenarios"
	"github.com/lockfault/lockfault/strategies"
)

// complete registers shell completion for arguments and flags that take names. Files are completed
// in addition wherever names are.
func complete(root *cobra.Command, registry strategies.Registry) {
	addCompletion(root)
	args := map[string][]func() []string{
		"trace":   {registry.Names, allScenarios},
		"play":    {registry.Names, allScenarios},
		"map":     {registry.Names, allScenarios},
		"explore": {registry.Names},
		"soak":    {registry.Names},
		"show":    {allScenarios},
	}
	flags := map[string]func() []string{
		"strategy": func() []string { return append(registry.Names(), tagged(registry)...) },
		"scenario": scenarios.Names,
		"world":    worlds.Names,
		"anomaly":  anomalyNames,
	}
	formats := map[string]func() []string{
		"run":     formNames,
		"report":  func() []string { return union(reports.Formats(), formNames()[1:]) },
		"compare": reports.DiffFormats,
		"bench":   func() []string { return []string{formatTable, formatMarkdown, formatJSON} },
		"check":   func() []string { return []string{formatTable, formatJSON} },
		"map":     mapForms,
	}
	for _, cmd := range root.Commands() {
		if names := args[cmd.Name()]; names != nil {
			cmd.ValidArgsFunction = completeArgs(names...)
		}
		for flag, names := range flags {
			if cmd.Flags().Lookup(flag) != nil {
				must(cmd.RegisterFlagCompletionFunc(flag, completeList(names)))
			}
		}
		if names := formats[cmd.Name()]; names != nil {
			must(cmd.RegisterFlagCompletionFunc("format", completeList(names)))
		}
	}
}

// allScenarios returns the names of the library's scenarios and of the map scenarios.
func allScenarios() []string { return append(scenarios.All(), scenarios.MapNames()...) }

// addCompletion adds cobra's command that prints shell completion scripts. Unknown shells are usage
// errors.
func addCompletion(root *cobra.Command) {
	root.InitDefaultCompletionCmd()
	cmd, _, err := root.Find([]string{"completion"})
	must(err)
	cmd.Short = "Print what has a shell complete names of commands, strategies and scenarios"
	cmd.Example = "  source <(" + product + " completion bash)"
	cmd.Args = cobra.ArbitraryArgs
	for _, shell := range cmd.Commands() {
		shell.Args = noArgs
	}
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		var shells []string
		for _, shell := range cmd.Commands() {
			shells = append(shells, shell.Name())
		}
		if len(args) > 0 {
			return unknown("shell", args[0], shells, "there are "+strings.Join(shells, ", "))
		}
		return usage("%q needs the name of a shell: %s", cmd.Name(), strings.Join(shells, ", "))
	}
}

// must panics if err is not nil, which only a bug of this package can cause.
func must(err error) {
	if err != nil {
		panic(fmt.Sprintf("lockfault: completion: %v", err))
	}
}

// union returns a followed by the elements of b that are not in a. union may modify both slices.
func union(a, b []string) []string {
	return append(a, slices.DeleteFunc(b, func(s string) bool { return slices.Contains(a, s) })...)
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

func anomalyNames() (names []string) {
	for _, a := range checker.Anomalies() {
		names = append(names, string(a))
	}
	return names
}

// completeArgs returns a completion that uses the i-th function for the i-th argument.
func completeArgs(names ...func() []string) cobra.CompletionFunc {
	return func(_ *cobra.Command, args []string, typed string) ([]cobra.Completion, cobra.ShellCompDirective) {
		if len(args) >= len(names) {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return beginning(names[len(args)](), typed), cobra.ShellCompDirectiveDefault
	}
}

// completeList returns a completion for the last name of a comma-separated list.
func completeList(names func() []string) cobra.CompletionFunc {
	return func(_ *cobra.Command, _ []string, typed string) (list []cobra.Completion, _ cobra.ShellCompDirective) {
		before := typed[:strings.LastIndex(typed, ",")+1]
		for _, name := range names() {
			if !slices.Contains(strings.Split(before, ","), name) {
				list = append(list, before+name)
			}
		}
		return beginning(list, typed), cobra.ShellCompDirectiveDefault
	}
}

// beginning returns the names that begin with typed. beginning modifies names.
func beginning(names []string, typed string) []string {
	return slices.DeleteFunc(names, func(name string) bool { return !strings.HasPrefix(name, typed) })
}
