package svg

import (
	"fmt"
	"io"

	"github.com/lockfault/lockfault/reports/picture"
)

// What a sequence diagram measures.
const (
	column    = 150.0
	rowHeight = 19.0
	headTop   = 24.0
)

// Sequence draws the moments from top to bottom, in their order and not to scale, as messages
// between the participants. A bar on a client's line is its belief that it holds the lock,
// on a server's that the key is somebody's.
func Sequence(w io.Writer, p picture.Picture, alone bool) error {
	c := &canvas{}
	x := func(lane int) float64 { return 120 + column*float64(lane) }
	bottom := headTop + 14 + rowHeight*float64(len(p.Moments))
	y := func(i int) float64 { return headTop + 20 + rowHeight*float64(i) }
	for i, lane := range p.Lanes {
		c.text(x(i), headTop-8, "b c", fit(lane.Name, column-10))
		c.path("l", "", fmt.Sprintf("M%s %sV%s", at(x(i)), at(headTop), at(bottom+6)))
	}
	rows := func(began, ended int) (top, end float64) {
		top, end = headTop, bottom
		for i, m := range p.Moments {
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
	for _, s := range p.Spans {
		if s.Kind != picture.Hold && s.Kind != picture.Key && s.Kind != picture.Stop {
			continue
		}
		top, end := rows(s.Began, s.Ended)
		class := "s"
		if s.Kind != picture.Stop {
			class = "k n"
			if s.Whose >= 0 {
				class = fmt.Sprintf("h c%d", p.Lanes[s.Whose].Number%6)
			}
		}
		c.rect(x(s.Lane)-5, top, 10, max(4, end-top), class, s.Says)
	}
	for i, m := range p.Moments {
		arrow(c, p, m, x, y(i))
	}
	note := ""
	if n := p.Left.All(); n > 0 {
		note = fmt.Sprintf("%d more left out", n)
	}
	c.text(4, bottom+20, "d", note)
	return c.write(w, 120+column*float64(max(1, len(p.Lanes)))-20, bottom+28, nameOf(p, "sequence diagram"), alone)
}

// arrow draws a moment.
func arrow(c *canvas, p picture.Picture, m picture.Moment, x func(int) float64, y float64) {
	class := "d e"
	if m.Proves {
		class = "wt e"
	}
	c.text(54, y+3, class, fmt.Sprintf("%d", m.Event))
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
		if m.Bad || m.Proves {
			class = "wt"
		}
		c.text(place, y+3, class, fit(label, column*1.7))
		return
	}
	from, to := x(m.From), x(m.To)
	class, marker := "m", ` marker-end="url(#lf-a)"`
	d := fmt.Sprintf("M%s %sH%s", at(from), at(y+2), at(to))
	if m.Kind == picture.Dropped || m.Kind == picture.Stopped {
		class, marker = "x", ""
		d = fmt.Sprintf("M%s %sH%sm-4-4 8 8m0-8-8 8", at(from), at(y+2), at((from+to)/2))
	}
	if m.Kind == picture.Reply || m.Kind == picture.Push {
		marker += ` stroke-dasharray="3 2"`
	}
	c.add(`<path class="%s" d="%s"%s/>`, class, d, marker)
	c.text(min(from, to)+8, y-1, "", fit(label, max(column*0.95, max(from, to)-min(from, to)-14)))
}
