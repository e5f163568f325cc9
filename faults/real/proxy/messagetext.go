package proxy

import "regexp"

// Say appends to the text.
func (p *Part) Say(text string) { p.Text += text }

// Name appends a blank and the name of an object to the text. Random parts of the name, which
// clients add to find their own objects after a broken connection, go to Values: a history gives
// each value a short name, so two runs of a script print the same.
func (p *Part) Name(name string) {
	text, values := Undrawn(name)
	p.Say(" " + Shorten(text))
	p.Values = append(p.Values, values...)
}

// Undrawn returns a name with each random part replaced by "…", and those parts.
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

// MaxParts is the maximum number of parts shown of a message, of results of an answer, and of names
// of a result.
const MaxParts = 16

// Malformed follows text that can't be parsed; the server decides whether the request is an error.
const Malformed = " (malformed)"

// leastDrawn is the minimum number of hexadecimal digits of a random part.
const leastDrawn = 14

// drawn matches a UUID, and any hexadecimal number that is too long to be a counter.
var drawn = regexp.MustCompile(`[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}|[0-9a-fA-F]{14,}`)

// maxData is the maximum length of a stored value that Data keeps, in bytes.
const maxData = 4 << 10

// Data appends stored data, cut to maxData bytes, to Values unless the data is empty.
func (p *Part) Data(data []byte) {
	if len(data) > 0 {
		p.Values = append(p.Values, Shown(data[:min(len(data), maxData)]))
	}
}
