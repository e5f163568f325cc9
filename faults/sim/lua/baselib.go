package lua

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	lua "github.com/yuin/gopher-lua"
)

// base returns the base functions that differ from those of gopher-lua. They see through read-only
// tables or reject them, and they handle errors and format values as Redis does.
func (m *Machine) base(raw *lua.LTable) functions {
	return functions{
		"collectgarbage": nought, // a script must not observe the memory of this process
		"error":          raise,
		"gcinfo":         nought,
		"getmetatable":   m.getMetatable,
		"next":           m.next,
		"pairs":          m.pairs,
		"pcall":          pcall,
		"rawget":         m.rawGet,
		"rawset":         m.changes(function(raw, "rawset")),
		"setmetatable":   m.changes(function(raw, "setmetatable")),
		"select":         convert(function(raw, "select"), []int{1}, nil),
		"tonumber":       convert(toNumber(function(raw, "tonumber")), []int{2}, nil),
		"tostring":       tostring,
		"unpack":         convert(function(raw, "unpack"), []int{2, 3}, nil),
		"xpcall":         function(raw, "xpcall"),
	}
}

func nought(l *lua.LState) int {
	l.Push(lua.LNumber(0))
	return 1
}

// raise is Lua's error. raise accepts numbers as text, and a missing argument.
func raise(l *lua.LState) int {
	value := l.Get(1)
	if n, ok := value.(lua.LNumber); ok {
		value = lua.LString(formatNumber(n))
	}
	if text, ok := value.(lua.LString); ok {
		value = where(l, l.OptInt(2, 1)) + text
	}
	l.Error(value, 0)
	return 0
}

// where returns the position of the function at a level of the stack, as the prefix of an error;
// level 1 is the caller. where returns an empty text if the function is not part of a script.
func where(l *lua.LState, level int) lua.LString {
	if source, line := position(l, level); level > 0 && line > 0 {
		return lua.LString(fmt.Sprintf("%s:%d: ", source, line))
	}
	return ""
}

// position returns the position of the function at a level of the stack. line is 0 if the function
// is not part of a script.
func position(l *lua.LState, level int) (source string, line int) {
	frame, ok := l.GetStack(level)
	if !ok {
		return "", 0
	}
	if _, err := l.GetInfo("Sl", frame, lua.LNil); err != nil {
		return "", 0
	}
	return frame.Source, max(0, frame.CurrentLine)
}

// getMetatable is Lua's getmetatable. getMetatable hides the metatables of proxies. For the shared
// metatables of the globals and of strings it returns read-only views.
func (m *Machine) getMetatable(l *lua.LState) int {
	value := l.CheckAny(1)
	meta := l.GetMetatable(value)
	if t, ok := value.(*lua.LTable); ok && m.guard[t] != nil {
		meta = lua.LNil
		if m.guard[t] == m.globals {
			meta = m.metaGlobals
		}
	} else if value.Type() == lua.LTString {
		meta = m.metaStrings
	}
	l.Push(meta)
	return 1
}

func (m *Machine) next(l *lua.LState) int {
	key, value := m.guard.behind(l.CheckTable(1)).Next(l.Get(2))
	l.Push(key)
	if key == lua.LNil {
		return 1
	}
	l.Push(value)
	return 2
}

func (m *Machine) pairs(l *lua.LState) int {
	t := l.CheckTable(1)
	l.Push(m.globals.RawGetString("next"))
	l.Push(t)
	l.Push(lua.LNil)
	return 3
}

func (m *Machine) rawGet(l *lua.LState) int {
	l.Push(l.RawGet(m.guard.behind(l.CheckTable(1)), l.CheckAny(2)))
	return 1
}

