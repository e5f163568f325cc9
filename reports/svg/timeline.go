package svg

import (
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/lockfault/lockfault/reports/diagram"
)

// Positions in a timeline.
const (
	gutter   = 74.0 // left of the axis, for the names of lanes
	flagsTop = 12.0 // row with the numbers of proving events
	lanesTop = 50.0
	// unitWidth is the width of the word before the times.
	unitWidth = 52.0
)

// A timeline holds the state of a drawing.
type timeline struct {
	canvas
	p      diagram.Picture
	tops   []float64 // tops of the lanes
	bottom float64
	cuts   []string // lengths cut off at each pointed end, in drawing order
}

// Timeline draws time from left to right, to scale, with a lane for each participant: the holds and
// operations of clients, the owner of the key on each server, the decisions of the resource, and
// the faults. If alone is true, the output is a complete file with its style. Otherwise it is an
// element of a page, above the picture's sentences, whose text it does not repeat.
func Timeline(w io.Writer, p diagram.Picture, alone bool) error {
	t := &timeline{canvas: canvas{standalone: alone}, p: p}
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
	t.points()
	var scale []attribute
	if !alone { // maps positions back to times
		scale = []attribute{{"data-axis", t.places()}}
	}
	width := gutter + max(p.Axis.Width(), 260) + 16
	if list := t.ticks(); len(list) > 0 { // leave room for the last label
		last := list[len(list)-1]
		width = max(width, last.label+tickWidth(last.text)/2)
	}
	return t.write(w, width, t.bottom+34, nameOf(p, "timeline"), scale...)
}

// places encodes the positions at which the timeline shows something, with their times and the
// numbers of the moments, for the page's script.
//
// For example, "4;82,0,1;9,476,2,1" means: 4 decimal places of a second; position 82 at time 0 with
// event 1; 9 further, 476 later, with events 3 and 4. Times have 3 decimal places more than the
// first number says. After a bar come the lengths of spans that are cut off at each pointed end.
func (t *timeline) places() string {
	axis := t.p.Axis
	if len(axis.Segments) == 0 {
		return ""
	}
	unit := unitOf(axis)
	var lastX, lastTime, event int
	text := strconv.Itoa(axis.Digits)
	moments := t.p.Points
	place := func(at time.Duration) { // the number of a moment precedes those of its other events
		x, now := int(math.Round(gutter+axis.X(at))), int(math.Round(float64(at)/unit))
		text += fmt.Sprintf(";%d,%d", x-lastX, now-lastTime)
		for len(moments) > 0 && moments[0].At <= at {
			text += "," + strconv.Itoa(moments[0].Event-event) + together(moments[0])
			event, moments = moments[0].Event, moments[1:]
		}
		lastX, lastTime = x, now
	}
	place(axis.Segments[0].From)
	for _, s := range axis.Segments {
		if s.To > s.From {
			place(s.To)
		}
	}
	if len(t.cuts) > 0 {
		text += "|" + strings.Join(t.cuts, ",")
	}
	return text
}

// unitOf returns the unit of times in a page, in nanoseconds.
func unitOf(a diagram.Axis) float64 { return math.Pow10(max(0, 6-a.Digits)) }

// together encodes the other events of a moment: the number of following events that belong to it,
// that do not, that do, and so on. "+" stands for the next event alone.
func together(m diagram.Point) string {
	if len(m.With) == 0 {
		return ""
	}
	if len(m.With) == 1 && m.With[0] == m.Event+1 {
		return "+"
	}
	runs, last := []int{0}, m.Event
	for _, e := range m.With {
		if e > last+1 {
			runs = append(runs, e-last-1, 0)
		}
		runs[len(runs)-1]++
		last = e
	}
	text := ""
	for _, n := range runs {
		text += "+" + strconv.Itoa(n)
	}
	return text
}

func heightOf(kind diagram.LaneKind) float64 {
	if kind == diagram.Client {
		return 40
	}
	return 22
}

