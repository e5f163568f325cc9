package svg

import (
	"fmt"
	"io"

	"github.com/lockfault/lockfault/reports/picture"
)

// Where things lie in a timeline.
const (
	gutter   = 74.0 // left of the axis, for the names of lanes
	flagsTop = 12.0 // of the row of numbers of what proves something
	lanesTop = 50.0
)

// A timeline is being drawn.
type timeline struct {
	canvas
	p      picture.Picture
	alone  bool
	plain  string    // the messages that came through, in one path
	tops   []float64 // of lanes
	bottom float64
}

// Timeline draws time from left to right, to scale, with a lane for each participant: what
// clients believed and called, whose the key was on each server, what the resource decided,
// and the faults. One that stands alone brings its style along.
func Timeline(w io.Writer, p picture.Picture, alone bool) error {
	t := &timeline{p: p, alone: alone}
	y := lanesTop
	for _, lane := range p.Lanes {
		t.tops = append(t.tops, y)
		y += heightOf(lane.Kind) + 8
	}
	t.bottom = y
	t.axis()
	t.lanes()
	t.spans()
	t.overlaps()
	t.moments()
	return t.write(w, gutter+max(p.Axis.Width(), 260)+8, t.bottom+34, nameOf(p, "timeline"), alone)
}

func heightOf(kind picture.LaneKind) float64 {
	if kind == picture.Client {
		return 40
	}
	return 22
}

// axis draws the scale, and says of each piece how it is drawn.
func (t *timeline) axis() {
	last := -1000.0
	tick := func(x float64, text string) {
		if x-last < widthOf(text)+8 {
			return
		}
		last = x
		t.path("l", "", fmt.Sprintf("M%s %sV%s", at(x), at(lanesTop-8), at(t.bottom)))
		t.text(x, lanesTop-12, "d c", text)
	}
	pieces := t.p.Axis.Pieces()
	for _, piece := range pieces {
		x, w := gutter+piece.X, piece.Width
		label := picture.Words(piece.Length())
		switch piece.Scale {
		case picture.Magnified:
			t.rect(x, lanesTop-8, w, t.bottom-lanesTop+8, "z", "magnified: "+label)
		case picture.Folded:
			t.rect(x, lanesTop-8, w, t.bottom-lanesTop+8, "f", "folded: "+label)
		}
		if widthOf(label) <= w {
			t.text(x+w/2, t.bottom+12, "d c", label)
		}
	}
	for i, piece := range pieces {
		x, w := gutter+piece.X, piece.Width
		if i == 0 {
			tick(x, t.p.Axis.Seconds(piece.From))
		}
		tick(x+w, t.p.Axis.Seconds(piece.To))
	}
	t.text(4, lanesTop-12, "d", "seconds")
	note := "hatched: folded"
	if t.p.Lease > 0 {
		note = fmt.Sprintf("lease %s = %s px; shaded: magnified %s×; ", picture.Words(t.p.Lease), picture.Digits(t.p.Axis.LeaseWidth, 3), picture.Digits(t.p.Axis.Times, 2)) + note
	}
	t.text(4, t.bottom+28, "d", note)
}

func (t *timeline) lanes() {
	for i, lane := range t.p.Lanes {
		name := fit(lane.Name, gutter-8)
		t.text(4, t.tops[i]+14, "b", name)
		y := t.tops[i] + heightOf(lane.Kind) + 4
		t.path("l", "", fmt.Sprintf("M0 %sH%s", at(y), at(gutter+t.p.Axis.Width())))
	}
	if end := t.p.Axis.X(t.p.End); len(t.p.Axis.Segments) > 0 && t.p.End < t.p.Axis.Segments[len(t.p.Axis.Segments)-1].To {
		t.path("r", "the run was over", fmt.Sprintf("M%s %sV%s", at(gutter+end), at(lanesTop-8), at(t.bottom)))
		t.text(gutter+end+3, t.bottom-2, "d", "end of the run: what was granted goes on")
	}
}

// spans draws what lasted, first what lies behind the rest.
func (t *timeline) spans() {
	for _, s := range t.p.Spans {
		if s.Kind == picture.Stop || s.Kind == picture.Cut {
			t.span(s)
		}
	}
	for _, s := range t.p.Spans {
		if s.Kind != picture.Stop && s.Kind != picture.Cut {
			t.span(s)
		}
	}
}

func (t *timeline) span(s picture.Span) {
	x := gutter + t.p.Axis.X(s.From)
	w := gutter + t.p.Axis.X(s.To) - x
	y, h, class := t.band(s)
	t.rect(x, y, w, h, class, s.Says)
	label := s.Label
	if s.Kind == picture.Hold && w > 60 {
		label += " " + picture.Words(s.Length())
	}
	room := w
	if s.Open && s.Until > s.To { // what was granted lasts longer than what came of it
		end := gutter + t.p.Axis.X(s.Until)
		if end > x+w+2 {
			t.rect(x+w, y, end-x-w, h, class+" g", "granted until "+t.p.Axis.Seconds(s.Until)+" s")
			room = end - x
		}
	}
	if text := fit(label, room-4); text != "" && h >= 9 {
		t.text(x+3, y+h-2.5, "", text)
	}
}