// pcall is Lua's pcall. As Redis does, it returns the text of an error that is a table.
func pcall(l *lua.LState) int {
	if f := l.CheckAny(1); f.Type() != lua.LTFunction && l.GetMetaField(f, "__call") == lua.LNil {
		l.Push(lua.LFalse)
		l.Push(lua.LString("attempt to call a " + f.Type().String() + " value"))
		return 2
	}
	err := l.PCall(l.GetTop()-1, lua.MultRet, nil)
	if err == nil {
		l.Insert(lua.LTrue, 1)
		return l.GetTop()
	}
	var value lua.LValue = lua.LString(err.Error())
	if e, ok := errors.AsType[*lua.ApiError](err); ok {
		value = e.Object
	}
	l.Push(lua.LFalse)
	if t, ok := value.(*lua.LTable); ok {
		if text := t.RawGetString("err"); lua.LVCanConvToString(text) {
			value = text
		} else { // Redis then returns a nil after the table
			l.Push(value)
			l.Push(lua.LNil)
			return 3
		}
	}
	l.Push(value)
	return 2
}

// toNumber returns a tonumber that accepts everything that strtod(3) accepts. gopher-lua's tonumber
// rejects 1e3.
func toNumber(withBase lua.LGFunction) lua.LGFunction {
	return func(l *lua.LState) int {
		text, ok := l.Get(1).(lua.LString)
		if !ok || l.OptInt(2, 10) != 10 {
			return withBase(l)
		}
		l.Push(numeral(text))
		return 1
	}
}

// numeral returns the number that Lua reads from a text, or nil if the text is not a number.
func numeral(text lua.LString) lua.LValue {
	trimmed := strings.Trim(string(text), " \t\n\v\f\r")
	if strings.Contains(trimmed, "_") { // only Go allows underscores
		return lua.LNil
	}
	if n, err := strconv.ParseInt(trimmed, 0, 64); err == nil && strings.HasPrefix(strings.TrimLeft(trimmed, "+-"), "0x") {
		return lua.LNumber(n)
	}
	n, err := strconv.ParseFloat(trimmed, 64)
	if err != nil && !errors.Is(err, strconv.ErrRange) {
		return lua.LNil
	}
	return lua.LNumber(n)
}

// convert returns f with conversion of its arguments, as Lua's own functions do. Numerals at the
// indexes numbers become numbers, and numbers at the indexes texts become text.
func convert(f lua.LGFunction, numbers, texts []int) lua.LGFunction {
	return func(l *lua.LState) int {
		for _, i := range numbers {
			if text, ok := l.Get(i).(lua.LString); ok {
				if n := numeral(text); n != lua.LNil {
					l.Replace(i, n)
				}
			}
		}
		for _, i := range texts {
			if n, ok := l.Get(i).(lua.LNumber); ok {
				l.Replace(i, lua.LString(formatNumber(n)))
			}
		}
		return f(l)
	}
}

// converts wraps functions of a gopher-lua library in convert.
func (m *Machine) converts(library *lua.LTable, names map[string][]int, texts ...int) {
	for _, name := range slices.Sorted(maps.Keys(names)) {
		library.RawSetString(name, m.lua.NewFunction(convert(function(library, name), names[name], texts)))
	}
}

// inBytes returns string.lower or string.upper for the letters from first to last; only ASCII
// letters change.
func inBytes(first, last byte) lua.LGFunction {
	return func(l *lua.LState) int {
		text := []byte(l.CheckString(1))
		for i, b := range text {
			if first <= b && b <= last {
				text[i] ^= 'a' - 'A'
			}
		}
		l.Push(lua.LString(text))
		return 1
	}
}

func tostring(l *lua.LState) int {
	value := l.CheckAny(1)
	if n, ok := value.(lua.LNumber); ok {
		value = lua.LString(formatNumber(n))
	} else {
		value = l.ToStringMeta(value)
	}
	l.Push(value)
	return 1
}

// toString returns the text of a value without its metatable's conversion.
func toString(value lua.LValue) string {
	if n, ok := value.(lua.LNumber); ok {
		return formatNumber(n)
	}
	return value.String()
}

// formatNumber returns a number as Lua writes it, with 14 digits.
func formatNumber(n lua.LNumber) string { return digits(float64(n), 14) }

// digits formats f as C's %.*g.
func digits(f float64, precision int) string {
	switch {
	case math.IsNaN(f):
		return "-nan" // the text of 0/0 on the platforms of Redis
	case math.IsInf(f, 1):
		return "inf"
	case math.IsInf(f, -1):
		return "-inf"
	}
	return strconv.FormatFloat(f, 'g', precision, 64)
}
