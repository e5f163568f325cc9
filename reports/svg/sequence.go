package svg

import (
	"fmt"
	"io"
	"strings"

	"github.com/lockfault/lockfault/reports/diagram"
)

// Dimensions of a sequence diagram.
const (
	column    = 150.0
	rowHeight = 19.0
	headTop   = 24.0
)

// Sequence draws the moments from top to bottom, in their order and not to scale, as messages
// between the participants. A bar on a client's line shows a hold, and a bar on a server's line
// shows that the key has an owner. If alone is true, the output is a complete file.
func Sequence(w io.Writer, p diagram.Picture, alone bool) error {
	c := &sequence{canvas: canvas{standalone: alone}, labels: canvas{standalone: alone}}
	x := func(lane int) float64 { return 120 + column*float64(lane) }
	bottom := headTop + 14 + rowHeight*float64(len(p.Points))
	y := func(i int) float64 { return headTop + 20 + rowHeight*float64(i) }
	lines := ""
	c.group("b c", "", func() {
		for i, lane := range p.Lanes {
			c.name(x(i), headTop-8, lane.Name, column-10)
			lines += fmt.Sprintf("M%s,%sV%s", at(x(i)), at(headTop), at(bottom+6))
		}
	})
	c.path("l", "", lines)
	rows := func(began, ended int) (top, end float64) {
		top, end = headTop, bottom
		for i, m := range p.Points {
			if m.Event < began {
				top = y(i) + rowHeight/2
			}
			if m.Event == began || m.Event == began-1 {
				top = y(i)
			}
			if ended >= 0 && m.Event >= ended {
				end = y(i)
				break
			}
		}
		return top, end
	}
	var plain []string // classes of bars in a page, where the timeline shows their texts
	bars := map[string]string{}
	for _, s := range p.Spans {
		if s.Kind != diagram.Hold && s.Kind != diagram.Key && s.Kind != diagram.Stop {
			continue
		}
		top, end := rows(s.Began, s.Ended)
		class := "s"
		if s.Kind != diagram.Stop {
			class = "k n"
			if s.Owner >= 0 {
				class = fmt.Sprintf("h%d", p.Lanes[s.Owner].Number%6)
			}
		}
		if d := box(x(s.Lane)-5, top, 10, max(4, end-top)); alone {
			c.path(class, s.Text, d)
		} else {
			if bars[class] == "" {
				plain = append(plain, class)
			}
			bars[class] += d
		}
	}
	for _, class := range plain {
		c.path(class, "", bars[class])
	}
	c.numbers(p, y)
	for i, m := range p.Points {
		c.arrow(p, m, x, y(i))
	}
	c.path("m", "", c.sent)
	c.path("m y", "", c.answered)
	c.path("x", "", c.lost)
	c.path("a", "", c.heads)
	c.b.WriteString(c.labels.b.String())
	if n := p.Left.All(); n > 0 {
		c.text(4, bottom+20, "d", fmt.Sprintf("%d more left out", n))
	}
	return c.write(w, 120+column*float64(max(1, len(p.Lanes)))-20, bottom+28, nameOf(p, "sequence diagram"))
}

// A sequence holds the state of a drawing: the paths of its arrows, and the labels above them.
type sequence struct {
	canvas
	sent, answered, lost, heads string
	labels                      canvas
}

// numbers writes the numbers of the events next to the rows.
func (c *sequence) numbers(p diagram.Picture, y func(int) float64) {
	for _, proves := range []bool{false, true} {
		class := "d e"
		if proves {
			class = "wt e"
		}
		c.group(class, "translate(54)", func() {
			for i, m := range p.Points {
				if m.Proves() == proves {
					numbers := []int{m.Event}
					if proves {
						numbers = m.Proof
					}
					c.element("text", attribute{"y", at(y(i) + 3)})
					c.b.WriteString(">" + strings.Trim(fmt.Sprint(numbers), "[]") + "</text>")
				}
			}
		})
	}
}

// arrow draws a moment.
func (c *sequence) arrow(p diagram.Picture, m diagram.Point, x func(int) float64, y float64) {
	label := m.Label
	if m.Effect != "" {
		label += " → " + m.Effect
	}
	if m.From < 0 || m.To < 0 || m.From == m.To {
		place := 62.0
		if m.From >= 0 {
			place = x(m.From) + 9
		}
		class := ""
		if m.Bad || m.Proves() {
			class = "wt"
		}
		c.labels.text(place, y+3, class, fit(label, column*1.7))
		return
	}
	from, to := x(m.From), x(m.To)
	shaft := fmt.Sprintf("M%s,%sH", at(from), at(y+2))
	switch m.Kind {
	case diagram.Dropped, diagram.Stopped:
		c.lost += shaft + at((from+to)/2) + "m-4-4,8,8m0-8-8,8"
	case diagram.Reply, diagram.Push:
		c.answered += shaft + at(to)
		c.head(from, to, y+2)
	default:
		c.sent += shaft + at(to)
		c.head(from, to, y+2)
	}
	c.labels.text(min(from, to)+8, y-1, "", fit(label, max(column*0.95, max(from, to)-min(from, to)-14)))
}

// head draws the head of an arrow.
func (c *sequence) head(from, to, y float64) {
	back := "l6-3v6z"
	if to > from {
		back = "l-6-3v6z"
	}
	c.heads += fmt.Sprintf("M%s,%s%s", at(to), at(y), back)
}
