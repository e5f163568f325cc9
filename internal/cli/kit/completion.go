package kit

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
)

// CompleteFlag registers shell completion for a flag that takes a list of names.
func CompleteFlag(cmd *cobra.Command, flag string, names func() []string) {
	must(cmd.RegisterFlagCompletionFunc(flag, completeList(names)))
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

// must panics if err is not nil, which only a bug of this package can cause.
func must(err error) {
	if err != nil {
		panic(fmt.Sprintf("lockfault: completion: %v", err))
	}
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
