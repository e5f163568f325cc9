package reports

import (
	"fmt"
	"slices"
	"sort"
	"time"

	"github.com/lockfault/lockfault/checker"
	"github.com/lockfault/lockfault/internal/printable"
	"github.com/lockfault/lockfault/reports/diagram"
)

// MostMoments is the default limit for the moments of a story in a picture. More moments make the
// picture unreadable.
const MostMoments = 60

// Picture returns the picture of a cell with at most the given number of moments: those around the
// events that prove something or, if nothing went wrong, those around the faults.
func Picture(cell Cell, h checker.History, most int) diagram.Picture {
	s := newStory(h)
	s.name(cell)
	p := &diagramBuilder{story: s, cell: cell, folded: map[int]fold{}}
	for _, f := range s.folds() {
		for _, i := range f.events {
			p.folded[i] = f
		}
	}
	return p.paint(most)
}

// A diagramBuilder makes the picture of a cell from its story.
type diagramBuilder struct {
	*story
	cell   Cell
	folded map[int]fold // fold of each folded event, by position
	lanes  []diagram.Lane
	places map[string]int // lanes by name
	nodes  []string       // node of each lane; empty for lanes of no server
	// serversOf holds the lanes of each node's servers.
	serversOf map[string][]int
	// lasted caches the result of spans.
	lasted []diagram.Span
}

func (p *diagramBuilder) paint(most int) diagram.Picture {
	p.lay()
	m := p.h.Meta
	pic := diagram.Picture{Title: p.cell.Strategy + " under " + p.cell.Scenario, Lease: m.TTL, End: p.end()}
	pic.Points, pic.Left = around(p.points(), most, p.shows)
	from, to := p.window(pic)
	for _, s := range p.spans() {
		if s.To >= from && s.From <= to && matters(s, pic) { // uncut, since its length is shown
			pic.Spans = append(pic.Spans, s)
		}
	}
	slices.SortStableFunc(pic.Spans, func(a, b diagram.Span) int { return int(sign(a.From - b.From)) })
	if most := max(mostSpans, most); len(pic.Spans) > most {
		pic.Left.Spans = len(pic.Spans) - most
		pic.Spans = pic.Spans[:most]
	}
	pic.Overlaps = p.overlaps(from, to, mostOverlaps)
	for _, w := range p.cell.Witnesses {
		pic.Proofs = append(pic.Proofs, diagram.Proof{Anomaly: string(w.Anomaly), Text: w.Message, Events: w.Events})
	}
	if list := p.sentences(); len(list) <= accountLimit {
		pic.Sentence = list
	}
	pic.Lanes = p.lanes
	pic.Axis = diagram.NewAxis(pic.Lease, p.times(pic, from, to))
	return printedPicture(withoutEmptyLanes(pic))
}

// printedPicture returns the picture with texts that are safe to print.
func printedPicture(pic diagram.Picture) diagram.Picture {
	pic.Title = shown(pic.Title)
	for i := range pic.Lanes {
		pic.Lanes[i].Name = shown(pic.Lanes[i].Name)
	}
	for i := range pic.Spans {
		s := &pic.Spans[i]
		s.Label, s.Text = short(s.Label), shortLine(s.Text)
	}
	for i := range pic.Points {
		m := &pic.Points[i]
		m.Label, m.Effect, m.Text = short(m.Label), short(m.Effect), shortLine(m.Text)
	}
	for i := range pic.Proofs {
		pic.Proofs[i].Text = shortLine(pic.Proofs[i].Text)
	}
	for i := range pic.Sentence {
		pic.Sentence[i].Text = shortLine(pic.Sentence[i].Text)
	}
	return pic
}

// mostOverlaps is the largest number of marked overlaps. A lock without mutual exclusion has an
// overlap for each pair of holds.
const mostOverlaps = 6

// mostSpans is the largest number of spans in a picture with no more moments than that. The
// earliest spans are kept.
const mostSpans = 500

func sign(d time.Duration) time.Duration { return max(-1, min(1, d)) }

// lay makes the lanes: all clients, each server that occurs in the history, and the resource.
func (p *diagramBuilder) lay() {
	p.places, p.serversOf = map[string]int{}, map[string][]int{}
	add := func(kind diagram.LaneKind, name, label string, number int) {
		p.places[name] = len(p.lanes)
		p.lanes = append(p.lanes, diagram.Lane{Kind: kind, Name: label, Number: number})
	}
	var clients, nodes index
	servers := map[string]*index{} // by node
	for _, name := range p.h.Meta.Clients {
		clients.place(name)
	}
	for _, name := range p.h.Meta.Nodes {
		nodes.place(name)
	}
	for _, e := range p.h.Events {
		if e.Client != "" {
			clients.place(e.Client)
		}
		if e.Node != "" {
			nodes.place(e.Node)
		}
		if e.Kind == checker.Request || e.Kind == checker.State {
			if servers[e.Node] == nil {
				servers[e.Node] = &index{}
			}
			servers[e.Node].place(serverOf(e))
		}
	}
	for i, name := range clients.names {
		add(diagram.Client, "client "+name, name, i)
	}
	for _, node := range nodes.names {
		list, further := []string{node + "/0"}, []string(nil) // further servers share the last lane
		if s := servers[node]; s != nil {
			own := min(len(s.names), mostServers)
			list, further = slices.Sorted(slices.Values(s.names[:own])), s.names[own:]
		}
		for _, server := range list {
			label := server
			if len(list) == 1 && server == node+"/0" {
				label = node
			}
			add(diagram.Server, "server "+server, label, 0)
		}
		if n := len(further); n > 0 {
			add(diagram.Server, "server "+further[0], fmt.Sprintf("%s: %d more", node, n), 0)
			for _, server := range further {
				p.places["server "+server] = len(p.lanes) - 1
			}
		}
		first := p.places["server "+list[0]]
		p.places["node "+node] = first
		for len(p.nodes) < first {
			p.nodes = append(p.nodes, "")
		}
		for lane := first; lane < len(p.lanes); lane++ {
			p.nodes = append(p.nodes, node)
			p.serversOf[node] = append(p.serversOf[node], lane)
		}
	}
	add(diagram.Resource, "resource", "resource", 0)
	for len(p.nodes) < len(p.lanes) {
		p.nodes = append(p.nodes, "")
	}
}

