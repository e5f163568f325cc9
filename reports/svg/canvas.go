// Package svg draws a picture as a timeline or a sequence diagram in SVG, and draws the map of a
// lock's safe areas. The output is a complete file or an element of a page. The package does not
// read SVG.
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

// Style is the CSS that the drawings need. Colours are variables, so that a page can have a dark
// mode. A word or a pattern repeats the meaning of each colour.
const Style = `.lf{--bg:#fff;--ink:#1b1f24;--dim:#57606a;--line:#d0d7de;--tint:#f3f5f8;--bad:#b3261e;--warn:#8a5a00;--c0:#1f5fbf;--c1:#a8480c;--c2:#1b7340;--c3:#7a3fb0;--c4:#8a1f5c;--c5:#3d5a66;font:11px/1.2 system-ui,sans-serif;fill:var(--ink)}
@media(prefers-color-scheme:dark){.lf{--bg:#0d1117;--ink:#e6edf3;--dim:#9aa5b1;--line:#30363d;--tint:#1c2229;--bad:#ff8a80;--warn:#e3b341;--c0:#79b0ff;--c1:#ffa657;--c2:#6fdd8b;--c3:#d2a8ff;--c4:#ff9bce;--c5:#a5c3cf}}
.lf .z{fill:var(--tint)}.lf .f{fill:url(#lf-fold);stroke:var(--line)}.lf .l{stroke:var(--line);fill:none}.lf .d{fill:var(--dim)}.lf .b{font-weight:600}.lf .m{stroke:var(--dim);fill:none;stroke-width:.8}.lf .x{stroke:var(--bad);fill:none;stroke-width:1.4}.lf .w{stroke:var(--bad);stroke-dasharray:4 3;fill:none}.lf .wt{fill:var(--bad);font-weight:600}.lf .o{fill:var(--bad);fill-opacity:.13;stroke:var(--bad)}.lf .e{text-anchor:end}.lf .c{text-anchor:middle}.lf text{paint-order:stroke;stroke:var(--bg);stroke-width:2.5px;stroke-opacity:.85}
.lf .s{fill:url(#lf-stop);stroke:var(--dim)}.lf .u{fill:url(#lf-cut);stroke:var(--warn)}.lf .q{fill:none;stroke:var(--dim)}.lf .r{fill:none;stroke:var(--dim);stroke-dasharray:2 2}.lf .g{fill:none;stroke-dasharray:3 2}.lf [class^=h]{fill-opacity:.28}.lf [class^=k]{fill-opacity:.12}
.lf .h0,.lf .k0{fill:var(--c0);stroke:var(--c0)}.lf .h1,.lf .k1{fill:var(--c1);stroke:var(--c1)}.lf .h2,.lf .k2{fill:var(--c2);stroke:var(--c2)}.lf .h3,.lf .k3{fill:var(--c3);stroke:var(--c3)}.lf .h4,.lf .k4{fill:var(--c4);stroke:var(--c4)}.lf .h5,.lf .k5{fill:var(--c5);stroke:var(--c5)}.lf .g{fill:none}.lf .n{fill:none;stroke:var(--dim)}.lf .a{fill:currentColor}.lf .y{stroke-dasharray:3 2}
`

// Patterns is the SVG of the fill patterns. A page must contain it once.
const Patterns = `<defs><pattern id="lf-fold" width="6" height="6" patternUnits="userSpaceOnUse" patternTransform="rotate(45)"><path d="M0 0V6" stroke="currentColor" stroke-opacity=".25"/></pattern><pattern id="lf-stop" width="5" height="5" patternUnits="userSpaceOnUse" patternTransform="rotate(-45)"><path d="M0 0V5" stroke="currentColor" stroke-opacity=".55" stroke-width="1.5"/></pattern><pattern id="lf-cut" width="5" height="5" patternUnits="userSpaceOnUse"><circle cx="2" cy="2" r="1.1" fill="currentColor" fill-opacity=".55"/></pattern></defs>`

// A canvas collects the elements of a drawing. If unscaled is true, the drawing is an XML file; if
// not, it is an element of a page, which has hundreds of them, and is written as briefly as HTML
// allows.
//
// Positions in time or in a lane are absolute coordinates, and the shape of a glyph uses relative
// ones: the page's script stretches time by moving absolute coordinates only, so glyphs keep their
// shape.
type canvas struct {
	b          strings.Builder
	standalone bool
}

// brief escapes the characters that are special between tags.
var brief = strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;")

// An attribute is an attribute of an element.
type attribute struct{ name, value string }

// element writes the start of an element. The caller must finish it, for example with end.
func (c *canvas) element(name string, attributes ...attribute) {
	c.b.WriteString("<" + name)
	for _, a := range attributes {
		if a.value == "" {
			continue
		}
		c.b.WriteString(" " + a.name + "=" + c.quoted(a.value))
	}
}

// quoted returns an attribute's value, in quotation marks if they are needed.
func (c *canvas) quoted(value string) string {
	if c.standalone || strings.ContainsAny(value, " \t\n\f\r\"'=<>`&") {
		return `"` + html.EscapeString(value) + `"`
	}
	return value
}

