// Package selection finds the strategies and scenarios that a user names: by name, pattern, @tag, file
// or directory, or as a program of the user's own (--subject). Words come in; strategies and parsed
// scripts, or a usage error that names the most similar known word, go out. The package plays nothing.
package selection

import (
	"slices"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/lockfault/lockfault/internal/cli/kit"
	"github.com/lockfault/lockfault/internal/worlds"
	"github.com/lockfault/lockfault/strategies"
)

// Flags holds the flags that select strategies and services.
type Flags struct {
	StrategyNames []string
	serviceNames  []string // services
}

// AddSelectFlags adds the flags --strategy and --service.
func (o *Flags) AddSelectFlags(flags *pflag.FlagSet) {
	flags.StringSliceVar(&o.StrategyNames, "strategy", nil, "`names`, patterns or @tags of strategies, separated by commas (default: all)")
	flags.StringSliceVar(&o.serviceNames, "service", []string{strategies.Redis}, "`names` of the services whose locks are selected, separated by commas (list services prints them)")
}

// Registry returns the registry in which names, patterns and tags of strategies are looked up: the
// services of --service. Without the flag these are Redis and the services of locks that --strategy
// names and that Redis does not have.
func (o *Flags) Registry(cmd *cobra.Command, a *kit.App) (strategies.Registry, error) {
	known := append([]string{strategies.Redis}, kit.Each(a.Services, worlds.Service.Name)...)
	for _, name := range o.serviceNames {
		if a.Full != nil && slices.Contains(a.Full.Services, name) {
			return strategies.Registry{}, kit.Lacks("--service "+name, "withservices")
		}
		if !slices.Contains(known, name) {
			return strategies.Registry{}, kit.Unknown("service", name, known, "the command \"list services\" prints them")
		}
	}
	if len(o.serviceNames) == 0 {
		return strategies.Registry{}, kit.Usage("--service is empty: name some, or leave it out for %s", strategies.Redis)
	}
	if !cmd.Flags().Changed("service") {
		return RegistryFor(a, o.StrategyNames), nil
	}
	return a.Everything.Of(o.serviceNames...), nil
}

// RegistryFor returns the registry of Redis plus, for each word that matches no lock on Redis, the
// services of the locks that it matches.
func RegistryFor(a *kit.App, words []string) strategies.Registry {
	of := []string{strategies.Redis}
	for _, word := range words {
		meant, _ := a.Everything.Select(word) // ChooseStrategies reports words without a match
		if slices.ContainsFunc(meant, func(s strategies.Strategy) bool { return s.RunsOn() == strategies.Redis }) {
			continue
		}
		for _, s := range meant {
			of = append(of, s.RunsOn())
		}
	}
	return a.Everything.Of(of...)
}
