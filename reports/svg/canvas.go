// Package svg draws a picture as SVG: as a timeline to scale, and as a sequence diagram.
package svg

import (
	"fmt"
	"html"
	"io"
	"math"
	"strconv"
	"strings"
	"unicode/utf8"
)

// Style is what the drawings need of CSS. Colours are variables, so that a page can be dark;
// whatever a colour says a word or a pattern says too.
const Style = `.lf{--bg:#fff;--ink:#1b1f24;--dim:#57606a;--line:#d0d7de;--tint:#f3f5f8;--bad:#b3261e;--warn:#8a5a00;--c0:#1f5fbf;--c1:#a8480c;--c2:#1b7340;--c3:#7a3fb0;--c4:#8a1f5c;--c5:#3d5a66;font:11px/1.2 system-ui,sans-serif;fill:var(--ink)}
@media(prefers-color-scheme:dark){.lf{--bg:#0d1117;--ink:#e6edf3;--dim:#9aa5b1;--line:#30363d;--tint:#1c2229;--bad:#ff8a80;--warn:#e3b341;--c0:#79b0ff;--c1:#ffa657;--c2:#6fdd8b;--c3:#d2a8ff;--c4:#ff9bce;--c5:#a5c3cf}}
.lf .z{fill:var(--tint)}.lf .f{fill:url(#lf-fold);stroke:var(--line)}.lf .l{stroke:var(--line);fill:none}.lf .d{fill:var(--dim)}.lf .b{font-weight:600}.lf .m{stroke:var(--dim);fill:none;stroke-width:.8}.lf .x{stroke:var(--bad);fill:none;stroke-width:1.4}.lf .w{stroke:var(--bad);stroke-dasharray:4 3;fill:none}.lf .wt{fill:var(--bad);font-weight:600}.lf .o{fill:var(--bad);fill-opacity:.13;stroke:var(--bad)}.lf .e{text-anchor:end}.lf .c{text-anchor:middle}.lf text{paint-order:stroke;stroke:var(--bg);stroke-width:2.5px;stroke-opacity:.85}
.lf .s{fill:url(#lf-stop);stroke:var(--dim)}.lf .u{fill:url(#lf-cut);stroke:var(--warn)}.lf .q{fill:none;stroke:var(--dim)}.lf .r{fill:none;stroke:var(--dim);stroke-dasharray:2 2}.lf .g{fill:none;stroke-dasharray:3 2}.lf .h{fill-opacity:.28}.lf .k{fill-opacity:.12}
.lf .c0{fill:var(--c0);stroke:var(--c0)}.lf .c1{fill:var(--c1);stroke:var(--c1)}.lf .c2{fill:var(--c2);stroke:var(--c2)}.lf .c3{fill:var(--c3);stroke:var(--c3)}.lf .c4{fill:var(--c4);stroke:var(--c4)}.lf .c5{fill:var(--c5);stroke:var(--c5)}.lf .g{fill:none}.lf .n{fill:none;stroke:var(--dim)}
`

// Patterns are what the drawings fill surfaces with. A page has them once.
const Patterns = `<defs><pattern id="lf-fold" width="6" height="6" patternUnits="userSpaceOnUse" patternTransform="rotate(45)"><path d="M0 0V6" stroke="currentColor" stroke-opacity=".25"/></pattern><pattern id="lf-stop" width="5" height="5" patternUnits="userSpaceOnUse" patternTransform="rotate(-45)"><path d="M0 0V5" stroke="currentColor" stroke-opacity=".55" stroke-width="1.5"/></pattern><pattern id="lf-cut" width="5" height="5" patternUnits="userSpaceOnUse"><circle cx="2" cy="2" r="1.1" fill="currentColor" fill-opacity=".55"/></pattern><marker id="lf-a" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" orient="auto"><path d="M0 0 8 4 0 8z" fill="currentColor"/></marker></defs>`

// A canvas collects the elements of a drawing.
type canvas struct{ b strings.Builder }

func (c *canvas) add(format string, args ...any) { fmt.Fprintf(&c.b, format, args...) }

// text writes a text at a place, escaped.
func (c *canvas) text(x, y float64, class, text string) {
	c.add(`<text x="%s" y="%s"`, at(x), at(y))
	if class != "" {
		c.add(` class="%s"`, class)
	}
	c.add(`>%s</text>`, html.EscapeString(text))
}

// rect draws a rectangle, with a title unless it is empty.
func (c *canvas) rect(x, y, w, h float64, class, title string) {
	w = max(w, 1)
	c.path(class, title, fmt.Sprintf("M%s %sh%sv%sh-%sz", at(x), at(y), at(w), at(h), at(w)))
}

// path draws lines.
func (c *canvas) path(class, title, d string) {
	c.add(`<path class="%s" d="%s"`, class, d)
	c.close("path", title)
}

func (c *canvas) close(element, title string) {
	if title == "" {
		c.add("/>")
		return
	}
	c.add("><title>%s</title></%s>", html.EscapeString(title), element)
}

// write puts the drawing together. One that stands alone has its own style.
func (c *canvas) write(w io.Writer, width, height float64, name string, alone bool) error {
	var b strings.Builder
	namespace := ""
	if alone {
		namespace = `xmlns="http://www.w3.org/2000/svg" `
	}
	fmt.Fprintf(&b, `<svg %sclass="lf" role="img" width="%s" height="%s" viewBox="0 0 %s %s" aria-label="%s">`,
		namespace, at(width), at(height), at(width), at(height), html.EscapeString(name))
	if alone {
		b.WriteString("<style>" + Style + "svg{background:#fff;color:#1b1f24}@media(prefers-color-scheme:dark){svg{background:#0d1117;color:#e6edf3}}</style>" + Patterns)
	}
	b.WriteString(c.b.String())
	b.WriteString("</svg>\n")
	_, err := io.WriteString(w, b.String())
	return err
}

// at writes a place, in whole units.
func at(x float64) string { return strconv.Itoa(int(math.Round(x))) }

// widthOf estimates how wide a text is.
func widthOf(text string) float64 { return 6.1 * float64(utf8.RuneCountInString(text)) }

// fit shortens a text to a width; where not even three letters fit it returns none.
func fit(text string, width float64) string {
	if widthOf(text) <= width {
		return text
	}
	n := int(width/6.1) - 1
	if n < 3 {
		return ""
	}
	return string([]rune(text)[:n]) + "…"
}
