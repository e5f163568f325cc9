package explore

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/lockfault/lockfault/checker"
	"github.com/lockfault/lockfault/faults"
	"github.com/lockfault/lockfault/scenarios"
)

// A candidate is a script during shrinking. A candidate is immutable: its methods return changed
// copies.
type candidate struct {
	// clients are the clients that take part. head holds the lines before the units, which
	// shrinking keeps: settings, and the lines with which every path of a search begins.
	clients, head []string
	// units are removed as a whole: each is the lines of one transition, or a single line.
	units [][]string
	// path reports whether the units are transitions of a search.
	path bool
}

// draftOf returns the candidate of a finding.
func draftOf(f Finding) candidate {
	lines := strings.Split(strings.TrimRight(f.Script, "\n"), "\n")
	moves := 0
	for _, unit := range f.path {
		moves += len(unit)
	}
	d := candidate{head: lines[:max(0, len(lines)-2-moves)], units: f.path, path: true}
	d.clients = clientsOf(d.head)
	return d
}

// draftOfScript returns the candidate of any script: its units are the script's steps. Expect lines
// and comments are dropped, because they describe the whole script.
func draftOfScript(name string, text []byte) (candidate, error) {
	script, err := scenarios.Parse(name, text)
	if err != nil {
		return candidate{}, err
	}
	script.Doc = nil
	text = script.Format()
	if script, err = scenarios.Parse(name, text); err != nil {
		return candidate{}, err
	}
	steps := map[int]bool{}
	for _, step := range script.Steps {
		steps[step.Line] = true
	}
	first := script.Steps[0].Line
	for _, e := range script.Expects {
		first = min(first, e.Line)
	}
	d := candidate{clients: script.Clients}
	for i, line := range strings.Split(string(text), "\n") {
		line, _, _ = strings.Cut(line, "  #")
		switch {
		case !isStatement(line):
		case steps[i+1]:
			d.units = append(d.units, []string{line})
		case i+1 < first:
			d.head = append(d.head, line)
		}
	}
	return d, nil
}

// clientsOf returns the clients that the settings declare.
func clientsOf(head []string) []string {
	for _, line := range head {
		if words := strings.Fields(line); len(words) > 1 && words[0] == "clients" {
			return words[1:]
		}
	}
	return nil
}

// text returns the candidate as a script in canonical form, or an error if it is not a valid
// script.
func (d candidate) text(comment string, expect []checker.Anomaly) (string, error) {
	var b strings.Builder
	if comment != "" {
		fmt.Fprintf(&b, "# %s\n\n", comment)
	}
	for _, line := range d.head {
		fmt.Fprintln(&b, line)
	}
	for _, unit := range d.units {
		for _, line := range unit {
			fmt.Fprintln(&b, line)
		}
	}
	words := []string{"none"}
	for i, a := range expect {
		words = append(words[:i], string(a))
	}
	fmt.Fprintf(&b, "\nexpect %s\n", strings.Join(words, " "))
	script, err := scenarios.Parse("found.txt", []byte(b.String()))
	if err != nil {
		return "", err
	}
	return string(script.Format()), nil
}

// requests returns the number of requests that the units deliver.
func (d candidate) requests() int {
	n := 0
	for _, unit := range d.units {
		lost := slices.ContainsFunc(unit, func(line string) bool { return strings.HasPrefix(line, "partition ") })
		for _, line := range unit {
			if words := strings.Fields(line); !lost && words[0] == "pass" && slices.Contains(words, "once") {
				n++
			}
		}
	}
	return n
}

// without returns the candidate without the units for which out returns true.
func (d candidate) without(out func(i int) bool) candidate {
	units := make([][]string, 0, len(d.units))
	for i, unit := range d.units {
		if !out(i) {
			units = append(units, unit)
		}
	}
	d.units = units
	return d
}

