package lua

import (
	"bytes"
	"strconv"
	"strings"

	lua "github.com/yuin/gopher-lua"

	"github.com/lockfault/lockfault/internal/resp"
)

// reply is a script's reply in RESP, as it is built.
type reply struct {
	bytes []byte
	resp3 bool // the client uses RESP3
	bools bool // the script has set RESP3, in which true and false are not numbers
}

// add appends a value. Source:
// https://redis.io/docs/latest/develop/programmability/lua-api/#lua-to-resp3-type-conversion
func (r *reply) add(value lua.LValue, depth int) {
	switch v := value.(type) {
	case lua.LString:
		r.text(string(v))
	case lua.LNumber:
		r.head(':', integer(v))
	case lua.LBool:
		switch {
		case r.bools && r.resp3:
			r.line('#', map[bool]string{true: "t", false: "f"}[bool(v)])
		case bool(v):
			r.head(':', 1)
		case r.bools:
			r.head(':', 0)
		default:
			r.null()
		}
	case *lua.LTable:
		if depth >= resp.MaxDepth {
			r.error("ERR reached lua stack limit")
			return
		}
		r.table(v, depth)
	default:
		r.null()
	}
}

// table appends a table. A field such as err or map determines the table's type. Without such a
// field the table is an array up to its first nil.
func (r *reply) table(t *lua.LTable, depth int) {
	if text, ok := t.RawGetString("err").(lua.LString); ok {
		r.error(string(text))
		return
	}
	if text, ok := t.RawGetString("ok").(lua.LString); ok {
		r.line('+', string(text))
		return
	}
	if n, ok := t.RawGetString("double").(lua.LNumber); ok {
		r.either(',', digits(float64(n), 17))
		return
	}
	if entries, ok := t.RawGetString("map").(*lua.LTable); ok {
		r.entries('%', 2, entries, depth)
		return
	}
	if entries, ok := t.RawGetString("set").(*lua.LTable); ok {
		r.entries('~', 1, entries, depth)
		return
	}
	if text, ok := t.RawGetString("big_number").(lua.LString); ok {
		r.either('(', string(text))
		return
	}
	if v, ok := t.RawGetString("verbatim_string").(*lua.LTable); ok {
		text, isText := v.RawGetString("string").(lua.LString)
		format, isFormat := v.RawGetString("format").(lua.LString)
		if isText && isFormat {
			r.verbatim(string(format), string(text))
			return
		}
	}
	size := 0
	for t.RawGetInt(size+1) != lua.LNil {
		size++
	}
	r.head('*', int64(size))
	for i := range size {
		r.add(t.RawGetInt(i+1), depth+1)
	}
}

// entries appends the keys of a table, and also its values if parts is 2.
func (r *reply) entries(kind byte, parts int, t *lua.LTable, depth int) {
	var all []lua.LValue
	t.ForEach(func(key, value lua.LValue) { all = append(append(all, key), value) })
	count := len(all) / 2
	if !r.resp3 {
		kind, count = '*', count*parts
	}
	r.head(kind, int64(count))
	for i := 0; i < len(all); i += 2 {
		for _, part := range all[i : i+parts] {
			r.add(part, depth+1)
		}
	}
}

func (r *reply) error(text string) { r.line('-', text) }

func (r *reply) null() {
	if r.resp3 {
		r.line('_', "")
	} else {
		r.head('$', -1)
	}
}

// either appends a value that is a bulk string in RESP2.
func (r *reply) either(kind byte, text string) {
	if r.resp3 {
		r.line(kind, text)
	} else {
		r.text(text)
	}
}

func (r *reply) verbatim(format, text string) {
	if !r.resp3 {
		r.text(text)
		return
	}
	text = (format + "   ")[:3] + ":" + text
	r.head('=', int64(len(text)))
	r.bytes = append(append(r.bytes, text...), "\r\n"...)
}

func (r *reply) text(text string) {
	r.head('$', int64(len(text)))
	r.bytes = append(append(r.bytes, text...), "\r\n"...)
}

func (r *reply) head(kind byte, n int64) {
	r.bytes = append(strconv.AppendInt(append(r.bytes, kind), n, 10), "\r\n"...)
}

// line appends a value that must be on one line; line breaks become blanks.
func (r *reply) line(kind byte, text string) {
	if strings.ContainsAny(text, "\r\n") {
		text = strings.NewReplacer("\r", " ", "\n", " ").Replace(text)
	}
	r.bytes = append(append(append(r.bytes, kind), text...), "\r\n"...)
}

// read returns the first value of a reply to the script, and the bytes after it. Source:
// https://redis.io/docs/latest/develop/programmability/lua-api/#resp3-to-lua-type-conversion
func (m *Machine) read(b []byte) (lua.LValue, []byte) {
	kind := b[0]
	line, rest := cut(b)
	line = line[1:]
	switch kind {
	case '+':
		return m.record("ok", lua.LString(line)), rest
	case '-':
		return m.failed(line), rest
	case '#':
		return lua.LBool(line == "t"), rest
	case ',':
		n, _ := strconv.ParseFloat(line, 64)
		return m.record("double", lua.LNumber(n)), rest
	case '(':
		return m.record("big_number", lua.LString(line)), rest
	case '_':
		return lua.LNil, rest
	}
	n, err := strconv.Atoi(line)
	switch {
	case err != nil: // invalid RESP, which servers do not send
		return lua.LNil, nil
	case kind == ':':
		return lua.LNumber(n), rest
	case n < 0 && m.resp3:
		return lua.LNil, rest
	case n < 0:
		return lua.LFalse, rest
	case kind == '$':
		return lua.LString(rest[:n]), rest[n+2:]
	case kind == '=':
		v := m.lua.CreateTable(0, 2)
		v.RawSetString("format", lua.LString(rest[:3]))
		v.RawSetString("string", lua.LString(rest[4:n]))
		return m.record("verbatim_string", v), rest[n+2:]
	case kind == '%':
		t := m.lua.CreateTable(0, n)
		for range n {
			var key, value lua.LValue
			key, rest = m.read(rest)
			value, rest = m.read(rest)
			m.lua.RawSet(t, key, value)
		}
		return m.record("map", t), rest
	case kind == '~':
		t := m.lua.CreateTable(0, n)
		for range n {
			var member lua.LValue
			member, rest = m.read(rest)
			m.lua.RawSet(t, member, lua.LTrue)
		}
		return m.record("set", t), rest
	}
	t := m.lua.CreateTable(n, 0)
	for i := range n {
		var value lua.LValue
		value, rest = m.read(rest)
		t.RawSetInt(i+1, value)
	}
	return t, rest
}

// cut returns the first line without its line break, and the bytes after it.
func cut(b []byte) (line string, rest []byte) {
	end := bytes.Index(b, []byte("\r\n"))
	if end < 0 { // invalid RESP, which servers do not send
		return string(b) + " ", nil
	}
	return string(b[:end]), b[end+2:]
}
