package reports

import (
	"slices"
	"strings"

	"github.com/lockfault/lockfault/checker"
	"github.com/lockfault/lockfault/reports/diagram"
)

// cutCommand returns a command's first word and the rest.
func cutCommand(text string) (name, rest string, found bool) { return strings.Cut(text, " ") }

// A durationFault is a fault that lasts, and the words by which a script ends it.
type durationFault struct {
	verb  string // the script's word for it
	kind  diagram.SpanKind
	label string
	ends  []string
}

// lastings are the faults of nodes and links that last. Those of clients are events of their
// own kinds, and what the gate does shows by what it kept.
func lastings() []durationFault {
	return []durationFault{
		{"partition", diagram.Cut, "cut off", []string{"heal"}},
		{"timeout", diagram.Cut, "cut off later", []string{"heal"}},
		{"crash", diagram.Stop, "down", []string{"restart"}},
		{"pause", diagram.Stop, "stopped", []string{"resume", "restart"}},
		{"split", diagram.Odd, "split", []string{"join"}},
		{"drift", diagram.Odd, "drift", []string{"drift"}},
		{"replication", diagram.Odd, "", []string{"replication", "failover", "join"}},
		{"failover", diagram.Stop, "failed over", nil}, // of the server that it was
	}
}

// An openSpan is what open spans have in common: the word that ends them, their lane, and from
// which nodes that lane's node is cut off.
type openSpan struct {
	end, from string
	lane      int
}

// faults are what the script did to nodes and links for a time.
func (p *diagramBuilder) faults() []diagram.Span {
	var list []diagram.Span
	open := map[string]map[openSpan][]int{} // the spans of each kind that last, by the word that ends them
	for i, e := range p.h.Events[:p.last+1] {
		if e.Kind != checker.Fault {
			continue
		}
		verb, rest := verbOf(e.Text)
		lanes := p.subjects(e)
		mended := p.mended(lanes, rest)
		for g, places := range open[verb] {
			if len(lanes) > 0 && !slices.Contains(lanes, g.lane) && !mended(g) {
				continue
			}
			for _, at := range places {
				if s := &list[at]; s.Open {
					s.To, s.Ended, s.Open = e.Time, i, false
					s.Text += ", for " + diagram.Words(s.Length())
				}
			}
			delete(open[verb], g)
		}
		for _, f := range lastings() {
			if f.verb != verb || verb == "replication" && (rest == "start" || rest == "") {
				continue
			}
			label := strings.TrimSpace(f.label + " " + rest)
			if f.label == "" {
				label = verb + " " + rest
			}
			if verb == "failover" {
				lanes = p.primary(p.failed[i])
			}
			for _, lane := range lanes {
				g := openSpan{lane: lane}
				if from, ok := strings.CutPrefix(rest, "from "); ok && p.nodes[lane] != "" {
					g.from = from
				}
				for _, g.end = range f.ends {
					if open[g.end] == nil {
						open[g.end] = map[openSpan][]int{}
					}
					open[g.end][g] = append(open[g.end][g], len(list))
				}
				list = append(list, diagram.Span{Kind: f.kind, Lane: lane, From: e.Time, To: p.end(), Began: i, Ended: -1, Owner: -1, Open: true,
					Label: label, Text: e.Text})
			}
		}
	}
	return list
}

// verbOf returns what a line of a script does, and what is said behind it: "partition" and
// "from n4" of "partition A from n4", "crash" of "n1 crash".
func verbOf(text string) (verb, rest string) {
	words := strings.Fields(text)
	if len(words) == 0 {
		return "", ""
	}
	for _, f := range lastings() {
		for _, word := range append([]string{f.verb}, f.ends...) {
			switch {
			case words[0] == word:
				rest := words[1:]
				for len(rest) > 0 && rest[0] != "from" { // whom, which the lane says
					rest = rest[1:]
				}
				return word, strings.Join(rest, " ")
			case len(words) > 1 && words[1] == word:
				return word, strings.Join(words[2:], " ")
			}
		}
	}
	return words[0], ""
}

// subjects returns the lanes that a fault is about: of the clients and servers that are named
// before anything else in it, those of a node all.
func (p *diagramBuilder) subjects(e checker.Event) []int {
	var lanes []int
	add := func(lane int) {
		if lane >= 0 && !slices.Contains(lanes, lane) {
			lanes = append(lanes, lane)
		}
	}
	words := strings.Fields(e.Text)
	for i, word := range words {
		if word == "from" || word == "before" || word == "after" || word == "on" || word == "by" {
			break
		}
		if i > 1 && len(lanes) > 0 && words[0] != "partition" && words[0] != "heal" && words[0] != "timeout" {
			break // n1 split C D is about n1
		}
		add(p.client(word))
		if node, _, server := strings.Cut(word, "/"); server || slices.Contains(p.h.Meta.Nodes, node) {
			if server {
				add(p.place("server " + word))
			} else {
				for _, lane := range p.serversOf[node] {
					add(lane)
				}
			}
		}
	}
	slices.Sort(lanes)
	return lanes
}

// mended returns whether to mend the ways of some lanes' nodes, all or from those that rest names, mends those from
// a lane's node to all that it was cut off from: what is mended of n3 is also what n1 was cut off by.
func (p *diagramBuilder) mended(lanes []int, rest string) func(openSpan) bool {
	var nodes []string
	for _, lane := range lanes {
		nodes = append(nodes, p.nodes[lane])
	}
	named := strings.Fields(rest)
	return func(g openSpan) bool {
		if g.from == "" || rest != "" && !slices.Contains(named, p.nodes[g.lane]) {
			return false
		}
		for node := range strings.FieldsSeq(g.from) {
			if !slices.Contains(nodes, node) {
				return false
			}
		}
		return true
	}
}

// primary returns the lane of the server that took a request, or none if there is no such request.
func (p *diagramBuilder) primary(request int) []int {
	if request < 0 {
		return nil
	}
	return []int{p.server(request)}
}
