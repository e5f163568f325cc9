package runcmd

import (
	"fmt"
	"hash/crc32"
	"net/url"
	"strings"

	"github.com/lockfault/lockfault/internal/cli/kit"
	"github.com/lockfault/lockfault/internal/cli/selection"
	"github.com/lockfault/lockfault/internal/version"
	"github.com/lockfault/lockfault/reports"
	"github.com/lockfault/lockfault/strategies"
)

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
