package cli

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/lockfault/lockfault/scenarios"
)

func newShowCommand() *cobra.Command {
	return &cobra.Command{
		Use:     "show SCENARIO",
		Short:   "Print a scenario's script",
		Example: "  lockfault show getset-race",
		Args:    exactArgs("the name or file of a scenario"),
		RunE: func(cmd *cobra.Command, args []string) error {
			script, err := chooseScenario(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			_, err = cmd.OutOrStdout().Write(script.Format())
			return err
		},
	}
}

// chooseScenario returns the single scenario that a word names: of the library, of the map
// scenarios, or a file.
func chooseScenario(ctx context.Context, word string) (chosen, error) {
	if file, src := scenarios.MapSource(word); src != nil {
		return written(file, string(src))
	}
	list, err := chooseScenarios(ctx, []string{word}, true)
	if err != nil {
		return chosen{}, err
	}
	if len(list) > 1 {
		return chosen{}, usage("%q names %d scenarios: name one", word, len(list))
	}
	return list[0], nil
}
