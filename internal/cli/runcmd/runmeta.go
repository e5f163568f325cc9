package runcmd

import (
	"fmt"
	"runtime"
	"slices"
	"strings"

	"github.com/lockfault/lockfault/internal/cli/kit"
	"github.com/lockfault/lockfault/internal/cli/selection"
	"github.com/lockfault/lockfault/internal/shell"
	"github.com/lockfault/lockfault/internal/version"
	"github.com/lockfault/lockfault/reports"
	"github.com/lockfault/lockfault/strategies"
)

// head returns the metadata of results.json. head does not depend on the number of jobs or on the
// path of the report.
func (o *runOptions) head(list []strategies.Strategy, scripts []selection.Chosen, costs []reports.Cost) reports.Head {
	h := reports.Head{
		Costs: costs, Version: version.Of(), World: strings.Join(o.Worlds, ","), Seed: o.Seed, TTL: o.Lease(),
		Machine: fmt.Sprintf("%s/%s, %d processors", runtime.GOOS, runtime.GOARCH, runtime.NumCPU()),
		Flags:   o.FlagWords(),
	}
	for _, s := range list {
		d := reports.StrategyInfo{Name: s.Name, Summary: s.Summary, Service: s.Service, Nodes: max(1, s.Nodes), Renews: slices.Contains(s.Tags, strategies.TagRenewing)}
		if o.Subject != nil && s.Name == o.Subject.Name {
			d.Flags = o.SubjectFlags.FlagArgs()
		}
		h.Strategies = append(h.Strategies, d)
	}
	for _, s := range scripts {
		h.Scripts = append(h.Scripts, reports.NewScript(s.Name, s.File, string(s.Format())))
	}
	command := shell.Command{kit.Product, "run"}
	command.Flag(len(o.StrategyNames) > 0, "strategy", strings.Join(o.StrategyNames, ","))
	command.Flag(len(o.scenarios) > 0, "scenario", strings.Join(o.scenarios, ","))
	command.Flag(o.Expect != "", "expect", o.Expect)
	command.Flag(o.costs != "", "costs", o.costs)
	command.Flag(!slices.Equal(o.Worlds, []string{reports.Reference}), "world", strings.Join(o.Worlds, ","))
	if o.Subject != nil {
		command = append(command, o.SubjectFlags.FlagArgs()...)
	}
	h.Command = append(command, h.Flags...)
	return h
}
