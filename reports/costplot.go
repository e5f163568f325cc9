package reports

import (
	"fmt"
	"html"
	"io"
	"math"
)

// Dimensions of the plot, in its own units.
const (
	plotRow   = 18  // height of a strategy's line
	plotNames = 190 // room for the names
	plotWidth = 330 // width of a panel
	plotGap   = 48
	plotTop   = 62
)

func colour(path string) string {
	return map[string]string{PathDirect: "#08519c", PathHop: "#6baed6", PathGate: "#d7301f", PathRecorded: "#969696"}[path]
}

// Plot draws the pairs per second of each strategy on each path as SVG. The axis is logarithmic,
// and each number of contenders has a panel.
func (c Costs) Plot(w io.Writer) error {
	panels := c.panels()
	least, most := math.Inf(1), 10.0
	rows := 0
	for _, cost := range c.List {
		if cost.PairsPerSecond > 0 {
			least, most = min(least, cost.PairsPerSecond), max(most, cost.PairsPerSecond)
		}
	}
	if math.IsInf(least, 1) {
		least = 1
	}
	for _, p := range panels {
		rows = max(rows, len(p.lots))
	}
	from, to := math.Floor(math.Log10(least)), math.Ceil(math.Log10(most))
	bottom := plotTop + plotRow*rows
	width := plotNames + len(panels)*(plotWidth+plotGap) + plotGap
	b := newText(w)
	fmt.Fprintf(b, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" font-family="sans-serif" font-size="12">`+"\n", width, bottom+46)
	b.WriteString("<title>Pairs of acquire and release per second, of each strategy on each path</title>\n")
	fmt.Fprintf(b, `<rect width="%d" height="%d" fill="white"/>`+"\n", width, bottom+46)
	for i, path := range paths() {
		x := plotNames + 110*i
		fmt.Fprintf(b, `<circle cx="%d" cy="16" r="5" fill="%s"/><text x="%d" y="20">%s</text>`+"\n", x, colour(path), x+10, path)
	}
	for i, p := range panels {
		left := plotNames + i*(plotWidth+plotGap)
		x := func(rate float64) float64 { return float64(left) + (math.Log10(rate)-from)/(to-from)*plotWidth }
		fmt.Fprintf(b, `<text x="%d" y="%d" text-anchor="middle" font-weight="bold">%s</text>`+"\n", left+plotWidth/2, plotTop-18, count(p.contenders, "contender"))
		for power := from; power <= to; power++ {
			at := x(math.Pow(10, power))
			fmt.Fprintf(b, `<path d="M%.1f %d V%d" stroke="#ddd"/><text x="%.1f" y="%d" text-anchor="middle">%.0f</text>`+"\n", at, plotTop-8, bottom, at, bottom+16, math.Pow(10, power))
		}
		for j, l := range p.lots {
			y := plotTop + plotRow*j + plotRow/2
			fmt.Fprintf(b, `<path d="M%d %d H%d" stroke="#eee"/>`+"\n", left, y, left+plotWidth)
			if i == 0 {
				fmt.Fprintf(b, `<text x="%d" y="%d" text-anchor="end">%s</text>`+"\n", left-10, y+4, html.EscapeString(l.strategy))
			}
			for _, path := range paths() {
				if rate := l.of[path].PairsPerSecond; rate > 0 {
					fmt.Fprintf(b, `<circle cx="%.1f" cy="%d" r="5" fill="%s" fill-opacity="0.85"/>`+"\n", x(rate), y, colour(path))
				}
			}
		}
		fmt.Fprintf(b, `<text x="%d" y="%d" text-anchor="middle">pairs per second</text>`+"\n", left+plotWidth/2, bottom+36)
	}
	b.WriteString("</svg>\n")
	return b.Flush()
}
