package postgres

import (
	"bytes"
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5/pgproto3"

	"github.com/lockfault/lockfault/faults/real/proxy"
)

// Reply implements [proxy.Session].
func (t *talk) Reply(b []byte) (says proxy.Reply, n int, err error) {
	if t.has(&t.apart) && len(b) > 0 {
		return says, len(b), nil
	}
	if o, ok := t.oldest(); ok && o.ends == tls && len(b) > 0 {
		return t.refused(b, o)
	}
	for {
		kind, body, n, err := frame(b[t.down:])
		if n == 0 || err != nil {
			if err == nil && len(b) > proxy.MaxMessage {
				err = tooLong()
			}
			return says, 0, err
		}
		if !strings.ContainsRune("RKSZTtDCIsnNAEGHWVv123dc", rune(kind)) {
			return says, 0, fmt.Errorf("%w: no answer begins with %q", ErrProtocol, kind)
		}
		if t.down += n; t.down > proxy.MaxMessage {
			return says, 0, tooLong()
		}
		if ends, answers := t.hear(kind, body); ends {
			says = proxy.Reply{Answers: answers, Parts: t.answer.parts}
			n, t.down, t.answer = t.down, 0, answer{}
			return says, n, nil
		}
	}
}

// refused parses the server's one-letter answer to an SSLREQUEST or GSSENCREQUEST.
func (t *talk) refused(b []byte, o owes) (says proxy.Reply, n int, err error) {
	switch b[0] {
	case 'N':
		t.settle()
		return proxy.Reply{Answers: o.number, Parts: []proxy.Part{{Text: "no"}}}, 1, nil
	case 'S', 'G':
		return says, 0, fmt.Errorf("%w: the server agrees to encrypt, and nobody could look into that: connect with sslmode=disable gssencmode=disable", ErrProtocol)
	case 'E': // the server doesn't support the request
		kind, body, n, err := frame(b)
		if n == 0 || err != nil {
			return says, 0, err
		}
		t.record(kind, body, false)
		says, t.answer = proxy.Reply{Answers: o.number, Parts: t.answer.parts}, answer{}
		t.settle()
		return says, n, nil
	}
	return says, 0, fmt.Errorf("%w: the server was asked whether it encrypts, and answers %q", ErrProtocol, b[0])
}

// settle records that the oldest request is answered.
func (t *talk) settle() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.unanswered = slices.Delete(t.unanswered, 0, 1)
}

// hear takes the server's next message. It reports whether the message ends an answer, and the
// number of the answered request, 0 if it answers none.
func (t *talk) hear(kind byte, body []byte) (ends bool, answers int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.record(kind, body, len(t.unanswered) > 0 && t.unanswered[0].hides)
	fresh := !t.answer.begun
	t.answer.begun = true
	if len(t.unanswered) == 0 && kind == 'E' {
		t.broken = true
	}
	if len(t.unanswered) == 0 || fresh && (kind == 'N' || kind == 'A' || kind == 'S') {
		return true, 0
	}
	o := &t.unanswered[0]
	switch kind {
	case 'Z':
	case 'G':
		t.copying = o.ends == 'S'
	case 'W':
		t.apart = true
	case 'R':
		if !wantsMore(body) {
			return false, 0
		}
	case 'E':
		if o.ends == 'H' && !isFatal(body) {
			return true, t.failed()
		}
		if !isFatal(body) {
			return false, 0
		}
	default:
		if o.ends != 'H' || !strings.ContainsRune("123TnCIs", rune(kind)) {
			return false, 0
		}
		if o.left--; o.left > 0 {
			return false, 0
		}
	}
	number := o.number
	t.unanswered = slices.Delete(t.unanswered, 0, 1)
	return true, number
}

// failed records that a request that ends with a Flush has failed: the server skips everything up
// to a Sync, and answers none of it. It returns the request's number.
func (t *talk) failed() int {
	number := t.unanswered[0].number
	at := slices.IndexFunc(t.unanswered, func(o owes) bool { return o.ends == 'S' })
	if at < 0 {
		t.skips, at = true, len(t.unanswered)
	}
	t.unanswered = slices.Delete(t.unanswered, 0, at)
	return number
}

// wantsMore reports whether a login message of type R asks the client for something.
func wantsMore(body []byte) bool {
	if len(body) < 4 {
		return false
	}
	switch body[3] {
	case 0, 12: // AuthenticationOk, or the end of SASL
		return false
	}
	return true
}

// isFatal reports whether the server closes the connection after an error.
func isFatal(body []byte) bool {
	m := failure(body)
	severity := cmp.Or(m.SeverityUnlocalized, m.Severity)
	return severity == "FATAL" || severity == "PANIC"
}

// failure returns the fields of an error or a notice.
func failure(body []byte) (m pgproto3.ErrorResponse) {
	_ = m.Decode(body) // of a truncated message it keeps the fields before the end
	return m
}

// record adds the content of a message to the answer's parts, for histories. If the answer may
// contain a password (hides), it omits rows and the texts of errors.
func (t *talk) record(kind byte, body []byte, hides bool) {
	a := &t.answer
	switch kind {
	case 'D':
		var m pgproto3.DataRow
		if !a.rows && !hides && m.Decode(body) == nil {
			a.rows, a.row = true, shown(m.Values)
		}
	case 'C':
		a.say(string(bytes.TrimRight(body, "\x00")), a.row...)
		a.rows, a.row = false, nil
	case 's':
		a.say("more rows", a.row...)
		a.rows, a.row = false, nil
	case 'I':
		a.say("nothing to do")
	case 'E', 'N':
		m := failure(body)
		if hides {
			m.Message = "(secret)"
		}
		a.say(proxy.Shorten(m.Severity + " " + m.Code + " " + m.Message))
		a.rows, a.row = false, nil
	case 'G', 'W':
		a.say("go on")
	case 'R':
		if wantsMore(body) {
			a.say("go on")
		} else if len(body) > 3 && body[3] == 0 {
			a.say("logged in")
		}
	case 'A':
		var m pgproto3.NotificationResponse
		if m.Decode(body) == nil {
			a.say("NOTIFY "+proxy.Shorten(m.Channel), m.Payload)
		}
	case 'S':
		var m pgproto3.ParameterStatus
		if !a.begun && m.Decode(body) == nil { // otherwise it is one of the parameters that each login reports
			a.say(proxy.Shorten(m.Name + " = " + m.Value))
		}
	case 'Z':
		if len(a.parts) == 0 {
			a.say("ready")
		}
	}
}

// say adds a part, up to maxStatements parts.
func (a *answer) say(text string, values ...string) {
	if len(a.parts) < maxStatements {
		a.parts = append(a.parts, proxy.Part{Text: text, Values: values})
	}
}
