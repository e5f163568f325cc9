package cli

import (
	"slices"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/lockfault/lockfault/strategies"
)

// selection holds the flags that select strategies and services.
type selection struct {
	strategies []string
	of         []string // services
}

// selectFlags adds the flags --strategy and --service.
func (o *selection) selectFlags(flags *pflag.FlagSet) {
	flags.StringSliceVar(&o.strategies, "strategy", nil, "`names`, patterns or @tags of strategies, with commas between them; default all")
	flags.StringSliceVar(&o.of, "service", []string{strategies.Redis}, "`names` of the services whose locks are meant, with commas between them: see list services")
}

// among returns the registry in which names, patterns and tags of strategies are looked up: the
// services of --service. Without the flag these are Redis and the services of locks that --strategy
// names and that Redis does not have.
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

// naming returns the registry of Redis plus, for each word that matches no lock on Redis, the
// services of the locks that it matches.
func (a *app) naming(words []string) strategies.Registry {
	of := []string{strategies.Redis}
	for _, word := range words {
		meant, _ := a.everything.Select(word) // chooseStrategies reports words without a match
		if slices.ContainsFunc(meant, func(s strategies.Strategy) bool { return s.RunsOn() == strategies.Redis }) {
			continue
		}
		for _, s := range meant {
			of = append(of, s.RunsOn())
		}
	}
	return a.everything.Of(of...)
}
