package main

import (
	"bufio"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// readVersions returns the versions that the go.mod in dir requires, by module.
func readVersions(dir string) (map[string]string, error) {
	f, err := os.Open(filepath.Join(dir, "go.mod"))
	if err != nil {
		return nil, err
	}
	defer f.Close()
	versions := map[string]string{}
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		words := strings.Fields(strings.TrimPrefix(lines.Text(), "require "))
		if len(words) >= 2 && strings.HasPrefix(words[1], "v") {
			versions[words[0]] = words[1]
		}
	}
	return versions, lines.Err()
}

// row is a line of the page's table: a strategy that shows a defect, or one that cures it.
type row struct {
	library, script, defect, option, strategy string
	sim, real                                 string // verdicts
}

// rows returns the lines of the table.
func rows(list []record, versions map[string]string, played map[cellKey]outcome) ([]row, error) {
	var all []row
	for _, r := range list {
		version, ok := versions[r.library.module]
		if !ok {
			return nil, fmt.Errorf("%s: go.mod doesn't require %s", r.name, r.library.module)
		}
		verdict := func(world, strategy string) string {
			o, ok := played[cellKey{world, strategy, r.name}]
			if !ok {
				return "not played"
			}
			return o.verdict(r.result)
		}
		add := func(library, script, defect, option, strategy string) {
			all = append(all, row{library, script, defect, option, strategy, verdict("sim", strategy), verdict("process", strategy)})
		}
		script := fmt.Sprintf("[%s](../%s/scripts/%s.txt)", r.name, module, r.name)
		var links []string
		for _, s := range r.sources {
			links = append(links, fmt.Sprintf("[%s](%s)", s.text, s.url))
		}
		add(r.library.name+" "+version, script, r.defect+" "+strings.Join(links, ", "), "", r.shows)
		for _, c := range r.cures {
			add("", "", "", c.what, c.strategy)
		}
	}
	return all, nil
}

// line returns the row as Markdown.
func (r row) line() string {
	strategy := ""
	if r.strategy != "" {
		strategy = "`" + r.strategy + "`"
	}
	return "| " + strings.Join([]string{r.library, r.script, r.defect, r.option, strategy, r.sim, r.real}, " | ") + " |"
}

// page returns the text of docs/track-record.md.
func page(list []record, versions map[string]string, played map[cellKey]outcome) (string, error) {
	all, err := rows(list, versions, played)
	if err != nil {
		return "", err
	}
	var out strings.Builder
	out.WriteString(head)
	for _, r := range all {
		fmt.Fprintln(&out, r.line())
	}
	out.WriteString("\n## What to know of each\n\n")
	for _, r := range list {
		if r.note != "" {
			fmt.Fprintf(&out, "- `%s`, %s: %s\n", r.name, r.shows, r.note)
		}
	}
	return out.String(), nil
}

const head = `# Track record

Known defects of other people's lock libraries, as regressions that can be played. The libraries are as their
authors published them, at their latest releases when this was made. Each line has one strategy of
[examples/knownbugs](../examples/knownbugs), which is lockfault with these libraries and options: first the one that shows the
defect, and below it what cures it. The verdicts are those of the script in virtual time (` + "`sim`" + `) and on redis-server
processes; [anomalies.md](anomalies.md) says what the words mean, and "nothing" says that nothing went wrong.

Made by ` + "`make track-record`" + `. ` + "`go test ./internal/tools/knownbugs`" + ` plays all of it in virtual time, and some of it on redis-server, and
compares. One script by hand:

` + "```" + `
cd examples/knownbugs
go run . run --strategy redsync,redsync-constant-value --scenario ./scripts/constant-value.txt --world sim,process
go run . trace redsync-constant-value ./scripts/constant-value.txt
` + "```" + `

A defect is listed if a script shows it. That doesn't say that a library is bad: most have an option, several are what an
option is documented to do, and below the table is what else is to be said.

| library | script | defect | cured by | strategy | in sim | on redis-server |
|---|---|---|---|---|---|---|
`
