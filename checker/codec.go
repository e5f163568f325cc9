package checker

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"time"
	"unicode/utf8"

	"github.com/lockfault/lockfault/internal/jsonscan"
)

// Format is the version of the history format that Encode writes and Decode reads.
const Format = 1

// maxLine is the maximum length of a line of a history, in bytes. Writers of histories limit the
// texts of servers to far less.
const maxLine = 1 << 20

// Encode writes a history as JSON lines: first Meta, then each event. docs/history.md describes the
// fields. The same history always yields the same bytes. Bytes of a text that are not valid UTF-8
// become U+FFFD. Encode does not validate the history; the only errors are those of w, wrapped.
func Encode(w io.Writer, h History) error {
	buffer := bufio.NewWriterSize(w, 1<<16)
	var first bytes.Buffer
	encoder := json.NewEncoder(&first)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(h.Meta); err != nil { // every field of Meta can be encoded
		return fmt.Errorf("checker: writing the history's first line: %w", err)
	}
	if _, err := buffer.Write(first.Bytes()); err != nil {
		return fmt.Errorf("checker: writing the history: %w", err)
	}
	line := make([]byte, 0, 512)
	for i := range h.Events {
		line = append(h.Events[i].AppendJSON(line[:0]), '\n')
		if _, err := buffer.Write(line); err != nil {
			return fmt.Errorf("checker: writing event %d of the history: %w", i, err)
		}
	}
	if err := buffer.Flush(); err != nil {
		return fmt.Errorf("checker: writing the history: %w", err)
	}
	return nil
}

// AppendJSON appends the event as encoding/json encodes it, and returns the extended slice.
// AppendJSON is several times as fast as encoding/json, because histories are long and every run
// writes them.
func (e *Event) AppendJSON(b []byte) []byte {
	b = strconv.AppendInt(append(b, `{"i":`...), int64(e.Index), 10)
	b = strconv.AppendInt(append(b, `,"t":`...), int64(e.Time), 10)
	b = appendString(append(b, `,"kind":`...), string(e.Kind))
	b = appendText(b, `,"client":`, e.Client)
	b = appendText(b, `,"node":`, e.Node)
	b = appendText(b, `,"server":`, e.Server)
	b = appendText(b, `,"op":`, string(e.Op))
	b = appendNumber(b, `,"call":`, int64(e.Call))
	b = appendText(b, `,"result":`, string(e.Result))
	b = appendText(b, `,"error":`, e.Error)
	b = appendNumber(b, `,"token":`, e.Token)
	b = appendNumber(b, `,"until":`, int64(e.Until))
	b = appendTrue(b, `,"accepted":true`, e.Accepted)
	b = appendNumber(b, `,"conn":`, int64(e.Conn))
	b = appendText(b, `,"direction":`, e.Direction)
	b = appendText(b, `,"command":`, e.Command)
	b = appendText(b, `,"reply":`, e.Reply)
	b = appendNumber(b, `,"sent":`, int64(e.Sent))
	b = appendTrue(b, `,"silent":true`, e.Silent)
	b = appendText(b, `,"owner":`, e.Owner)
	b = appendText(b, `,"value":`, e.Value)
	b = appendNumber(b, `,"expires":`, int64(e.Expires))
	b = appendText(b, `,"cause":`, string(e.Cause))
	b = appendText(b, `,"text":`, e.Text)
	b = appendNumber(b, `,"took":`, int64(e.Took))
	b = appendNumber(b, `,"line":`, int64(e.Line))
	return append(b, '}')
}

// appendText appends a field with a text, unless the text is empty.
func appendText(b []byte, field, text string) []byte {
	if text == "" {
		return b
	}
	return appendString(append(b, field...), text)
}

// appendTrue appends a field, unless is is false.
func appendTrue(b []byte, field string, is bool) []byte {
	if !is {
		return b
	}
	return append(b, field...)
}

// appendNumber appends a field with a number, unless the number is 0.
func appendNumber(b []byte, field string, n int64) []byte {
	if n == 0 {
		return b
	}
	return strconv.AppendInt(append(b, field...), n, 10)
}

// shortEscapes holds the characters that have an escape without a number, and its letter.
var shortEscapes = [utf8.RuneSelf]byte{'"': '"', '\\': '\\', '\b': 'b', '\f': 'f', '\n': 'n', '\r': 'r', '\t': 't'}

