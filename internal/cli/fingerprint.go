package cli

import (
	"fmt"
	"hash/crc32"
	"io"
	"net/url"
	"os"
	"strings"

	"github.com/lockfault/lockfault/internal/input"
	"github.com/lockfault/lockfault/internal/version"
	"github.com/lockfault/lockfault/reports"
	"github.com/lockfault/lockfault/strategies"
)

// plan returns what the cells of a run depend on: only a run with the same plan
// goes on where this one ends. What doesn't change a cell is not among it: how
// many are played at a time, what is expected of them, and what is done with them.
func (o *runOptions) plan(list []strategies.Strategy, scripts []chosen) (reports.Plan, error) {
	build, err := digestOfThisProgram()
	if err != nil {
		return reports.Plan{}, err
	}
	var names, titles []string
	for _, s := range list {
		names = append(names, s.Name)
	}
	for _, s := range scripts {
		titles = append(titles, s.Name)
	}
	p := reports.Plan{Cells: len(list) * len(scripts) * len(o.worlds), Differs: reports.Cell.Differs}
	p.Cell = func(place int) reports.CellName { // as cells numbers them
		return reports.CellName{
			World:    o.worlds[place/(len(list)*len(scripts))],
			Strategy: list[place%len(list)].Name,
			Scenario: scripts[place/len(list)%len(scripts)].Name,
		}
	}
	say := func(name string, value any) {
		p.Traits = append(p.Traits, reports.Trait{Name: name, Value: fmt.Sprint(value)})
	}
	say("version", version.Of())
	p.Traits = append(p.Traits, reports.Trait{Name: "build of this program", Value: build, Digest: true})
	say("world", strings.Join(o.worlds, ","))
	say("seed", o.seed)
	say("ttl", o.ttl)
	say("nodes", o.nodes)
	say("list of strategies", strings.Join(names, ","))
	say("list of scenarios", strings.Join(titles, ","))
	say("failover", o.failover)
	say("redis-server", o.place.RedisServer)
	say("image", o.place.Image)
	say("cell-timeout", o.cellTimeout)
	if s := o.subject; s != nil {
		say("subject", fmt.Sprintf("%q on %d nodes, tags %q, full protocol %v", s.Words, s.Nodes, s.Tags, s.Full))
	}
	say("redis", strings.Join(withoutSecrets(o.place.Redis), ","))
	for _, s := range scripts {
		played := *s.Script
		played.Expects = nil
		p.Traits = append(p.Traits, reports.Trait{
			Name: "text of the scenario " + s.Name, Value: digest(played.Format()), Digest: true,
		})
	}
	return p, nil
}

// digest returns a short name for a text. Nobody tries to find another text of
// the same name.
func digest(text []byte) string { return fmt.Sprintf("%08x", crc32.ChecksumIEEE(text)) }

// digestOfThisProgram tells builds apart that call themselves by one version: a
// working copy's, or a user's with strategies that have changed.
func digestOfThisProgram() (string, error) {
	name, err := os.Executable()
	if err != nil {
		return "", fmt.Errorf("find this program's file: %w", err)
	}
	f, err := input.Open(name, input.Program)
	if err != nil {
		return "", fmt.Errorf("read this program's file: %w", err)
	}
	defer f.Close()
	sum := crc32.NewIEEE()
	if _, err := io.CopyBuffer(sum, f, make([]byte, 1<<20)); err != nil {
		return "", fmt.Errorf("read this program's file: %w", err)
	}
	return fmt.Sprintf("%08x", sum.Sum32()), nil
}

// withoutSecrets returns where the servers are that the addresses name.
func withoutSecrets(addresses []string) []string {
	var list []string
	for _, text := range addresses {
		if !strings.Contains(text, "://") {
			text = "redis://" + text
		}
		where := "?" // what can't be read was refused before
		if u, err := url.Parse(strings.TrimSpace(text)); err == nil {
			where = u.Host + u.Path
		}
		list = append(list, where)
	}
	return list
}
