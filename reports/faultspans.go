package reports

import (
	"slices"
	"strings"

	"github.com/lockfault/lockfault/checker"
	"github.com/lockfault/lockfault/reports/diagram"
)

// cutCommand returns the first word of a command and the rest.
func cutCommand(text string) (name, rest string, found bool) { return strings.Cut(text, " ") }

// A durationFault is a fault that lasts until a later line of the script ends it.
type durationFault struct {
	verb  string // keyword in the script language
	kind  diagram.SpanKind
	label string
	ends  []string
}

// lastings returns the faults of nodes and links that last. Faults of clients have event kinds of
// their own, and faults of the gate show as spans of held messages.
func lastings() []durationFault {
	return []durationFault{
		{"partition", diagram.Cut, "cut off", []string{"heal"}},
		{"timeout", diagram.Cut, "cut off later", []string{"heal"}},
		{"crash", diagram.Stop, "down", []string{"restart"}},
		{"pause", diagram.Stop, "stopped", []string{"resume", "restart"}},
		{"split", diagram.Odd, "split", []string{"join"}},
		{"drift", diagram.Odd, "drift", []string{"drift"}},
		{"replication", diagram.Odd, "", []string{"replication", "failover", "join"}},
		{"failover", diagram.Stop, "failed over", nil}, // of the server that was replaced
	}
}

// An openSpan is the key of open spans: the keyword that ends them, their lane, and the nodes from
// which the lane's node is cut off.
type openSpan struct {
	end, from string
	lane      int
}

// faults returns the spans of the script's faults of nodes and links.
func (p *diagramBuilder) faults() []diagram.Span {
	var list []diagram.Span
	open := map[string]map[openSpan][]int{} // open spans by the keyword that ends them
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

// verbOf returns the keyword of a script line and its arguments: "partition" and "from n4" for
// "partition A from n4", "crash" and "" for "n1 crash".
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
				for len(rest) > 0 && rest[0] != "from" { // skip the subjects, which the lanes show
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

// subjects returns the lanes that a fault concerns: those of the clients and servers at the
// beginning of its text. A node stands for all its servers.
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
			break // n1 split C D concerns n1 only
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

// mended returns a function that reports whether healing the links of the lanes' nodes ends an open
// partition of another lane: the partition must be from these nodes only and, if rest names nodes,
// the other lane's node must be among them. For example, healing n3 also heals the partition of n1
// from n3.
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

// primary returns the lane of the server that executed a request, or nil for a negative position.
func (p *diagramBuilder) primary(request int) []int {
	if request < 0 {
		return nil
	}
	return []int{p.server(request)}
}
