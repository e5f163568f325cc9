package reports

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/lockfault/lockfault/checker"
	"github.com/lockfault/lockfault/reports/diagram"
)

// spans returns all spans of the story, in no order of time.
func (p *diagramBuilder) spans() []diagram.Span {
	if p.lasted == nil {
		p.lasted = slices.Concat(p.holds(), p.calls(), p.keys(), p.rounds(), p.stops(), p.gatedSpans(), p.faults())
	}
	return p.lasted
}

// holds returns the spans in which clients believed that they held the lock.
func (p *diagramBuilder) holds() []diagram.Span {
	var list []diagram.Span
	valid := p.validities()
	for _, h := range p.beliefs {
		s := diagram.Span{Kind: diagram.Hold, Lane: p.client(h.Client), From: h.Start, To: h.End, Began: h.Began, Ended: h.Ended,
			Owner: p.client(h.Client), Label: "holds", Open: h.By == checker.StillOpen}
		how := map[checker.Ending]string{checker.ByRelease: "until it called release", checker.ByLoss: "until its lock told it of the loss",
			checker.ByCrash: "until it died", checker.ByValidity: "until the validity was over", checker.StillOpen: "to the end of the run"}[h.By]
		if s.Open {
			s.Ended = -1
			if p.h.Meta.HonourValidity && valid[h.Client].at >= h.Began {
				s.Until = valid[h.Client].until
			}
		}
		s.Text = fmt.Sprintf("%s believed that it held the lock for %s, %s", h.Client, diagram.Words(h.End-h.Start), how)
		list = append(list, s)
	}
	return list
}

// A validity is the end of a hold that a client's lock returned with an event.
type validity struct {
	at    int
	until time.Duration
}

// validities returns the last validity of each client.
func (p *diagramBuilder) validities() map[string]validity {
	last := map[string]validity{}
	for i, e := range p.h.Events[:p.last+1] {
		if e.Kind == checker.Return && e.Result == checker.OK && e.Until > 0 {
			last[e.Client] = validity{i, e.Until}
		}
	}
	return last
}

// overlaps returns the first overlaps between from and to, at most the given number.
func (p *diagramBuilder) overlaps(from, to time.Duration, most int) []diagram.Overlap {
	var list []diagram.Overlap
	for i, a := range p.beliefs {
		if a.End < from {
			continue
		}
		for _, b := range p.beliefs[i+1:] { // holds that began later
			if b.Began >= a.Ended || b.Start > to || len(list) == most {
				break
			}
			until := max(b.Start, min(a.End, b.End))
			if a.Client != b.Client && until >= from {
				open := a.By == checker.StillOpen && b.By == checker.StillOpen
				list = append(list, diagram.Overlap{A: p.client(a.Client), B: p.client(b.Client), From: b.Start, To: until, Open: open})
			}
		}
	}
	return list
}

// calls returns the spans of the operations.
func (p *diagramBuilder) calls() []diagram.Span {
	var list []diagram.Span
	open := map[int]int{} // position of the span of each open call, by its number
	for i, e := range p.h.Events[:p.last+1] {
		switch e.Kind {
		case checker.Invoke:
			open[e.Call] = len(list)
			list = append(list, diagram.Span{Kind: diagram.Call, Lane: p.client(e.Client), From: e.Time, To: p.end(), Began: i, Ended: -1, Owner: -1, Open: true,
				Label: string(e.Op), Text: fmt.Sprintf("%s called %s, and it did not come back", e.Client, e.Op)})
		case checker.Return:
			at, ok := open[e.Call]
			if !ok {
				continue
			}
			s := &list[at]
			s.To, s.Ended, s.Open = e.Time, i, false
			s.Label += ": " + string(e.Result)
			s.Text = fmt.Sprintf("%s, after %s", p.plain(e), diagram.Words(s.Length()))
		}
	}
	return list
}