// each returns the candidate with each line replaced by the result of become; a line is removed if
// ok is false.
func (d candidate) each(become func(line string) (string, bool)) candidate {
	through := func(lines []string) []string {
		var list []string
		for _, line := range lines {
			if !isStatement(line) {
				list = append(list, line)
			} else if line, ok := become(line); ok {
				list = append(list, line)
			}
		}
		return list
	}
	d.head = through(d.head)
	units := make([][]string, 0, len(d.units))
	for _, unit := range d.units {
		if unit = through(unit); len(unit) > 0 {
			units = append(units, unit)
		}
	}
	d.units = units
	return d
}

// isStatement reports whether a line is neither empty nor a comment.
func isStatement(line string) bool { return line != "" && !strings.HasPrefix(line, "#") }

// A sentence is a line split into words that may name clients, and the rest. The rest begins at
// "before" or "after", because the commands that follow look like client names.
type sentence struct{ words, rest []string }

func sentenceOf(line string) sentence {
	words := strings.Fields(line)
	for i, word := range words {
		if word == string(faults.Before) || word == string(faults.After) {
			return sentence{words[:i], words[i:]}
		}
	}
	return sentence{words: words}
}

func (s sentence) String() string { return strings.Join(slices.Concat(s.words, s.rest), " ") }

// named returns the clients that a line names, in the order of the line.
func (d candidate) named(line string) []string {
	var list []string
	for _, word := range sentenceOf(line).words {
		if slices.Contains(d.clients, word) {
			list = append(list, word)
		}
	}
	return list
}

// sole returns the only client that a unit names; "" if the unit names none or several.
func (d candidate) sole(unit []string) string {
	var sole string
	for _, line := range unit {
		for _, name := range d.named(line) {
			if sole != "" && name != sole {
				return ""
			}
			sole = name
		}
	}
	return sole
}

// withoutClient returns the candidate without a client: lines that name only this client are
// removed, and its name is removed from other lines.
func (d candidate) withoutClient(client string) candidate {
	out := d.each(func(line string) (string, bool) {
		named := d.named(line)
		if !slices.Contains(named, client) {
			return line, true
		}
		if len(named) == 1 {
			return "", false
		}
		s := sentenceOf(line)
		s.words = slices.DeleteFunc(s.words, func(word string) bool { return word == client })
		return s.String(), true
	})
	out.clients = slices.DeleteFunc(slices.Clone(d.clients), func(name string) bool { return name == client })
	return out
}

// renamed returns the candidate with its clients renamed to A, B and so on, in the order in which
// the units name them.
func (d candidate) renamed() candidate {
	var order []string
	for _, unit := range d.units {
		for _, line := range unit {
			order = append(order, d.named(line)...)
		}
	}
	names := map[string]string{}
	for _, name := range append(order, d.clients...) {
		if _, ok := names[name]; !ok {
			names[name] = string(rune('A' + len(names)))
		}
	}
	out := d.each(func(line string) (string, bool) {
		s := sentenceOf(line)
		for i, word := range s.words {
			if name, ok := names[word]; ok && slices.Contains(d.clients, word) {
				s.words[i] = name
			}
		}
		return s.String(), true
	})
	out.clients = clientsOf(out.head)
	for i, line := range out.head { // the order of clients has no meaning here
		s := sentenceOf(line)
		is := func(word string) bool { return slices.Contains(out.clients, word) }
		if first := slices.IndexFunc(s.words, is); first >= 0 {
			slices.Sort(s.words[first:])
			out.head[i] = s.String()
		}
	}
	slices.Sort(out.clients)
	return out
}

// recounted returns the path with the number in each "await … replies" line updated to the
// delivered requests of the client's operation. Shrinking may have removed some of the requests.
func (d candidate) recounted() candidate {
	passed := map[string]int{}
	if !d.path {
		return d
	}
	units := d.units
	d.units = make([][]string, len(units))
	for i, unit := range units {
		for _, line := range unit {
			s := sentenceOf(line)
			switch s.words[0] {
			case "begin":
				passed[s.words[1]] = 0
			case "pass":
				passed[s.words[1]]++
			case "await":
				if s.words[2] == string(scenarios.AwaitReplies) {
					s.words[3] = strconv.Itoa(passed[s.words[1]])
				}
			}
			d.units[i] = append(d.units[i], s.String())
		}
	}
	return d
}
