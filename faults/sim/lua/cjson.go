package lua

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"strings"

	lua "github.com/yuin/gopher-lua"
)

// The library cjson as Redis configures it, without the functions that change its settings. Source:
// https://redis.io/docs/latest/develop/programmability/lua-api/#cjson-library

const (
	jsonDepth  = 1000 // maximum depth of nested values
	jsonDigits = 14   // digits of a number
	// An array may have holes unless its last index exceeds both jsonSafe and jsonSparse times the
	// number of its values.
	jsonSafe, jsonSparse = 10, 2
)

func (m *Machine) json() *lua.LTable {
	t := m.lua.CreateTable(0, 5)
	m.add(t, functions{
		"decode": m.decode,
		"encode": func(l *lua.LState) int {
			if l.GetTop() != 1 {
				l.ArgError(1, "expected 1 argument")
			}
			text, err := m.encode(nil, l.Get(1), 0)
			if err != nil {
				l.RaiseError("%s", sentence(err))
			}
			l.Push(lua.LString(text))
			return 1
		},
	})
	t.RawSetString("_NAME", lua.LString("cjson"))
	t.RawSetString("_VERSION", lua.LString("2.1.0"))
	t.RawSetString("null", m.null)
	return t
}

// sentence returns an error text as cjson writes it, with a capital first letter.
func sentence(err error) string {
	text := err.Error()
	return strings.ToUpper(text[:1]) + text[1:]
}

// encode appends the JSON of a value.
func (m *Machine) encode(out []byte, value lua.LValue, depth int) ([]byte, error) {
	switch v := value.(type) {
	case *lua.LNilType:
		return append(out, "null"...), nil
	case lua.LBool:
		return fmt.Appendf(out, "%t", bool(v)), nil
	case lua.LString:
		return encodeText(out, string(v)), nil
	case lua.LNumber:
		if math.IsNaN(float64(v)) || math.IsInf(float64(v), 0) {
			return nil, errors.New("cannot serialise number: must not be NaN or Inf")
		}
		return append(out, digits(float64(v), jsonDigits)...), nil
	case *lua.LUserData:
		if v == m.null {
			return append(out, "null"...), nil
		}
	case *lua.LTable:
		if depth++; depth > jsonDepth {
			return nil, fmt.Errorf("cannot serialise, excessive nesting (%d)", depth)
		}
		size, err := arraySize(m.guard.behind(v))
		if err != nil {
			return nil, err
		}
		if size > 0 {
			return m.encodeArray(out, v, size, depth)
		}
		return m.encodeObject(out, m.guard.behind(v), depth)
	}
	return nil, fmt.Errorf("cannot serialise %s: type not supported", value.Type())
}

// arraySize returns the last index of a table that is an array, or 0 if it is not an array or is
// empty. arraySize returns an error for an excessively sparse array.
func arraySize(t *lua.LTable) (int, error) {
	last, count := 0, 0
	array := true
	t.ForEach(func(key, _ lua.LValue) {
		n, ok := key.(lua.LNumber)
		if !ok || n < 1 || n != lua.LNumber(math.Floor(float64(n))) {
			array = false
			return
		}
		last, count = max(last, int(n)), count+1
	})
	switch {
	case !array:
		return 0, nil
	case last > jsonSafe && last > jsonSparse*count:
		return 0, errors.New("cannot serialise table: excessively sparse array")
	}
	return last, nil
}

func (m *Machine) encodeArray(out []byte, t *lua.LTable, size, depth int) ([]byte, error) {
	var err error
	out = append(out, '[')
	for i := range size {
		if i > 0 {
			out = append(out, ',')
		}
		if out, err = m.encode(out, t.RawGetInt(i+1), depth); err != nil {
			return nil, err
		}
	}
	return append(out, ']'), nil
}

func (m *Machine) encodeObject(out []byte, t *lua.LTable, depth int) ([]byte, error) {
	out = append(out, '{')
	first := true
	for key, value := t.Next(lua.LNil); key != lua.LNil; key, value = t.Next(key) {
		if !first {
			out = append(out, ',')
		}
		first = false
		switch key.(type) {
		case lua.LNumber, lua.LString:
			out = append(encodeText(out, toString(key)), ':')
		default:
			return nil, fmt.Errorf("cannot serialise %s: table key must be a number or string", key.Type())
		}
		var err error
		if out, err = m.encode(out, value, depth); err != nil {
			return nil, err
		}
	}
	return append(out, '}'), nil
}

// encodeText appends a string as cjson writes it: it escapes slashes and copies non-ASCII bytes
// unchanged, whether UTF-8 or not.
func encodeText(out []byte, text string) []byte {
	out = append(out, '"')
	for i := range len(text) {
		switch b := text[i]; {
		case strings.IndexByte(`"\/`, b) >= 0:
			out = append(out, '\\', b)
		case strings.IndexByte("\b\t\n\f\r", b) >= 0:
			out = append(out, '\\', "btn?fr"[b-'\b'])
		case b < ' ' || b == 0x7f:
			out = fmt.Appendf(out, `\u%04x`, b)
		default:
			out = append(out, b)
		}
	}
	return append(out, '"')
}

func (m *Machine) decode(l *lua.LState) int {
	if l.GetTop() != 1 {
		l.ArgError(1, "expected 1 argument")
	}
	text := l.CheckString(1)
	d := decoder{m: m, json: json.NewDecoder(strings.NewReader(text))}
	value, err := d.value(0)
	if err == nil {
		if _, end := d.json.Token(); end != io.EOF {
			err = errors.New("expected the end but found something else")
		}
	}
	if err != nil {
		l.RaiseError("%s at character %d", sentence(err), d.json.InputOffset()+1)
	}
	l.Push(value)
	return 1
}

// decoder reads JSON token by token, because the fields of an object must keep their order, which a
// script can observe.
type decoder struct {
	m    *Machine
	json *json.Decoder
}

func (d decoder) value(depth int) (lua.LValue, error) {
	token, err := d.json.Token()
	if err != nil {
		return nil, d.unexpected(err)
	}
	switch t := token.(type) {
	case bool:
		return lua.LBool(t), nil
	case float64:
		return lua.LNumber(t), nil
	case string:
		return lua.LString(t), nil
	case json.Delim:
		if depth++; depth > jsonDepth {
			return nil, fmt.Errorf("found too many nested data structures (%d)", depth)
		}
		return d.composite(t, depth)
	}
	return d.m.null, nil
}

func (d decoder) composite(begin json.Delim, depth int) (lua.LValue, error) {
	t := d.m.lua.CreateTable(0, 0)
	for i := 1; d.json.More(); i++ {
		var key lua.LValue = lua.LNumber(i)
		if begin == '{' {
			token, err := d.json.Token()
			if err != nil {
				return nil, d.unexpected(err)
			}
			key = lua.LString(token.(string)) // always a string, or the decoder would have failed
		}
		value, err := d.value(depth)
		if err != nil {
			return nil, err
		}
		d.m.lua.RawSet(t, key, value)
	}
	_, err := d.json.Token() // the closing delimiter
	return t, d.unexpected(err)
}

// unexpected converts an error of package json to cjson's text.
func (d decoder) unexpected(err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF):
		return errors.New("expected value but found T_END")
	}
	return errors.New("expected value but found invalid token")
}
