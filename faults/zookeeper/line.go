package zookeeper

import (
	"regexp"

	"github.com/lockfault/lockfault/faults/real/proxy"
)

// line is a part that is being put together.
type line struct {
	text   string
	values []string
}

func (l *line) part() proxy.Part { return proxy.Part{Text: l.text, Values: l.values} }

func (l *line) say(text string) { l.text += text }

// path says a path behind a blank. What was drawn by lot in it, as clients do who look for their node after a broken connection, stands behind it
// as a value: that has a short name in a history, so two runs of a script print the same.
func (l *line) path(path string) {
	text, values := undrawn(path)
	l.say(" " + proxy.Shorten(text))
	l.values = append(l.values, values...)
}

// undrawn returns a path without what was drawn by lot in it, and that.
func undrawn(path string) (text string, values []string) {
	if len(path) < 32 {
		return path, nil
	}
	text = drawn.ReplaceAllStringFunc(path, func(found string) string {
		values = append(values, found)
		return "…"
	})
	return text, values
}

// drawn matches a UUID: 32 hexadecimal digits, with hyphens as it is usual or with none.
var drawn = regexp.MustCompile(`[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}|[0-9a-fA-F]{32}`)

// maxData is how much of a node's data is kept, in bytes.
const maxData = 4 << 10

// data has a node's data as a value, if there are any.
func (l *line) data(data []byte) {
	if len(data) > 0 {
		l.values = append(l.values, proxy.Shown(data[:min(len(data), maxData)]))
	}
}
