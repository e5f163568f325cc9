package cli

import (
	"github.com/spf13/cobra"

	"github.com/lockfault/lockfault/internal/cli/kit"
	"github.com/lockfault/lockfault/internal/cli/selection"
)

func newShowCommand() *cobra.Command {
	return &cobra.Command{
		Use:     "show SCENARIO",
		Short:   "Print a scenario's script",
		Example: "  lockfault show getset-race",
		Args:    kit.ExactArgs("the name or file of a scenario"),
		RunE: func(cmd *cobra.Command, args []string) error {
			script, err := selection.ChooseScenario(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			_, err = cmd.OutOrStdout().Write(script.Format())
			return err
		},
	}
}
