package checker

import (
	"time"

	"github.com/lockfault/lockfault/internal/jsonscan"
)

// texts are those that were read: most are there many times.
type texts map[string]string

func (t texts) of(b []byte) string {
	if s, ok := t[string(b)]; ok { // does not allocate
		return s
	}
	s := string(b)
	t[s] = s
	return s
}

// scan reads a line as [Event.AppendJSON] writes it, at a fifth of the cost of encoding/json. It
// returns false, having filled in some fields, for any line that is wrong, and for those with
// what is rare: escapes, null, a number too long to be sure of. What it does take it reads as
// encoding/json does.
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

// setText fills in the field of that name, if it has a text.
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

// setTrue fills in the field of that name, if it is one that is true or left out.
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

// setNumber fills in the field of that name, if it has a number.
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
