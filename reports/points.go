package reports

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/lockfault/lockfault/checker"
	"github.com/lockfault/lockfault/reports/diagram"
)

// points returns all moments in the order of the history. A fold is a single moment.
func (p *diagramBuilder) points() []diagram.Point {
	var list []diagram.Point
	events := p.h.Events
	for i, e := range events {
		if e.Kind == checker.End {
			break // events after the end are clean-up
		}
		if f, ok := p.folded[i]; ok {
			if i == f.events[0] {
				list = append(list, diagram.Point{
					Kind: diagram.Rounds, Event: e.Index, At: e.Time, From: p.client(e.Client), To: p.server(i),
					Label: f.text, Text: f.text, With: f.events[1:],
				})
			}
			continue
		}
		if e.Kind == checker.State && i > 0 && belongs(events[i-1], e) {
			if n := len(list); n > 0 && list[n-1].Event == i-1 {
				list[n-1].Effect = p.effect(e)
				list[n-1].With = []int{i}
				if p.proves(i) {
					list[n-1].Proof = append(list[n-1].Proof, i)
				}
			}
			continue
		}
		if m, ok := p.moment(i, e); ok {
			list = append(list, m)
		}
	}
	return list
}

// moment returns the moment of an event, and whether the event is shown.
func (p *diagramBuilder) moment(i int, e checker.Event) (diagram.Point, bool) {
	m := diagram.Point{Event: e.Index, At: e.Time, Sent: e.Sent, From: p.client(e.Client), To: -1,
		Text: p.plain(e)}
	if p.proves(i) {
		m.Proof = []int{i}
	}
	switch e.Kind {
	case checker.Invoke:
		m.Kind, m.Label = diagram.Invoke, string(e.Op)
	case checker.Return:
		m.Kind, m.Label = diagram.Return, string(e.Op)+" "+outcome(e.Result)
		m.Good, m.Bad = e.Result == checker.OK, e.Result != checker.OK
		if e.Token != 0 {
			m.Label += fmt.Sprintf(", token %d", e.Token)
		}
	case checker.Request:
		m.Kind, m.To, m.Label = diagram.Request, p.server(i), e.Command
	case checker.Reply:
		m.Kind, m.From, m.To, m.Label = diagram.Reply, p.server(i), m.From, e.Reply
	case checker.Push:
		m.Kind, m.From, m.To, m.Label = diagram.Push, p.server(i), m.From, "message "+e.Reply
	case checker.Held, checker.Passed, checker.Dropped:
		m.Kind = map[checker.Kind]diagram.MomentKind{checker.Held: diagram.Stopped, checker.Passed: diagram.Passed, checker.Dropped: diagram.Dropped}[e.Kind]
		m.To, m.Label = p.server(i), e.Command
		switch e.Direction {
		case "reply":
			m.From, m.To, m.Label = m.To, m.From, "reply to "+e.Command
		case "push":
			m.From, m.To, m.Label = m.To, m.From, "message"
		}
	case checker.State:
		m.Kind, m.From, m.Label = diagram.State, p.server(i), p.effect(e)
		if e.Cause != "" && e.Cause != checker.ByCommand {
			m.Label += " (" + string(e.Cause) + ")"
		}
	case checker.Write:
		m.Kind, m.To, m.Good, m.Bad = diagram.Write, p.place("resource"), e.Accepted, !e.Accepted
		m.Label = "write accepted"
		if !e.Accepted {
			m.Label = "write refused"
		}
		if e.Token != 0 {
			m.Label += fmt.Sprintf(", token %d", e.Token)
		}
	case checker.Lost:
		m.Kind, m.Label, m.Bad = diagram.Lost, "told that it is lost", true
	case checker.Pause, checker.Resume, checker.Crash, checker.Restart, checker.Cancel:
		m.Kind, m.Label = diagram.Process, map[checker.Kind]string{checker.Pause: "process stops", checker.Resume: "process goes on",
			checker.Crash: "process dies", checker.Restart: "process starts anew", checker.Cancel: "caller gives up"}[e.Kind]
	case checker.Fault:
		m.Kind, m.Label = diagram.Fault, e.Text
		switch {
		case e.Node != "":
			m.From = p.server(i)
		case m.From < 0:
			if lanes := p.subjects(e); len(lanes) == 1 {
				m.From = lanes[0]
			}
		}
	default:
		return m, false
	}
	return m, true
}

// effect describes the new state of the key: its owner and its expiry.
func (p *diagramBuilder) effect(e checker.Event) string {
	switch {
	case e.Owner == "" && e.Value == "":
		return "free"
	case e.Owner == "":
		return e.Value + ", nobody's, " + p.until(e)
	}
	return e.Owner + "'s " + p.until(e)
}

// around returns at most the given number of moments, and counts those left out. around prefers the
// moments for which shows returns true, then those near them. If there are none, faults take their
// place, and otherwise the beginning.
func around(all []diagram.Point, most int, shows func(diagram.Point) bool) ([]diagram.Point, diagram.Left) {
	if len(all) <= most {
		return all, diagram.Left{}
	}
	centres := places(all, shows)
	if len(centres) == 0 {
		centres = places(all, func(m diagram.Point) bool { return m.Kind == diagram.Fault || m.Kind == diagram.Process })
	}
	if len(centres) == 0 {
		centres = []int{0}
	}
	type candidate struct{ at, far int }
	list := make([]candidate, len(all))
	for i, m := range all {
		list[i] = candidate{i, distance(i, centres) * hurry(m)}
	}
	slices.SortStableFunc(list, func(a, b candidate) int { return cmp.Or(a.far-b.far, a.at-b.at) })
	keep := make([]int, 0, most)
	for _, c := range list[:most] {
		keep = append(keep, c.at)
	}
	slices.Sort(keep)
	kept := make([]diagram.Point, 0, most)
	for _, i := range keep {
		kept = append(kept, all[i])
	}
	left := diagram.Left{Before: keep[0], Behind: len(all) - 1 - keep[most-1]}
	left.Among = len(all) - most - left.Before - left.Behind
	return kept, left
}

// places returns the positions of the moments for which does returns true.
func places(all []diagram.Point, does func(diagram.Point) bool) (list []int) {
	for i, m := range all {
		if does(m) {
			list = append(list, i)
		}
	}
	return list
}

// distance returns the distance from i to the nearest of the places, which must be sorted.
func distance(i int, places []int) int {
	at, found := slices.BinarySearch(places, i)
	if found {
		return 0
	}
	nearest := 1 << 30
	if at < len(places) {
		nearest = places[at] - i
	}
	if at > 0 {
		nearest = min(nearest, i-places[at-1])
	}
	return nearest
}

// hurry returns the weight of a moment's distance. Moments that changed something have lower
// weights than mere messages, and are preferred.
func hurry(m diagram.Point) int {
	switch m.Kind {
	case diagram.Request, diagram.Reply, diagram.Push, diagram.Rounds:
		if m.Effect == "" {
			return 4
		}
		return 2
	}
	return 1
}