// axis draws the scale, with the length of each piece.
func (t *timeline) axis() {
	type label struct {
		x, y float64
		text string
	}
	var labels []label
	pieces := t.p.Axis.Pieces()
	surfaces := map[diagram.Scale]string{} // pieces whose lengths are written below them
	for _, piece := range pieces {
		x, w := gutter+piece.X, piece.Width
		length := diagram.Words(piece.Length())
		fits := widthOf(length) <= w
		if fits {
			labels = append(labels, label{x + w/2, t.bottom + 12, length})
		}
		says, class := "", ""
		switch piece.Scale {
		case diagram.Magnified:
			says, class = "magnified: "+length, "z"
		case diagram.Folded:
			says, class = "folded: "+length, "f"
		default:
			continue
		}
		if fits {
			surfaces[piece.Scale] += box(x, lanesTop-8, w, t.bottom-lanesTop+8)
		} else {
			t.rect(x, lanesTop-8, w, t.bottom-lanesTop+8, class, says)
		}
	}
	t.path("z", "", surfaces[diagram.Magnified])
	t.path("f", "", surfaces[diagram.Folded])
	lines := ""
	for _, tick := range t.ticks() {
		lines += fmt.Sprintf("M%s,%sV%s", at(tick.x), at(lanesTop-8), at(t.bottom))
		labels = append(labels, label{tick.label, lanesTop - 12, tick.text})
	}
	t.path("l", "", lines)
	t.group("d c", "", func() {
		for _, l := range labels {
			t.text(l.x, l.y, "", l.text)
		}
	})
	note := "hatched: folded"
	if t.p.Lease > 0 {
		note = fmt.Sprintf("lease %s = %s px; shaded: magnified %s×; ", diagram.Words(t.p.Lease), diagram.Digits(t.p.Axis.LeaseWidth, 3), diagram.Digits(t.p.Axis.Times, 2)) + note
	}
	if n := t.p.Left.Spans; n > 0 {
		note += fmt.Sprintf("; %d bars left out", n)
	}
	t.group("d", "", func() {
		t.text(4, lanesTop-12, "", "seconds")
		t.text(4, t.bottom+28, "", note)
	})
}

// A tick is a time above the picture, at position x. Its label is at x or nearby.
type tick struct {
	x, label float64
	text     string
}

// ticks returns as many times as there is room for. The first and the last are always included.
func (t *timeline) ticks() []tick {
	var list []tick
	add := func(at time.Duration, end bool) {
		text := t.p.Axis.Seconds(at)
		n := tick{x: gutter + t.p.Axis.X(at), text: text}
		n.label = max(n.x, unitWidth+tickWidth(text)/2) // to the right of the unit
		close := func() bool { return len(list) > 0 && n.label-list[len(list)-1].label < widthOf(text)+8 }
		for end && len(list) > 1 && close() {
			list = list[:len(list)-1]
		}
		if end && close() {
			n.label = list[0].label + tickWidth(text) + 4
		}
		if !close() {
			list = append(list, n)
		}
	}
	pieces := t.p.Axis.Pieces()
	for i, piece := range pieces {
		if i == 0 {
			add(piece.From, false)
		}
		if piece.To > piece.From {
			add(piece.To, i == len(pieces)-1)
		}
	}
	return list
}

func (t *timeline) lanes() {
	lines := ""
	t.group("b", "", func() {
		for i, lane := range t.p.Lanes {
			t.name(4, t.tops[i]+14, lane.Name, gutter-8)
			lines += fmt.Sprintf("M0,%sH%s", at(t.tops[i]+heightOf(lane.Kind)+4), at(gutter+t.p.Axis.Width()))
		}
	})
	t.path("l", "", lines)
	if end := t.p.Axis.X(t.p.End); len(t.p.Axis.Segments) > 0 && t.p.End < t.p.Axis.Segments[len(t.p.Axis.Segments)-1].To {
		t.path("r", "", fmt.Sprintf("M%s,%sV%s", at(gutter+end), at(lanesTop-8), at(t.bottom)))
		t.beside(gutter+end, 3, t.bottom-2, "d", "end of the run: what was granted goes on")
	}
}

// spans draws the spans, first those in the background.
func (t *timeline) spans() {
	for _, background := range []bool{true, false} {
		for _, s := range t.p.Spans {
			if background == (s.Kind == diagram.Stop || s.Kind == diagram.Cut) {
				t.span(s)
			}
		}
	}
}

func (t *timeline) span(s diagram.Span) {
	x := gutter + t.p.Axis.X(s.From)
	w := gutter + t.p.Axis.X(s.To) - x
	y, h, class := t.band(s)
	says := s.Text
	if !t.standalone && s.Kind == diagram.Key && s.Owner >= 0 { // an arrow shows that the owner sent the command
		own := ", by a command of " + t.p.Lanes[s.Owner].Name
		says = strings.Replace(strings.TrimSuffix(says, own), own+",", ",", 1)
	}
	before, behind := t.beyond(s.From, s.To)
	t.bar(class, says, cutBox(x, y, w, h, before > 0, behind > 0), before, behind, s.Length())
	label := s.Label
	if s.Kind == diagram.Hold && w > 60 {
		label += " " + diagram.Words(s.Length())
	}
	room := w
	if s.Open && s.Until > s.To { // the lease outlasts the run
		end := gutter + t.p.Axis.X(s.Until)
		if end > x+w+2 {
			granted := "granted until " + t.p.Axis.Seconds(s.Until) + " s"
			if says := strconv.FormatFloat(s.Until.Seconds(), 'f', 3, 64); strings.Contains(s.Text, "until "+says) {
				granted = "" // the bar next to it already shows this
			}
			t.rect(x+w, y, end-x-w, h, class+" g", granted)
			room = end - x
		}
	}
	if text := fit(label, room-4); text != "" && h >= 9 {
		t.text(x+3, y+h-2.5, "", text)
	}
}

