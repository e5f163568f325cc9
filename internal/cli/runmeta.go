package cli

import (
	"fmt"
	"runtime"
	"slices"
	"strings"

	"github.com/lockfault/lockfault/internal/version"
	"github.com/lockfault/lockfault/reports"
	"github.com/lockfault/lockfault/strategies"
)

// head returns the metadata of results.json. head does not depend on the number of jobs or on the
// path of the report.
func (o *runOptions) head(list []strategies.Strategy, scripts []chosen, costs []reports.Cost) reports.Head {
	h := reports.Head{
		Costs: costs, Version: version.Of(), World: strings.Join(o.worlds, ","), Seed: o.seed, TTL: o.lease(),
		Machine: fmt.Sprintf("%s/%s, %d processors", runtime.GOOS, runtime.GOARCH, runtime.NumCPU()),
		Flags:   o.flags(),
	}
	for _, s := range list {
		d := reports.StrategyInfo{Name: s.Name, Summary: s.Summary, Service: s.Service, Nodes: max(1, s.Nodes), Renews: slices.Contains(s.Tags, strategies.TagRenewing)}
		if o.subject != nil && s.Name == o.subject.Name {
			d.Flags = o.subjectFlags.flagArgs()
		}
		h.Strategies = append(h.Strategies, d)
	}
	for _, s := range scripts {
		h.Scripts = append(h.Scripts, reports.NewScript(s.Name, s.file, string(s.Format())))
	}
	h.Command = []string{product, "run"}
	for _, words := range [][2]string{{"--strategy", strings.Join(o.strategies, ",")}, {"--scenario", strings.Join(o.scenarios, ",")}, {"--expect", o.expect}, {"--costs", o.costs}} {
		if words[1] != "" {
			h.Command = append(h.Command, words[0], words[1])
		}
	}
	if !slices.Equal(o.worlds, []string{reports.Reference}) {
		h.Command = append(h.Command, "--world", strings.Join(o.worlds, ","))
	}
	if o.subject != nil {
		h.Command = append(h.Command, o.subjectFlags.flagArgs()...)
	}
	h.Command = append(h.Command, h.Flags...)
	return h
}

// flags returns the flags that determine a cell in any world. flags omits the addresses and
// programs of real servers, which differ between machines.
func (o *playOptions) flags() []string {
	var list []string
	if o.seed != defaultSeed {
		list = append(list, "--seed", fmt.Sprint(o.seed))
	}
	if lease := o.lease(); lease != 0 {
		list = append(list, "--ttl", lease.String())
	}
	if o.nodes != 0 {
		list = append(list, "--nodes", fmt.Sprint(o.nodes))
	}
	if o.failover != byReplicaOf {
		list = append(list, "--failover", o.failover)
	}
	return list
}
