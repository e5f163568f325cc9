package checker

import (
	"time"

	"github.com/lockfault/lockfault/internal/jsonscan"
)

// texts interns the texts read so far: most of them occur many times.
type texts map[string]string

func (t texts) of(b []byte) string {
	if s, ok := t[string(b)]; ok { // does not allocate
		return s
	}
	s := string(b)
	t[s] = s
	return s
}

// scan decodes a line that [Event.AppendJSON] wrote, at a fifth of the cost of encoding/json. scan
// returns false for every invalid line and for rare constructs (escapes, null, numbers of too many
// digits); some fields of e may be set by then. A line for which scan returns true is decoded as
// encoding/json decodes it.
func (t texts) scan(b []byte, e *Event) bool {
	i := jsonscan.Blanks(b, 0)
	if i >= len(b) || b[i] != '{' {
		return false
	}
	for i++; ; i++ {
		if i = jsonscan.Blanks(b, i); i >= len(b) || b[i] != '"' {
			return false
		}
		name, end := jsonscan.Text(b, i+1, false)
		if end < 0 {
			return false
		}
		if i = jsonscan.Blanks(b, end); i >= len(b) || b[i] != ':' {
			return false
		}
		if i = jsonscan.Blanks(b, i+1); i >= len(b) {
			return false
		}
		switch c := b[i]; {
		case c == '"':
			var text []byte
			if text, i = jsonscan.Text(b, i+1, false); i < 0 || !e.setText(name, text, t) {
				return false
			}
		case c == 't' && len(b)-i >= 4 && string(b[i:i+4]) == "true" && e.setTrue(name):
			i += 4
		default:
			var n int64
			if n, i = jsonscan.Number(b, i); i < 0 || !e.setNumber(name, n) {
				return false
			}
		}
		if i = jsonscan.Blanks(b, i); i >= len(b) {
			return false
		}
		switch b[i] {
		case ',':
		case '}':
			return jsonscan.Blanks(b, i+1) == len(b)
		default:
			return false
		}
	}
}

// setText sets the field with the given JSON name and reports whether e has such a text field.
func (e *Event) setText(name, text []byte, t texts) bool {
	switch string(name) { // does not allocate
	case "kind":
		e.Kind = Kind(t.of(text))
	case "client":
		e.Client = t.of(text)
	case "node":
		e.Node = t.of(text)
	case "server":
		e.Server = t.of(text)
	case "op":
		e.Op = Op(t.of(text))
	case "result":
		e.Result = Result(t.of(text))
	case "error":
		e.Error = t.of(text)
	case "direction":
		e.Direction = t.of(text)
	case "command":
		e.Command = t.of(text)
	case "reply":
		e.Reply = t.of(text)
	case "owner":
		e.Owner = t.of(text)
	case "value":
		e.Value = t.of(text)
	case "cause":
		e.Cause = Cause(t.of(text))
	case "text":
		e.Text = t.of(text)
	default:
		return false
	}
	return true
}

// setTrue sets the field with the given JSON name to true and reports whether e has such a boolean
// field.
func (e *Event) setTrue(name []byte) bool {
	switch string(name) {
	case "accepted":
		e.Accepted = true
	case "silent":
		e.Silent = true
	default:
		return false
	}
	return true
}

// setNumber sets the field with the given JSON name and reports whether e has such a number field.
func (e *Event) setNumber(name []byte, n int64) bool {
	switch string(name) {
	case "i":
		e.Index = int(n)
	case "t":
		e.Time = time.Duration(n)
	case "call":
		e.Call = int(n)
	case "token":
		e.Token = n
	case "until":
		e.Until = time.Duration(n)
	case "conn":
		e.Conn = int(n)
	case "sent":
		e.Sent = time.Duration(n)
	case "expires":
		e.Expires = time.Duration(n)
	case "took":
		e.Took = time.Duration(n)
	case "line":
		e.Line = int(n)
	default:
		return false
	}
	return true
}
