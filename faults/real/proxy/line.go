package proxy

import "regexp"

// A Line is a [Part] that is being put together. The zero value says nothing.
type Line struct {
	Text   string
	Values []string
}

// Part returns what was put together.
func (l *Line) Part() Part { return Part{Text: l.Text, Values: l.Values} }

// Say adds to the text.
func (l *Line) Say(text string) { l.Text += text }

// Name says the name of something, behind a blank. What was drawn by lot in it, as clients do who look for their own after a broken
// connection, stands behind it as a value: that has a short name in a history, so two runs of a script print the same.
func (l *Line) Name(name string) {
	text, values := Undrawn(name)
	l.Say(" " + Shorten(text))
	l.Values = append(l.Values, values...)
}

// Undrawn returns a name without what was drawn by lot in it, and that.
func Undrawn(name string) (text string, values []string) {
	if len(name) < leastDrawn {
		return name, nil
	}
	text = drawn.ReplaceAllStringFunc(name, func(found string) string {
		values = append(values, found)
		return "…"
	})
	return text, values
}

// leastDrawn is of how many digits at least it is that something was drawn.
const leastDrawn = 14

// drawn matches a UUID, and any number in hexadecimal digits that is too long to have been counted.
var drawn = regexp.MustCompile(`[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}|[0-9a-fA-F]{14,}`)

// maxData is how much of what is stored is kept, in bytes.
const maxData = 4 << 10

// Data has what is stored as a value, if it is anything.
func (l *Line) Data(data []byte) {
	if len(data) > 0 {
		l.Values = append(l.Values, Shown(data[:min(len(data), maxData)]))
	}
}