// appendString appends text as a JSON string, with the escapes of encoding/json without HTML
// escaping.
func appendString(b []byte, text string) []byte {
	const hex = "0123456789abcdef"
	b = append(b, '"')
	from := 0
	for i := 0; i < len(text); {
		c := text[i]
		if c < utf8.RuneSelf {
			if c >= ' ' && c != '"' && c != '\\' {
				i++
				continue
			}
			b = append(b, text[from:i]...)
			if short := shortEscapes[c]; short != 0 {
				b = append(b, '\\', short)
			} else {
				b = append(b, '\\', 'u', '0', '0', hex[c>>4], hex[c&15])
			}
			i++
			from = i
			continue
		}
		r, size := utf8.DecodeRuneInString(text[i:])
		switch {
		case r == utf8.RuneError && size == 1:
			b = append(append(b, text[from:i]...), `\ufffd`...)
			from = i + size
		case r == '\u2028' || r == '\u2029': // line terminators in JavaScript
			b = append(append(b, text[from:i]...), `\u202`...)
			b = append(b, hex[r&15])
			from = i + size
		}
		i += size
	}
	return append(append(b, text[from:]...), '"')
}

var eventLines = jsonscan.LinesOf[Event]()

// Decode reads a history that Encode wrote, until r ends. Decode returns an error that names the
// line for another format, unknown fields or kinds, and events out of order. An error of r is
// returned wrapped.
func Decode(r io.Reader) (History, error) {
	lines := &lineReader{Scanner: bufio.NewScanner(r)}
	lines.Buffer(make([]byte, 1<<16), maxLine)
	text, err := lines.next()
	if errors.Is(err, io.EOF) {
		return History{}, errors.New("checker: the history is empty; its first line should say what it is of")
	}
	if err != nil {
		return History{}, fmt.Errorf("checker: line 1: %w", err)
	}
	var h History
	known := map[string]string{} // most texts occur many times
	intern := func(b []byte) string {
		s, ok := known[string(b)] // does not allocate
		if !ok {
			s = string(b)
			known[s] = s
		}
		return s
	}
	if err := decodeLine(text, &h.Meta); err != nil {
		return History{}, fmt.Errorf("checker: line 1: %w", err)
	}
	if h.Meta.Format != Format {
		return History{}, fmt.Errorf("checker: line 1: history format %d; this program reads format %d", h.Meta.Format, Format)
	}
	last := time.Duration(0)
	for e := new(Event); ; {
		text, err := lines.next()
		if errors.Is(err, io.EOF) {
			return h, nil
		}
		if err != nil {
			return History{}, fmt.Errorf("checker: line %d: %w", lines.n, err)
		}
		*e = Event{}
		if !eventLines.Read(text, e, intern) {
			*e = Event{}
			err = decodeLine(text, e)
		}
		switch {
		case err != nil:
		case e.Index != len(h.Events):
			err = fmt.Errorf("event %d where event %d should be", e.Index, len(h.Events))
		case len(h.Events) > 0 && e.Time < last:
			err = fmt.Errorf("time goes back from %s to %s", last, e.Time)
		case !e.Kind.known():
			err = fmt.Errorf("no kind of event is called %q", e.Kind)
		}
		if err != nil {
			return History{}, fmt.Errorf("checker: line %d: %w", lines.n, err)
		}
		last = e.Time
		h.Events = append(h.Events, *e)
	}
}

func (k Kind) known() bool {
	switch k {
	case Invoke, Return, Lost, Write, Request, Reply, Push, Held, Passed, Dropped, State,
		Pause, Resume, Crash, Restart, Cancel, Fault, Measure, Step, End:
		return true
	}
	return false
}

// decodeLine decodes exactly one JSON object into v and rejects fields that v does not have.
func decodeLine(text []byte, v any) error {
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(v); err != nil {
		if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
			err = errors.New("the line ends too soon")
		}
		return jsonscan.Reason(err)
	}
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		return errors.New("more than one object on the line")
	}
	return nil
}

type lineReader struct {
	*bufio.Scanner
	n int // lines read
}

// next returns the next line without its line end, and io.EOF after the last line.
func (l *lineReader) next() ([]byte, error) {
	l.n++
	more := l.Scan()
	switch err := l.Err(); {
	case errors.Is(err, bufio.ErrTooLong):
		return nil, fmt.Errorf("longer than %d bytes", maxLine)
	case err != nil: // the rest of a line before the error is no line
		return nil, err
	case !more:
		return nil, io.EOF
	}
	return l.Bytes(), nil
}
