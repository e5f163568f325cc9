package proxy

import "regexp"

// Say adds to the text.
func (p *Part) Say(text string) { p.Text += text }

// Name says the name of something, behind a blank. What was drawn by lot in it, as clients do who look for their own after a broken
// connection, stands behind it as a value: that has a short name in a history, so two runs of a script print the same.
func (p *Part) Name(name string) {
	text, values := Undrawn(name)
	p.Say(" " + Shorten(text))
	p.Values = append(p.Values, values...)
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

// MaxParts is how many parts of a message are shown, how many results of an answer, and how many names of a result.
const MaxParts = 16

// Malformed stands behind what can't be read, about which it is for the server to decide.
const Malformed = " (malformed)"

// leastDrawn is of how many digits at least it is that something was drawn.
const leastDrawn = 14

// drawn matches a UUID, and any number in hexadecimal digits that is too long to have been counted.
var drawn = regexp.MustCompile(`[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}|[0-9a-fA-F]{14,}`)

// maxData is how much of what is stored is kept, in bytes.
const maxData = 4 << 10

// Data has what is stored as a value, if it is anything.
func (p *Part) Data(data []byte) {
	if len(data) > 0 {
		p.Values = append(p.Values, Shown(data[:min(len(data), maxData)]))
	}
}
