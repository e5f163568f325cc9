package lua

import (
	"fmt"
	"math"
	"strings"

	lua "github.com/yuin/gopher-lua"
)

// format is string.format of Lua 5.1: it checks its arguments and treats text as bytes. gopher-lua
// passes everything to Go's fmt.
func format(l *lua.LState) int {
	layout := l.CheckString(1)
	var out strings.Builder
	for arg := 1; layout != ""; {
		plain, rest, found := strings.Cut(layout, "%")
		out.WriteString(plain)
		if layout = rest; !found {
			break
		}
		if strings.HasPrefix(layout, "%") {
			out.WriteByte('%')
			layout = layout[1:]
			continue
		}
		d := direct(l, layout)
		layout = layout[d.length:]
		arg++
		out.WriteString(d.write(l, arg))
	}
	l.Push(lua.LString(out.String()))
	return 1
}

// directive is a conversion specification, the part of a format after a percent sign.
type directive struct {
	length           int // in bytes
	flags            string
	width, precision int // -1 if absent
	verb             byte
}

// direct parses the directive at the start of text, and raises an error if it is invalid.
func direct(l *lua.LState, text string) directive {
	d := directive{width: -1, precision: -1}
	for strings.IndexByte("-+ #0", at(text, d.length)) >= 0 {
		d.length++
	}
	if d.flags = text[:d.length]; d.length > 5 {
		l.RaiseError("invalid format (repeated flags)")
	}
	digits := func(most int) int {
		n := -1
		for ; most > 0 && at(text, d.length) >= '0' && at(text, d.length) <= '9'; most-- {
			n = max(n, 0)*10 + int(text[d.length]-'0')
			d.length++
		}
		return n
	}
	d.width = digits(2)
	if at(text, d.length) == '.' {
		d.length++
		d.precision = max(0, digits(2))
	}
	if c := at(text, d.length); c >= '0' && c <= '9' {
		l.RaiseError("invalid format (width or precision too long)")
	}
	d.verb = at(text, d.length)
	if strings.IndexByte("cdiouxXeEfgGqs", d.verb) < 0 || d.verb == 0 {
		l.RaiseError("invalid option '%%%s' to 'format'", text[:min(len(text), d.length+1)])
	}
	d.length++
	return d
}

// at returns the byte of a text at index i, or 0 after its end.
func at(text string, i int) byte {
	if i < len(text) {
		return text[i]
	}
	return 0
}

// write returns the formatted argument.
func (d directive) write(l *lua.LState, arg int) string {
	switch d.verb {
	case 'c':
		return d.pad(string([]byte{byte(int64(d.number(l, arg)))}))
	case 'd', 'i':
		return d.whole(int64(d.number(l, arg)), 'd')
	case 'u':
		return d.whole(uint64(int64(d.number(l, arg))), 'd')
	case 'o', 'x', 'X':
		return d.whole(uint64(int64(d.number(l, arg))), d.verb)
	case 'q':
		return quoted(d.text(l, arg))
	case 's':
		text := d.text(l, arg)
		if d.precision < 0 && len(text) >= 100 {
			return text // Lua does not format long strings
		}
		text, _, _ = strings.Cut(text, "\x00") // C strings end at a zero byte
		if d.precision >= 0 {
			text = text[:min(len(text), d.precision)]
		}
		return d.pad(text)
	}
	n := d.number(l, arg)
	if math.IsInf(n, 0) || math.IsNaN(n) {
		return d.pad(digits(n, 14))
	}
	precision := d.precision
	if precision < 0 {
		precision = 6
	} else if precision == 0 && (d.verb == 'g' || d.verb == 'G') {
		precision = 1
	}
	return fmt.Sprintf(fmt.Sprintf("%%%s*.*%c", d.flags, d.verb), max(0, d.width), precision, n)
}

// whole formats a whole number. As in C, the precision is the minimum number of digits.
func (d directive) whole(n any, verb byte) string {
	if d.precision < 0 {
		return fmt.Sprintf(fmt.Sprintf("%%%s*%c", d.flags, verb), max(0, d.width), n)
	}
	return fmt.Sprintf(fmt.Sprintf("%%%s*.*%c", d.flags, verb), max(0, d.width), d.precision, n)
}

// pad widens a text to d.width bytes.
func (d directive) pad(text string) string {
	fill := strings.Repeat(" ", max(0, d.width-len(text)))
	if strings.Contains(d.flags, "-") {
		return text + fill
	}
	return fill + text
}

func (d directive) number(l *lua.LState, arg int) float64 {
	value := l.Get(arg)
	if text, ok := value.(lua.LString); ok {
		value = numeral(text)
	}
	n, ok := value.(lua.LNumber)
	if !ok {
		wants(l, arg, "number")
	}
	return float64(n)
}

func (d directive) text(l *lua.LState, arg int) string {
	switch value := l.Get(arg).(type) {
	case lua.LString:
		return string(value)
	case lua.LNumber:
		return formatNumber(value)
	}
	wants(l, arg, "string")
	return ""
}

// wants raises the error for an argument of the wrong type.
func wants(l *lua.LState, arg int, what string) {
	if arg > l.GetTop() {
		l.RaiseError("bad argument #%d to 'format' (no value)", arg)
	}
	l.RaiseError("bad argument #%d to 'format' (%s expected, got %s)", arg, what, l.Get(arg).Type())
}

// escapes writes the characters of a text as in a Lua string literal.
var escapes = strings.NewReplacer(`"`, `\"`, `\`, `\\`, "\n", "\\\n", "\r", `\r`, "\x00", `\000`)

// quoted returns a text as a Lua string literal.
func quoted(text string) string { return `"` + escapes.Replace(text) + `"` }
