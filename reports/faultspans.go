package reports

import (
	"cmp"
	"slices"
	"strings"

	"github.com/lockfault/lockfault/checker"
	"github.com/lockfault/lockfault/faults"
	"github.com/lockfault/lockfault/reports/diagram"
	"github.com/lockfault/lockfault/scenarios"
)

// spanKind returns the kind of span for the appearance of a fault.
func spanKind(a faults.Appearance) diagram.SpanKind {
	switch a {
	case faults.ShownCut:
		return diagram.Cut
	case faults.ShownStopped:
		return diagram.Stop
	}
	return diagram.Odd
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
		fault, err := scenarios.ParseFault(e.Text)
		if err != nil {
			continue // a fault of another version
		}
		d := fault.Definition()
		verb, rest := d.Word, arguments(d, e.Text)
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
		if ends, ok := fault.(interface{ EndsOthers() bool }); d.Shown == nil || ok && ends.EndsOthers() {
			continue
		}
		label := strings.TrimSpace(cmp.Or(d.Shown.Label, verb) + " " + rest)
		if verb == "failover" {
			lanes = p.primary(p.failed[i])
		}
		for _, lane := range lanes {
			g := openSpan{lane: lane}
			if from, ok := strings.CutPrefix(rest, "from "); ok && p.nodes[lane] != "" {
				g.from = from
			}
			for _, g.end = range d.Shown.Ends {
				if open[g.end] == nil {
					open[g.end] = map[openSpan][]int{}
				}
				open[g.end][g] = append(open[g.end][g], len(list))
			}
			list = append(list, diagram.Span{Kind: spanKind(d.Shown.Appearance), Lane: lane, From: e.Time, To: p.end(), Began: i, Ended: -1, Owner: -1, Open: true,
				Label: label, Text: e.Text})
		}
	}
	return list
}

// arguments returns what follows the names and the word of a fault: "from n4" for "partition A from
// n4", and "" for "n1 crash".
func arguments(d faults.Definition, text string) string {
	words := strings.Fields(text)
	rest := words[slices.Index(words, d.Word)+1:]
	if !d.Target.PutsNamesFirst() { // the lanes show the names
		from := slices.Index(rest, "from")
		if from < 0 {
			return ""
		}
		rest = rest[from:]
	}
	return strings.Join(rest, " ")
}

// subjects returns the lanes of the clients and servers that the event's fault is about. A node
// stands for all its servers.
func (p *diagramBuilder) subjects(e checker.Event) []int {
	fault, err := scenarios.ParseFault(e.Text)
	if err != nil {
		return nil
	}
	var lanes []int
	add := func(lane int) {
		if lane >= 0 && !slices.Contains(lanes, lane) {
			lanes = append(lanes, lane)
		}
	}
	for _, name := range fault.Definition().Targets(fault) {
		node, _, server := strings.Cut(name, "/")
		switch {
		case faults.IsClient(name):
			add(p.client(name))
		case server:
			add(p.place("server " + name))
		default:
			for _, lane := range p.serversOf[node] {
				add(lane)
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
	nodes := each(lanes, func(lane int) string { return p.nodes[lane] })
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