// mostServers is the largest number of servers of a node with a lane each. Further servers share a
// lane.
const mostServers = 16

func (p *diagramBuilder) client(name string) int { return p.place("client " + name) }

// server returns the lane of an event's server. A reply has the server of its request.
func (p *diagramBuilder) server(at int) int {
	if request, ok := p.requestAt[at]; ok {
		at = request
	}
	e := p.h.Events[at]
	if e.Server != "" || e.Kind == checker.Request || e.Kind == checker.State {
		return p.place("server " + serverOf(e))
	}
	return p.place("node " + e.Node)
}

func (p *diagramBuilder) place(name string) int {
	if at, ok := p.places[name]; ok {
		return at
	}
	return -1
}

// end returns the end of the run.
func (p *diagramBuilder) end() time.Duration {
	if len(p.h.Events) == 0 {
		return 0
	}
	return p.h.Events[p.last].Time
}

// window returns the period that the picture covers. The period extends to the end of the run if no
// later moment is left out, and to the end of open leases unless it is already longer than a lease.
func (p *diagramBuilder) window(pic diagram.Picture) (from, to time.Duration) {
	if len(pic.Points) == 0 {
		return 0, p.end()
	}
	from, to = pic.Points[0].At, pic.Points[len(pic.Points)-1].At
	if pic.Left.Behind == 0 {
		to = max(to, p.end())
	}
	if to-from >= pic.Lease {
		return from, to
	}
	last := to
	for _, s := range p.spans() {
		if (s.Kind == diagram.Key || s.Kind == diagram.Hold) && s.Open && s.Until <= to+3*pic.Lease/2 {
			last = max(last, s.Until)
		}
	}
	return from, last
}

// shows reports whether a moment contains an event that proves something.
func (p *diagramBuilder) shows(m diagram.Point) bool {
	return p.named[m.Event] || slices.ContainsFunc(m.With, func(i int) bool { return p.named[i] })
}

// proves reports whether an event proves an anomaly.
func (p *diagramBuilder) proves(i int) bool {
	return slices.ContainsFunc(p.cell.Witnesses, func(w checker.Witness) bool { return slices.Contains(w.Events, i) })
}

// matters reports whether a span concerns a shown moment. A long story has many operations and keys
// between two moments of its picture.
func matters(s diagram.Span, pic diagram.Picture) bool {
	from := func(event int) (first int, shown bool) {
		i := sort.Search(len(pic.Points), func(i int) bool { return pic.Points[i].Event >= event })
		if i == len(pic.Points) {
			return 0, false
		}
		return pic.Points[i].Event, true
	}
	first, shown := from(s.Began)
	if s.Kind != diagram.Gated {
		return shown && (first <= s.Ended || s.Ended < 0)
	}
	if shown && first == s.Began {
		return true
	}
	last, shown := from(s.Ended)
	return shown && last == s.Ended
}

// times returns the times at which the picture shows something.
func (p *diagramBuilder) times(pic diagram.Picture, from, to time.Duration) []time.Duration {
	times := []time.Duration{from, to}
	for _, m := range pic.Points {
		times = append(times, m.At)
	}
	for _, s := range pic.Spans {
		times = append(times, max(s.From, from), min(s.To, to))
		if s.Until > from && s.Until < to {
			times = append(times, s.Until)
		}
	}
	if pic.End > from && pic.End < to {
		times = append(times, pic.End)
	}
	return times
}

// withoutEmptyLanes removes the lanes that have no spans and no moments.
func withoutEmptyLanes(pic diagram.Picture) diagram.Picture {
	used := make([]bool, len(pic.Lanes))
	for _, s := range pic.Spans {
		used[s.Lane] = true
	}
	for _, m := range pic.Points {
		for _, lane := range []int{m.From, m.To} {
			if lane >= 0 {
				used[lane] = true
			}
		}
	}
	to := make([]int, len(pic.Lanes))
	var lanes []diagram.Lane
	for i, lane := range pic.Lanes {
		to[i] = -1
		if used[i] {
			to[i] = len(lanes)
			lanes = append(lanes, lane)
		}
	}
	move := func(lane *int) {
		if *lane >= 0 {
			*lane = to[*lane]
		}
	}
	pic.Lanes = lanes
	for i := range pic.Spans {
		move(&pic.Spans[i].Lane)
		move(&pic.Spans[i].Owner)
	}
	for i := range pic.Points {
		move(&pic.Points[i].From)
		move(&pic.Points[i].To)
	}
	for i := range pic.Overlaps {
		move(&pic.Overlaps[i].A)
		move(&pic.Overlaps[i].B)
	}
	return pic
}

// short returns a text that is safe to print, clipped to 40 characters for a label.
func short(text string) string { return clipTo(printable.Line(text), 40) }

// until returns the end of a lease as a label.
func (p *diagramBuilder) until(e checker.Event) string {
	if e.Expires == 0 {
		return "no TTL"
	}
	return fmt.Sprintf("until %s s", p.seconds(e.Expires))
}