// escaped returns an escaped text for use between tags. In a page it keeps apostrophes.
func (c *canvas) escaped(text string) string {
	if c.standalone {
		return html.EscapeString(text)
	}
	return brief.Replace(text)
}

// end finishes an element that contains nothing, or only a title.
func (c *canvas) end(element, title string) {
	switch {
	case title != "":
		c.b.WriteString("><title>" + c.escaped(title) + "</title></" + element + ">")
	case c.standalone:
		c.b.WriteString("/>")
	default: // without the space, the slash would belong to the previous value
		c.b.WriteString(" />")
	}
}

// text writes a text at a position, escaped.
func (c *canvas) text(x, y float64, class, text string) { c.beside(x, 0, y, class, text) }

// beside writes a text at a position, shifted to the right by dx.
func (c *canvas) beside(x, dx, y float64, class, text string) {
	distance := ""
	if dx != 0 {
		distance = at(dx)
	}
	c.element("text", attribute{"x", at(x)}, attribute{"dx", distance}, attribute{"y", at(y)}, attribute{"class", class})
	c.b.WriteString(">" + c.escaped(text) + "</text>")
}

// inside finishes an element that contains a text, which it escapes.
func (c *canvas) inside(element, text string) {
	c.b.WriteString(">" + c.escaped(text) + "</" + element + ">")
}

// name writes a name. A name that is too long for the room is shortened, with the full name as its
// title.
func (c *canvas) name(x, y float64, name string, room float64) {
	c.element("text", attribute{"x", at(x)}, attribute{"y", at(y)})
	short := fit(name, room)
	c.b.WriteString(">" + c.escaped(short))
	if short != name {
		c.b.WriteString("<title>" + c.escaped(name) + "</title>")
	}
	c.b.WriteString("</text>")
}

// group writes the output of a function in a group. group writes nothing if that is empty.
func (c *canvas) group(class, transform string, write func()) {
	outer := c.b.String()
	c.b.Reset()
	write()
	inner := c.b.String()
	c.b.Reset()
	c.b.WriteString(outer)
	if inner == "" {
		return
	}
	c.element("g", attribute{"class", class}, attribute{"transform", transform})
	c.b.WriteString(">" + inner + "</g>")
}

// rect draws a rectangle, with a title unless it is empty.
func (c *canvas) rect(x, y, w, h float64, class, title string) { c.path(class, title, box(x, y, w, h)) }

// box returns a rectangle as a path, at least one unit wide.
func box(x, y, w, h float64) string { return cutBox(x, y, w, h, false, false) }

// cutBox returns a box as a path, with a pointed end on each side where it continues beyond the
// picture.
func cutBox(x, y, w, h float64, before, behind bool) string {
	right := max(math.Round(x+w), math.Round(x)+1)
	half := math.Round(h / 2)
	d := fmt.Sprintf("M%s,%sH%s", at(x), at(y), at(right))
	if behind {
		d += fmt.Sprintf("l4,%s-4,%s", at(half), at(h-half))
	} else {
		d += "v" + at(h)
	}
	d += "H" + at(x)
	if before {
		d += fmt.Sprintf("l-4-%s", at(half))
	}
	return d + "z"
}

// path draws a path. path writes nothing if d is empty.
func (c *canvas) path(class, title, d string) {
	if d == "" {
		return
	}
	c.element("path", attribute{"class", class}, attribute{"d", d})
	c.end("path", title)
}

// write writes the whole drawing. A drawing that is a file of its own includes its style.
func (c *canvas) write(w io.Writer, width, height float64, name string, more ...attribute) error {
	inner := c.b.String()
	c.b.Reset()
	attributes := []attribute{{"class", "lf"}, {"role", "img"}, {"width", at(width)}, {"height", at(height)},
		{"viewBox", fmt.Sprintf("0 0 %s %s", at(width), at(height))}, {"aria-label", name}}
	if c.standalone {
		attributes = append([]attribute{{"xmlns", "http://www.w3.org/2000/svg"}}, attributes...)
	}
	c.element("svg", append(attributes, more...)...)
	c.b.WriteString(">")
	if c.standalone {
		c.b.WriteString("<style>" + Style + "svg{background:#fff;color:#1b1f24}@media(prefers-color-scheme:dark){svg{background:#0d1117;color:#e6edf3}}</style>" + Patterns)
	}
	c.b.WriteString(inner + "</svg>\n")
	_, err := io.WriteString(w, c.b.String())
	return err
}

// at formats a coordinate as a whole number.
func at(x float64) string { return strconv.Itoa(int(math.Round(x))) }

// widthOf estimates the width of a text.
func widthOf(text string) float64 { return 6.1 * float64(utf8.RuneCountInString(text)) }

// tickWidth returns an upper bound for the width of a time in common fonts.
func tickWidth(text string) float64 { return 7.2 * float64(utf8.RuneCountInString(text)) }

// fit shortens a text to a width. fit returns "" if not even 3 characters fit.
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
