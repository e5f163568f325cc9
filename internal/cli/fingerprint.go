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

// plan returns the traits of a run that determine its cells: a run resumes another only if their
// plans are equal. Settings that do not change a cell are left out, such as the number of jobs, the
// expectations and the output formats.
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
	p.Cell = func(place int) reports.CellName { // in the order in which cells numbers them
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

// digest returns the CRC-32 of text in hexadecimal. Collisions by intent are not a concern here.
func digest(text []byte) string { return fmt.Sprintf("%08x", crc32.ChecksumIEEE(text)) }

// digestOfThisProgram returns a checksum of the executable. The checksum distinguishes builds with
// the same version, such as builds of a working copy or of a user's changed strategies.
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