// beyond returns how much of a period lies before and after the picture.
func (t *timeline) beyond(from, to time.Duration) (before, behind time.Duration) {
	first, last := t.p.Axis.Ends()
	return max(0, first-from), max(0, to-last)
}

// bar draws a span. If the span is cut in a file of its own, its title gives the visible length; in
// a page the script does.
func (t *timeline) bar(class, says, d string, before, behind, length time.Duration) {
	if before+behind > 0 && t.standalone {
		says += " (the picture shows " + diagram.Words(length-before-behind) + " of it)"
	}
	for _, cut := range []time.Duration{before, behind} {
		if cut > 0 {
			t.cuts = append(t.cuts, strconv.Itoa(int(math.Round(float64(cut)/unitOf(t.p.Axis)))))
		}
	}
	t.path(class, says, d)
}

// band returns the vertical position, the height and the class of a span in its lane.
func (t *timeline) band(s diagram.Span) (y, h float64, class string) {
	y = t.tops[s.Lane]
	colour := " n"
	if s.Owner >= 0 {
		colour = strconv.Itoa(t.p.Lanes[s.Owner].Number % 6)
	}
	switch s.Kind {
	case diagram.Hold:
		return y, 14, "h" + colour
	case diagram.Call:
		return y + 16, 11, "q"
	case diagram.Repeat:
		return y + 29, 10, "r"
	case diagram.Key:
		return y, 14, "k" + colour
	case diagram.Stop:
		return y - 2, heightOf(t.p.Lanes[s.Lane].Kind) + 3, "s"
	case diagram.Cut:
		return y - 2, heightOf(t.p.Lanes[s.Lane].Kind) + 3, "u"
	case diagram.Gated:
		return y + 29, 10, "u"
	}
	return y + 15, 9, "r"
}

func (t *timeline) overlaps() {
	for i, o := range t.p.Overlaps {
		x := gutter + t.p.Axis.X(o.From)
		w := max(2, gutter+t.p.Axis.X(o.To)-x)
		a, b := min(o.A, o.B), max(o.A, o.B)
		// The lower edge is also a position in a lane.
		before, behind := t.beyond(o.From, o.To)
		points := [2]string{} // pointed ends, where the overlap continues
		if behind > 0 {
			points[1] = "l4,6-4,6"
		}
		if before > 0 {
			points[0] = "l-4,6,4,6"
		}
		t.bar("o", o.Label(), fmt.Sprintf("M%s,%sH%s%sV%sH%sz%s", at(x), at(t.tops[a]-3), at(max(x+w, x+2)), points[1], at(t.tops[b]+17), at(x), points[0]), before, behind, o.To-o.From)
		if i == 0 {
			if x > gutter+t.p.Axis.Width()*0.6 {
				t.text(x+w, flagsTop+12, "wt e", o.Label())
			} else {
				t.beside(x, 3, flagsTop+12, "wt", o.Label())
			}
		}
	}
}