// keys returns the spans in which the key on a server had the same owner. Renewals do not end a
// span.
func (p *diagramBuilder) keys() []diagram.Span {
	var list []diagram.Span
	open := map[int]int{} // by lane
	for i, e := range p.h.Events[:p.last+1] {
		if at, ok := p.failed[i]; ok {
			for _, lane := range p.primary(at) { // the server is gone with all its data
				if at, ok := open[lane]; ok {
					list[at].To, list[at].Ended, list[at].Open = e.Time, i, false
					list[at].Text += ", until its server failed"
					delete(open, lane)
				}
			}
		}
		if e.Kind != checker.State {
			continue
		}
		lane := p.server(i)
		at, ok := open[lane]
		same := ok && (e.Owner != "" || e.Value != "") && list[at].Owner == p.client(e.Owner) && (e.Owner != "" || list[at].Label == e.Value)
		switch {
		case same:
			list[at].Until = e.Expires
			continue
		case ok:
			s := &list[at]
			s.To, s.Ended, s.Open = e.Time, i, false
			s.Text += fmt.Sprintf(", and was so for %s", diagram.Words(s.Length()))
			if e.Cause != "" && e.Cause != checker.ByCommand {
				s.Text += ", until " + string(e.Cause)
			}
			delete(open, lane)
		}
		if e.Owner == "" && e.Value == "" {
			continue
		}
		open[lane] = len(list)
		list = append(list, diagram.Span{Kind: diagram.Key, Lane: lane, From: e.Time, To: p.end(), Began: i, Ended: -1, Open: true, Until: e.Expires,
			Owner: p.client(e.Owner), Label: cmp.Or(e.Owner, e.Value), Text: p.key(e)})
	}
	return list
}

// rounds returns the spans of folded rounds.
func (p *diagramBuilder) rounds() []diagram.Span {
	var list []diagram.Span
	for i := range p.h.Events {
		f, ok := p.folded[i]
		if !ok || i != f.events[0] {
			continue
		}
		first, last := p.h.Events[i], p.h.Events[f.events[len(f.events)-1]]
		list = append(list, diagram.Span{Kind: diagram.Repeat, Lane: p.client(first.Client), From: first.Time, To: last.Time, Began: i, Ended: last.Index,
			Owner: -1, Label: "asks again and again", Text: f.text})
	}
	return list
}

// stops returns the spans in which a client's process was paused or dead.
func (p *diagramBuilder) stops() []diagram.Span {
	var list []diagram.Span
	open := map[string]int{}
	begin := func(i int, e checker.Event, label, says string) {
		open[e.Client] = len(list)
		list = append(list, diagram.Span{Kind: diagram.Stop, Lane: p.client(e.Client), From: e.Time, To: p.end(), Began: i, Ended: -1, Owner: -1, Open: true,
			Label: label, Text: e.Client + says})
	}
	end := func(i int, e checker.Event) {
		if at, ok := open[e.Client]; ok {
			s := &list[at]
			s.To, s.Ended, s.Open = e.Time, i, false
			s.Label += " " + diagram.Words(s.Length())
			s.Text += " for " + diagram.Words(s.Length())
			delete(open, e.Client)
		}
	}
	for i, e := range p.h.Events[:p.last+1] {
		switch e.Kind {
		case checker.Pause:
			end(i, e)
			begin(i, e, "paused", "'s process stood still")
		case checker.Crash:
			end(i, e)
			begin(i, e, "dead", "'s process was dead")
		case checker.Resume, checker.Restart:
			end(i, e)
		}
	}
	return list
}

// gatedSpans returns the spans in which the gate held a message.
func (p *diagramBuilder) gatedSpans() []diagram.Span {
	type message struct{ client, node, direction, command string }
	var list []diagram.Span
	waiting := map[message][]int{}
	for i, e := range p.h.Events[:p.last+1] {
		m := message{e.Client, e.Node, e.Direction, e.Command}
		switch e.Kind {
		case checker.Held:
			waiting[m] = append(waiting[m], len(list))
			name, _, _ := strings.Cut(e.Command, " ")
			if e.Direction != "request" {
				name = "reply to " + name
			}
			list = append(list, diagram.Span{Kind: diagram.Gated, Lane: p.client(e.Client), From: e.Time, To: p.end(), Began: i, Ended: -1, Owner: -1, Open: true,
				Label: "kept: " + name, Text: "the gate kept this: " + p.message(e)})
		case checker.Passed, checker.Dropped:
			if queue := waiting[m]; len(queue) > 0 {
				s := &list[queue[0]]
				waiting[m] = queue[1:]
				s.To, s.Ended, s.Open = e.Time, i, false
				s.Text += ", for " + diagram.Words(s.Length())
			}
		}
	}
	return list
}
