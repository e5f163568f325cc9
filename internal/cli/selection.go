package cli

import (
	"slices"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/lockfault/lockfault/strategies"
)

// selection is which locks are meant, and of which services.
type selection struct {
	strategies []string
	of         []string // services
}

// selectFlags adds the flags that say so.
func (o *selection) selectFlags(flags *pflag.FlagSet) {
	flags.StringSliceVar(&o.strategies, "strategy", nil, "`names`, patterns or @tags of strategies, with commas between them; default all")
	flags.StringSliceVar(&o.of, "service", []string{strategies.Redis}, "`names` of the services whose locks are meant, with commas between them: see list services")
}

// among returns the registry of what --service names: the strategies that words, patterns and tags are
// about. Who names locks of other services alone and says nothing of services means those, too.
func (o *selection) among(cmd *cobra.Command, a *app) (strategies.Registry, error) {
	known := []string{strategies.Redis}
	for _, s := range a.services {
		known = append(known, s.Name())
	}
	for _, name := range o.of {
		if !slices.Contains(known, name) {
			return strategies.Registry{}, unknown("service", name, known, "the command \"list services\" prints them")
		}
	}
	if len(o.of) == 0 {
		return strategies.Registry{}, usage("--service is empty: name some, or leave it out for %s", strategies.Redis)
	}
	if !cmd.Flags().Changed("service") {
		return a.naming(o.strategies), nil
	}
	return a.everything.Of(o.of...), nil
}

// naming returns the registry of Redis and, for each word that is about no lock of its, of the services of those
// that it is about.
func (a *app) naming(words []string) strategies.Registry {
	of := []string{strategies.Redis}
	for _, word := range words {
		meant, _ := a.everything.Select(word) // whoever chooses says that nothing is meant
		if slices.ContainsFunc(meant, func(s strategies.Strategy) bool { return s.RunsOn() == strategies.Redis }) {
			continue
		}
		for _, s := range meant {
			of = append(of, s.RunsOn())
		}
	}
	return a.everything.Of(of...)
}