// points draws messages as lines from their sending to their arrival, and marks the other moments.
func (t *timeline) points() {
	var flags []flag
	var plain, proving string // messages that arrived, and lines of proving events
	type mark struct {
		d, says string
		told    bool // whether the sentences contain it
	}
	var marks []mark
	told := map[diagram.Sentence]bool{}
	for _, sentence := range t.p.Sentence {
		told[sentence] = !t.standalone
	}
	for _, m := range t.p.Points {
		x := gutter + t.p.Axis.X(m.At)
		switch {
		case m.Kind.Between() && m.Kind != diagram.Write && m.Kind != diagram.Rounds && m.From >= 0 && m.To >= 0:
			if d := t.message(m, x); t.standalone {
				t.path("m", messageOf(m), d)
			} else { // in a page the text is elsewhere
				from, to, _ := strings.Cut(d, "L")
				if strings.HasSuffix(plain, "L"+from[min(1, len(from)):]) { // a reply to that message
					plain += "L" + to
				} else {
					plain += d
				}
			}
		case m.From >= 0 && (m.Kind == diagram.Fault || m.Kind == diagram.State || m.Kind == diagram.Lost || m.Kind == diagram.Process):
			d := fmt.Sprintf("M%s,%sv%sm-3-3,3,3,3-3", at(x), at(t.tops[m.From]-3), at(heightOf(t.p.Lanes[m.From].Kind)))
			if n := len(marks); n > 0 && marks[n-1].d == d { // a mark on top of another could not be pointed at
				marks[n-1].says += "; " + m.Text
				marks[n-1].told = marks[n-1].told && told[diagram.Sentence{Event: m.Event, Text: m.Text}]
			} else {
				marks = append(marks, mark{d, m.Text, told[diagram.Sentence{Event: m.Event, Text: m.Text}]})
			}
		}
		if line := fmt.Sprintf("M%s,%sV%s", at(x), at(lanesTop-6), at(t.bottom)); m.Proves() {
			if !strings.HasSuffix(proving, line) {
				proving += line
			}
			for _, event := range m.Proof {
				flags = raise(flags, x, event)
			}
		}
	}
	t.path("w", "", proving)
	t.path("m", "", plain)
	silent := ""
	for _, m := range marks {
		if m.told {
			silent += m.d
		} else {
			t.path("x", m.says, m.d)
		}
	}
	t.path("x", "", silent)
	t.writes()
	t.group("wt c", "", func() {
		for _, f := range flags {
			t.text(f.x, flagsTop, "", f.text)
		}
	})
}

// writes marks the decisions of the resource, side by side if they coincide.
func (t *timeline) writes() {
	t.group("v", "", func() {
		last := -1000.0
		for _, m := range t.p.Points {
			if m.Kind != diagram.Write || m.To < 0 {
				continue
			}
			x := math.Round(gutter + t.p.Axis.X(m.At))
			last = max(x, last+24)
			aside := last - x
			y := t.tops[m.To] + 9
			class, d := "m", fmt.Sprintf("M%s,%sm%s,0l5,5,5-9", at(x), at(y), at(aside-4))
			if m.Bad {
				class, d = "x", fmt.Sprintf("M%s,%sm%s,-4l8,8m0-8l-8,8", at(x), at(y), at(aside-4))
			}
			t.path(class, m.Text, d)
			if m.From >= 0 {
				t.beside(x, aside+8, y+4, "", t.p.Lanes[m.From].Name)
			}
		}
	})
}

// messageOf describes a message in a few words.
func messageOf(m diagram.Point) string {
	says := fmt.Sprintf("#%d %s", m.Event, m.Label)
	if m.Effect != "" {
		says += ": " + m.Effect
	}
	return says
}

// message returns the path of a message that arrived. If the message did not arrive, message draws
// it and returns "".
func (t *timeline) message(m diagram.Point, x float64) string {
	from, to := t.middle(m.From), t.middle(m.To)
	sent := x
	if first := t.p.Axis.Segments; m.Sent > 0 && len(first) > 0 && m.Sent >= first[0].From {
		sent = gutter + t.p.Axis.X(m.Sent)
	}
	if m.Kind == diagram.Dropped || m.Kind == diagram.Stopped {
		// The first coordinate is where it should have arrived, since half of the way is not a
		// position in a lane.
		t.path("x", messageOf(m), fmt.Sprintf("M%s,%sM%s,%sL%s,%sm-3-3,6,6m0-6-6,6", at(x), at(to), at(sent), at(from), at(x), at((from+to)/2)))
		return ""
	}
	return fmt.Sprintf("M%s,%sL%s,%s", at(sent), at(from), at(x), at(to))
}

// middle returns the vertical position at which messages leave or reach a lane.
func (t *timeline) middle(lane int) float64 {
	if t.p.Lanes[lane].Kind == diagram.Client {
		return t.tops[lane] + 28
	}
	return t.tops[lane]
}

// A flag holds the numbers of proving events at a position.
type flag struct {
	x    float64
	text string
}

// raise adds a number, to the last flag if a new flag would overlap with it.
func raise(flags []flag, x float64, event int) []flag {
	text := fmt.Sprintf("#%d", event)
	if n := len(flags); n > 0 && x-flags[n-1].x < (widthOf(flags[n-1].text)+widthOf(text))/2+6 {
		flags[n-1].text += " " + text
		return flags
	}
	return append(flags, flag{x, text})
}

// nameOf returns the accessible name of a drawing.
func nameOf(p diagram.Picture, kind string) string {
	if p.Title == "" {
		return kind
	}
	return p.Title + ": " + kind
}