// band says where in its lane a kind of span lies, and how it looks.
func (t *timeline) band(s picture.Span) (y, h float64, class string) {
	y = t.tops[s.Lane]
	colour := "n"
	if s.Whose >= 0 {
		colour = t.colour(s.Whose)
	}
	switch s.Kind {
	case picture.Hold:
		return y, 14, "h " + colour
	case picture.Call:
		return y + 16, 11, "q"
	case picture.Repeat:
		return y + 29, 10, "r"
	case picture.Key:
		return y, 14, "k " + colour
	case picture.Stop:
		return y - 2, heightOf(t.p.Lanes[s.Lane].Kind) + 3, "s"
	case picture.Cut:
		return y - 2, heightOf(t.p.Lanes[s.Lane].Kind) + 3, "u"
	case picture.Kept:
		return y + 29, 10, "u"
	}
	return y + 15, 9, "r"
}

func (t *timeline) colour(lane int) string { return fmt.Sprintf("c%d", t.p.Lanes[lane].Number%6) }

func (t *timeline) overlaps() {
	for i, o := range t.p.Overlaps {
		x := gutter + t.p.Axis.X(o.From)
		w := max(2, gutter+t.p.Axis.X(o.To)-x)
		a, b := min(o.A, o.B), max(o.A, o.B)
		t.rect(x, t.tops[a]-3, w, t.tops[b]-t.tops[a]+20, "o", o.Label())
		if i == 0 {
			anchor, place := "wt", x+3
			if x > gutter+t.p.Axis.Width()*0.6 {
				anchor, place = "wt e", x+w
			}
			t.text(place, flagsTop+12, anchor, o.Label())
		}
	}
}

// moments draws messages as lines from where they set out to where they arrived, and marks
// what is no message.
func (t *timeline) moments() {
	var flags []flag
	written := -1000.0
	for _, m := range t.p.Moments {
		x := gutter + t.p.Axis.X(m.At)
		switch {
		case m.Kind == picture.Write && m.To >= 0:
			x := max(x, written+24) // one beside the other, if they came at once
			written = x
			y := t.tops[m.To] + 9
			d := fmt.Sprintf("M%s %sl5 5 5-9", at(x-4), at(y))
			class := "m"
			if m.Bad {
				d, class = fmt.Sprintf("M%s %sl8 8m0-8l-8 8", at(x-4), at(y-4)), "x"
			}
			t.path(class, m.Says, d)
			if m.From >= 0 {
				t.text(x+8, y+4, "", t.p.Lanes[m.From].Name)
			}
		case m.Kind.Between() && m.Kind != picture.Rounds && m.From >= 0 && m.To >= 0:
			t.message(m, x)
		case m.From >= 0 && (m.Kind == picture.Fault || m.Kind == picture.State || m.Kind == picture.Lost || m.Kind == picture.Process):
			y := t.tops[m.From]
			t.path("x", m.Says, fmt.Sprintf("M%s %sv%sm-3-3 3 3 3-3", at(x), at(y-3), at(heightOf(t.p.Lanes[m.From].Kind))))
		}
		if m.Proves {
			t.path("w", "", fmt.Sprintf("M%s %sV%s", at(x), at(lanesTop-6), at(t.bottom)))
			flags = raise(flags, x, m.Event)
		}
	}
	for _, f := range flags {
		t.text(f.x, flagsTop, "wt c", f.text)
	}
	if t.plain != "" {
		t.path("m", "", t.plain)
	}
}

func (t *timeline) message(m picture.Moment, x float64) {
	from, to := t.middle(m.From), t.middle(m.To)
	sent := x
	if first := t.p.Axis.Segments; m.Sent > 0 && len(first) > 0 && m.Sent >= first[0].From {
		sent = gutter + t.p.Axis.X(m.Sent)
	}
	says := fmt.Sprintf("#%d %s", m.Event, m.Label)
	if m.Effect != "" {
		says += ": " + m.Effect
	}
	if m.Kind == picture.Dropped || m.Kind == picture.Stopped {
		half := (from + to) / 2
		t.path("x", says, fmt.Sprintf("M%s %sL%s %sm-3-3 6 6m0-6-6 6", at(sent), at(from), at(x), at(half)))
		return
	}
	d := fmt.Sprintf("M%s %sL%s %s", at(sent), at(from), at(x), at(to))
	if !t.alone { // in a page, which has hundreds of pictures, the words stand elsewhere
		t.plain += d
		return
	}
	t.path("m", says, d)
}

// middle is where messages leave a lane, and arrive.
func (t *timeline) middle(lane int) float64 {
	if t.p.Lanes[lane].Kind == picture.Client {
		return t.tops[lane] + 28
	}
	return t.tops[lane]
}

// A flag has the numbers of events that prove something.
type flag struct {
	x    float64
	text string
}

// raise adds a number, to the last flag if it would lie upon that.
func raise(flags []flag, x float64, event int) []flag {
	text := fmt.Sprintf("#%d", event)
	if n := len(flags); n > 0 && x-flags[n-1].x < (widthOf(flags[n-1].text)+widthOf(text))/2+6 {
		flags[n-1].text += " " + text
		return flags
	}
	return append(flags, flag{x, text})
}

// nameOf names a drawing for who doesn't see it.
func nameOf(p picture.Picture, kind string) string {
	if p.Title == "" {
		return kind
	}
	return p.Title + ": " + kind
}
