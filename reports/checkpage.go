package reports

import (
	"bytes"
	"cmp"
	"fmt"
	"html/template"
	"io"
	"slices"
	"time"

	"github.com/lockfault/lockfault/checker/linear"
	"github.com/lockfault/lockfault/reports/diagram"
	"github.com/lockfault/lockfault/reports/page"
	"github.com/lockfault/lockfault/reports/svg"
)

// A Checked is a judged history of any lock, for a page.
type Checked struct {
	Name, Verdict, Spec string
	Notes               []string // further remarks
	Violations          []Drawn
}

// A Drawn is a violation with the events of its lock, in order. Without a Rule it is a lock without
// violations.
type Drawn struct {
	linear.Violation
	Events []linear.Event // events of the lock, and crashes
	Held   []linear.Held  // holds that must have existed
}

// WriteCheckPage writes the page of judged histories.
func WriteCheckPage(w io.Writer, list []Checked) error {
	p := page.Histories{Title: "lockfault check"}
	for _, c := range list {
		h := page.History{Name: shown(c.Name), Verdict: c.Verdict, Spec: c.Spec, Bad: c.Verdict != string(linear.Valid), Notes: each(c.Notes, shortLine)}
		for i := range c.Violations {
			v, err := drawn(&c.Violations[i])
			if err != nil {
				return err
			}
			h.Violations = append(h.Violations, v)
		}
		p.List = append(p.List, h)
	}
	return page.OfHistories(w, p)
}

func drawn(d *Drawn) (page.Violation, error) {
	v := page.Violation{Rule: string(d.Rule), Key: shown(d.Key), Certain: d.Certain, Text: shortLine(d.Message)}
	pic := d.Picture(MostMoments)
	var timeline bytes.Buffer
	if err := svg.Timeline(&timeline, pic, false); err != nil {
		return v, err
	}
	v.Timeline, v.Left = template.HTML(timeline.String()), pic.Left.All()
	for _, m := range pic.Points {
		v.Sentences = append(v.Sentences, page.Sentence{Event: m.Event, Text: m.Text, Proves: m.Proves()})
	}
	return v, nil
}

// Picture returns the picture of a violation with at most the given number of moments. Events are
// numbered by their lines in the history's file.
func (d *Drawn) Picture(most int) diagram.Picture {
	b := &bystander{Drawn: d, clients: map[string]int{}, proves: map[int]bool{}}
	for i := range d.Violation.Events {
		b.proves[d.Violation.Events[i].Line] = true
	}
	var pic diagram.Picture
	pic.Points, pic.Left = around(b.points(), most, diagram.Point.Proves)
	if n := len(d.Events); n > 0 {
		pic.End = d.Events[n-1].Time
	}
	if len(pic.Points) == 0 {
		return pic
	}
	from, to := pic.Points[0].At, pic.Points[len(pic.Points)-1].At
	for _, s := range append(b.holds(), b.calls(pic.End)...) {
		if s.To >= from && s.From <= to && (s.Kind == diagram.Hold || matters(s, pic)) {
			pic.Spans = append(pic.Spans, s)
		}
	}
	slices.SortStableFunc(pic.Spans, func(a, b diagram.Span) int { return cmp.Compare(a.From, b.From) })
	if d.Rule == linear.Overlap && len(d.Clients) > 1 && d.To >= from && d.From <= to {
		pic.Overlaps = []diagram.Overlap{{A: b.lane(d.Clients[0]), B: b.lane(d.Clients[1]), From: d.From, To: d.To}}
	}
	pic.Proofs = []diagram.Proof{{Anomaly: string(d.Rule), Text: d.Message, Events: linesOf(d.Violation.Events)}}
	for name, at := range b.clients {
		for len(pic.Lanes) <= at {
			pic.Lanes = append(pic.Lanes, diagram.Lane{})
		}
		pic.Lanes[at] = diagram.Lane{Kind: diagram.Client, Name: name, Number: at}
	}
	times := []time.Duration{from, to}
	for _, m := range pic.Points {
		times = append(times, m.At)
	}
	for _, s := range pic.Spans {
		times = append(times, max(s.From, from), min(s.To, to))
	}
	pic.Axis = diagram.NewAxis(0, times)
	return printedPicture(withoutEmptyLanes(pic))
}

