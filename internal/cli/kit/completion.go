package kit

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
)

// CompleteFlag registers shell completion for the last name of a flag that takes a comma-separated
// list of names.
func CompleteFlag(cmd *cobra.Command, flag string, names func() []string) {
	complete := func(_ *cobra.Command, _ []string, typed string) (list []cobra.Completion, _ cobra.ShellCompDirective) {
		before := typed[:strings.LastIndex(typed, ",")+1]
		for _, name := range names() {
			if !slices.Contains(strings.Split(before, ","), name) {
				list = append(list, before+name)
			}
		}
		return beginning(list, typed), cobra.ShellCompDirectiveDefault
	}
	if err := cmd.RegisterFlagCompletionFunc(flag, complete); err != nil {
		panic(fmt.Sprintf("lockfault: completion: %v", err)) // no such flag: a bug of the caller
	}
}

// beginning returns the names that begin with typed. beginning modifies names.
func beginning(names []string, typed string) []string {
	return slices.DeleteFunc(names, func(name string) bool { return !strings.HasPrefix(name, typed) })
}

// CompleteArgs returns a completion that uses the i-th function for the i-th argument.
func CompleteArgs(names ...func() []string) cobra.CompletionFunc {
	return func(_ *cobra.Command, args []string, typed string) ([]cobra.Completion, cobra.ShellCompDirective) {
		if len(args) >= len(names) {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return beginning(names[len(args)](), typed), cobra.ShellCompDirectiveDefault
	}
}
