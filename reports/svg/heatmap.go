package svg

import (
	"fmt"
	"io"
	"strings"
)

// A Heat is a map of areas.
type Heat struct {
	Name     string
	X        Axis
	Y        *Axis // nil for a map with one axis
	Areas    []Area
	Boundary [][3]int // squares in which areas meet
}

// An Axis has a number of steps, and labels at equal distances from its beginning to its end.
type Axis struct {
	Name  string
	Steps int
	Ticks []string
}

// An Area is a set of squares. Each square holds the steps of its lower corner and its side in
// steps. Safe marks an area without anomalies, and Void an area without verdicts.
type Area struct {
	Name       string
	Safe, Void bool
	Squares    [][3]int
}

// Dimensions of the map.
const (
	heatWide  = 480.0
	heatLine  = 40.0 // height of a map with one axis
	heatLeft  = 86.0
	heatTop   = 34.0
	heatBelow = 44.0
)

// Write draws the map. If alone is true, the output is a complete file. A pattern and the legend
// distinguish the areas, not only their colours.
func (h Heat) Write(w io.Writer, alone bool) error {
	c := &canvas{standalone: alone}
	left, high, rows := 16.0, heatLine, 1
	if h.Y != nil {
		left, high, rows = heatLeft, heatWide, h.Y.Steps
	}
	wide := heatWide
	x := func(i int) float64 { return left + wide*float64(i)/float64(h.X.Steps) }
	y := func(j int) float64 { return heatTop + high - high*float64(j)/float64(rows) }
	squares := func(list [][3]int) string {
		var d strings.Builder
		for _, s := range list {
			top, bottom := s[1]+s[2], s[1]
			if h.Y == nil {
				top, bottom = 1, 0
			}
			fmt.Fprintf(&d, "M%.1f,%.1fH%.1fV%.1fH%.1fz", x(s[0]), y(top), x(s[0]+s[2]), y(bottom), x(s[0]))
		}
		return d.String()
	}
	at := left
	colour := 0
	for _, a := range h.Areas {
		class, fill := "h2", ""
		switch {
		case a.Void:
			class = "u"
		case !a.Safe:
			class, fill = fmt.Sprintf("h%d", []int{1, 3, 4, 0, 5}[colour%5]), []string{"url(#lf-stop)", "url(#lf-fold)"}[colour%2]
			colour++
		}
		draw := func(d, title string) {
			c.element("path", attribute{"class", class}, attribute{"style", "stroke:none"}, attribute{"d", d})
			c.end("path", title)
			if fill != "" {
				c.element("path", attribute{"fill", fill}, attribute{"d", d})
				c.end("path", title)
			}
		}
		if len(a.Squares) > 0 {
			draw(squares(a.Squares), a.Name)
		}
		draw(box(at, 6, 14, 12), "")
		c.text(at+19, 16, "", a.Name)
		at += 34 + tickWidth(a.Name)
	}
	if len(h.Boundary) > 0 {
		c.path("a", "where it changes", squares(h.Boundary))
		c.path("a", "", box(at, 6, 14, 12))
		c.text(at+19, 16, "", "where it changes")
		at += 34 + tickWidth("where it changes")
	}
	c.path("q", "", fmt.Sprintf("M%.1f,%.1fH%.1fV%.1fH%.1fz", left, heatTop, left+wide, heatTop+high, left))
	for i, tick := range h.X.Ticks {
		place := left + wide*float64(i)/float64(max(1, len(h.X.Ticks)-1))
		c.path("m", "", fmt.Sprintf("M%.1f,%.1fv5", place, heatTop+high))
		c.element("text", attribute{"x", fmt.Sprintf("%.1f", place)}, attribute{"y", fmt.Sprintf("%.1f", heatTop+high+17)}, attribute{"text-anchor", anchor(i, len(h.X.Ticks))})
		c.inside("text", tick)
	}
	c.element("text", attribute{"class", "b"}, attribute{"x", fmt.Sprintf("%.1f", left+wide/2)}, attribute{"y", fmt.Sprintf("%.1f", heatTop+high+34)}, attribute{"text-anchor", "middle"})
	c.inside("text", h.X.Name)
	if h.Y != nil {
		for i, tick := range h.Y.Ticks {
			place := heatTop + high - high*float64(i)/float64(max(1, len(h.Y.Ticks)-1))
			c.path("m", "", fmt.Sprintf("M%.1f,%.1fh-5", left, place))
			c.element("text", attribute{"x", fmt.Sprintf("%.1f", left-9)}, attribute{"y", fmt.Sprintf("%.1f", place+4)}, attribute{"text-anchor", "end"})
			c.inside("text", tick)
		}
		c.element("text", attribute{"class", "b"}, attribute{"transform", fmt.Sprintf("translate(14,%.1f) rotate(-90)", heatTop+high/2)}, attribute{"text-anchor", "middle"})
		c.inside("text", h.Y.Name)
	}
	return c.write(w, max(left+wide+30, at), heatTop+high+heatBelow, h.Name)
}

// anchor returns the text-anchor of label i of n. anchor keeps the labels at the ends of an axis
// inside the picture.
func anchor(i, n int) string {
	switch {
	case i == 0 && n > 1:
		return "start"
	case i == n-1 && n > 1:
		return "end"
	}
	return "middle"
}
