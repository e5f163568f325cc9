package cli

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/lockfault/lockfault/checker"
	"github.com/lockfault/lockfault/faults"
	"github.com/lockfault/lockfault/internal/cli/kit"
	"github.com/lockfault/lockfault/scenarios"
	"github.com/lockfault/lockfault/strategies"
)

func newListCommand(a *kit.App) *cobra.Command {
	return &cobra.Command{
		Use:       "list strategies|scenarios|faults|anomalies|services",
		Short:     "List strategies, scenarios, faults, anomalies or services",
		ValidArgs: []string{"strategies", "scenarios", "faults", "anomalies", "services"},
		Args:      kit.ExactArgs("strategies, scenarios, faults, anomalies or services"),
		RunE: func(cmd *cobra.Command, args []string) error {
			w := tabwriter.NewWriter(cmd.OutOrStdout(), 0, 0, 2, ' ', 0)
			switch args[0] {
			case "strategies":
				fmt.Fprintln(w, "NAME\tNODES\tWHAT IT DOES")
				for _, s := range a.Registry.All() {
					fmt.Fprintf(w, "%s\t%d\t%s\n", s.Name, max(1, s.Nodes), s.Summary)
				}
				if err := w.Flush(); err != nil {
					return err
				}
				return listVarying(cmd.OutOrStdout(), a.Registry)
			case "scenarios":
				fmt.Fprintln(w, "NAME\tWHAT HAPPENS")
				for _, name := range scenarios.All() {
					s, err := scenarios.Lookup(name)
					if err != nil {
						return err
					}
					if slices.Contains(scenarios.OfServices(), name) && len(a.Services) == 0 && a.Full == nil {
						continue
					}
					fmt.Fprintf(w, "%s\t%s\n", s.Name, s.Summary())
				}
			case "faults":
				fmt.Fprintln(w, "NAME\tEXAMPLE\tWHAT IT DOES")
				for _, e := range faults.Definitions() {
					fmt.Fprintf(w, "%s\t%s\t%s\n", e.Name, e.Example, e.Summary)
				}
			case "anomalies":
				fmt.Fprintln(w, "NAME\tCLASS\tWHAT IT MEANS")
				for _, d := range checker.Descriptions() {
					fmt.Fprintf(w, "%s\t%s\t%s\n", d.Name, d.Class, d.Meaning)
				}
			case "services":
				if a.Full != nil {
					return kit.Lacks("list services", "withservices")
				}
				fmt.Fprintln(w, "NAME\tWHAT IT IS\tLOCKS")
				fmt.Fprintf(w, "%s\t%s\t%d: list strategies\n", strategies.Redis, "single servers with replicas, in virtual time too", len(a.Everything.Of(strategies.Redis).All()))
				for _, service := range a.Services {
					names := kit.Each(service.Strategies(), func(s strategies.Strategy) string { return s.Name })
					fmt.Fprintf(w, "%s\t%s\t%s\n", service.Name(), service.Summary(), strings.Join(names, ", "))
				}
			default:
				return kit.Unknown("list", args[0], cmd.ValidArgs, "there are strategies, scenarios, faults, anomalies and services")
			}
			return w.Flush()
		},
	}
}

// listVarying writes a line for each strategy whose history may differ between runs of one seed.
func listVarying(w io.Writer, registry strategies.Registry) error {
	separator := "\n"
	for _, s := range registry.All() {
		if s.HistoryVaries == "" {
			continue
		}
		if _, err := fmt.Fprintf(w, "%s%s: the same seed gives the same verdict, but not always the same history, since %s\n", separator, s.Name, s.HistoryVaries); err != nil {
			return err
		}
		separator = ""
	}
	return nil
}
