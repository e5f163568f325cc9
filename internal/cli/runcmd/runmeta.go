package runcmd

import (
	"fmt"
	"hash/crc32"
	"net/url"
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

// plan returns the traits of a run that determine its cells: a run resumes another only if their
// plans are equal. Settings that do not change a cell are left out, such as the number of jobs, the
// expectations and the output formats.
func (o *runOptions) plan(list []strategies.Strategy, scripts []selection.Chosen) (reports.Plan, error) {
	build, err := kit.BuildDigest()
	if err != nil {
		return reports.Plan{}, err
	}
	names := kit.Each(list, func(s strategies.Strategy) string { return s.Name })
	titles := kit.Each(scripts, func(s selection.Chosen) string { return s.Name })
	p := reports.Plan{Cells: len(list) * len(scripts) * len(o.Worlds), Differs: reports.Cell.Differs}
	p.Cell = func(place int) reports.CellName { // in the order in which cells numbers them
		return reports.CellName{
			World:    o.Worlds[place/(len(list)*len(scripts))],
			Strategy: list[place%len(list)].Name,
			Scenario: scripts[place/len(list)%len(scripts)].Name,
		}
	}
	say := func(name string, value any) {
		p.Traits = append(p.Traits, reports.Trait{Name: name, Value: fmt.Sprint(value)})
	}
	say("version", version.Of())
	p.Traits = append(p.Traits, reports.Trait{Name: "build of this program", Value: build, Digest: true})
	say("world", strings.Join(o.Worlds, ","))
	say("seed", o.Seed)
	say("ttl", o.TTL)
	say("nodes", o.Nodes)
	say("list of strategies", strings.Join(names, ","))
	say("list of scenarios", strings.Join(titles, ","))
	say("promote-by", o.PromoteBy)
	say("redis-server", o.Place.RedisServer)
	say("image", o.Place.Image)
	say("cell-timeout", o.CellTimeout)
	if s := o.Subject; s != nil {
		say("subject", fmt.Sprintf("%q on %d nodes, tags %q, full protocol %v", s.Words, s.Nodes, s.Tags, s.Full))
	}
	say("redis", strings.Join(withoutSecrets(o.Place.Redis), ","))
	for _, s := range scripts {
		played := *s.Script
		played.Expects = nil
		p.Traits = append(p.Traits, reports.Trait{
			Name: "text of the scenario " + s.Name, Value: digest(played.Format()), Digest: true,
		})
	}
	return p, nil
}

// digest returns the CRC-32 of text in hexadecimal. Collisions by intent are not a concern here.
func digest(text []byte) string { return fmt.Sprintf("%08x", crc32.ChecksumIEEE(text)) }

// withoutSecrets returns host and path of each address, without credentials.
func withoutSecrets(addresses []string) []string {
	var list []string
	for _, text := range addresses {
		if !strings.Contains(text, "://") {
			text = "redis://" + text
		}
		where := "?" // invalid addresses were refused before
		if u, err := url.Parse(strings.TrimSpace(text)); err == nil {
			where = u.Host + u.Path
		}
		list = append(list, where)
	}
	return list
}