func linesOf(events []linear.Event) []int {
	lines := make([]int, len(events))
	for i := range events {
		lines[i] = events[i].Line
	}
	return lines
}

// A bystander makes pictures from the client-side events only.
type bystander struct {
	*Drawn
	clients map[string]int // lanes by client
	proves  map[int]bool   // by line
}

func (b *bystander) lane(client string) int {
	at, ok := b.clients[client]
	if !ok {
		at = len(b.clients)
		b.clients[client] = at
	}
	return at
}

func (b *bystander) points() []diagram.Point {
	var list []diagram.Point
	for i := range b.Events {
		e := &b.Events[i]
		m := diagram.Point{Event: e.Line, At: e.Time, From: b.lane(e.Client), To: -1, Text: e.Describe()}
		if b.proves[e.Line] {
			m.Proof = []int{e.Line}
		}
		what := e.Op.String()
		switch {
		case e.Phase == linear.Crash:
			m.Kind, m.Label = diagram.Process, "process dies"
		case e.Phase == linear.Expired:
			m.Kind, m.Label, m.Bad = diagram.State, "lease ended", true
		case e.Phase == linear.Invoke:
			m.Kind, m.Label = diagram.Invoke, what
		case e.Op == linear.Use:
			m.Kind, m.Label = diagram.Lost, fmt.Sprintf("token %d accepted", e.Token)
			if m.Bad = e.Phase != linear.ReturnOK; m.Bad {
				m.Label = fmt.Sprintf("token %d refused", e.Token)
			}
		default:
			m.Kind, m.Good = diagram.Return, e.Phase == linear.ReturnOK
			m.Bad = !m.Good
			m.Label = what + " " + map[linear.Phase]string{linear.ReturnOK: "ok", linear.ReturnFail: "failed", linear.ReturnUnknown: "unknown"}[e.Phase]
			if e.Token != 0 {
				m.Label += fmt.Sprintf(", token %d", e.Token)
			}
		}
		list = append(list, m)
	}
	return list
}

func (b *bystander) holds() []diagram.Span {
	var list []diagram.Span
	at := map[int]int{} // positions of spans, by the line that proves the hold
	for _, h := range b.Held {
		s := diagram.Span{Kind: diagram.Hold, Lane: b.lane(h.Client), From: h.From, To: h.To, Began: h.Event.Line, Ended: -1,
			Owner: b.lane(h.Client), Label: "holds", Open: h.Open}
		s.Text = fmt.Sprintf("%s must have held the lock for %s", h.Client, diagram.Words(s.Length()))
		switch {
		case h.Brief:
			s.Label, s.Text = "held", fmt.Sprintf("%s must have held the lock for an instant", h.Client)
		case h.Permits > 1:
			s.Label = fmt.Sprintf("holds %d", h.Permits)
		}
		if i, again := at[h.Event.Line]; again && h.Permits == 1 { // a longer entry for the same hold
			list[i] = s
			continue
		}
		at[h.Event.Line] = len(list)
		list = append(list, s)
	}
	return list
}

func (b *bystander) calls(end time.Duration) []diagram.Span {
	var list []diagram.Span
	open := map[string]int{} // position of the open call's span, by client
	for i := range b.Events {
		e := &b.Events[i]
		at, under := open[e.Client]
		switch {
		case e.Op == linear.Use || e.Phase == linear.Expired:
		case e.Phase == linear.Invoke:
			open[e.Client] = len(list)
			list = append(list, diagram.Span{Kind: diagram.Call, Lane: b.lane(e.Client), From: e.Time, To: end, Began: e.Line, Ended: -1, Owner: -1, Open: true,
				Label: e.Op.String(), Text: fmt.Sprintf("%s called %s, and it did not come back", e.Client, e.Op)})
		case under:
			s := &list[at]
			s.To, s.Ended, s.Open = e.Time, e.Line, false
			s.Text = e.Describe() + ", after " + diagram.Words(s.Length())
			delete(open, e.Client)
		}
	}
	return list
}
