package script

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"

	lua "github.com/yuin/gopher-lua"
)

// base returns the functions of Lua's own that do something else here than in
// gopher-lua: they see through locked tables or leave them alone, and they catch
// and print as Redis does.
func (m *Machine) base(raw *lua.LTable) functions {
	return functions{
		"collectgarbage": nought, // what there is to collect is none of a script's business
		"error":          raise,
		"gcinfo":         nought,
		"getmetatable":   m.getMetatable,
		"next":           m.next,
		"pairs":          m.pairs,
		"pcall":          pcall,
		"rawget":         m.rawGet,
		"rawset":         m.changes(function(raw, "rawset")),
		"setmetatable":   m.changes(function(raw, "setmetatable")),
		"tonumber":       toNumber(function(raw, "tonumber")),
		"tostring":       tostring,
		"xpcall":         function(raw, "xpcall"),
	}
}

func nought(l *lua.LState) int {
	l.Push(lua.LNumber(0))
	return 1
}

// raise is error, which takes numbers for text and does not need a value.
func raise(l *lua.LState) int {
	value := l.Get(1)
	if n, ok := value.(lua.LNumber); ok {
		value = lua.LString(number(n))
	}
	if text, ok := value.(lua.LString); ok {
		value = where(l, l.OptInt(2, 1)) + text
	}
	l.Error(value, 0)
	return 0
}

// where returns where the function on that level of the stack is, 1 for the one
// that called, as the beginning of an error: empty if it isn't a script's.
func where(l *lua.LState, level int) lua.LString {
	if source, line := position(l, level); level > 0 && line > 0 {
		return lua.LString(fmt.Sprintf("%s:%d: ", source, line))
	}
	return ""
}

// position returns where the function on that level of the stack is; line is 0
// if it isn't a script's.
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

// getMetatable hides what locks a table. The metatables that scripts share, of
// the globals and of strings, they get to see, locked.
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

// pcall gives scripts the text of an error that is a table, as Redis does.
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
	if t, ok := value.(*lua.LTable); ok {
		value = t.RawGetString("err")
	}
	l.Push(lua.LFalse)
	l.Push(value)
	return 2
}

// toNumber returns a tonumber that knows all that strtod(3) does; gopher-lua's
// takes 1e3 for no number.
func toNumber(withBase lua.LGFunction) lua.LGFunction {
	return func(l *lua.LState) int {
		text, ok := l.Get(1).(lua.LString)
		if !ok || l.OptInt(2, 10) != 10 {
			return withBase(l)
		}
		trimmed := strings.Trim(string(text), " \t\n\v\f\r")
		if n, err := strconv.ParseInt(trimmed, 0, 64); err == nil && strings.HasPrefix(strings.TrimLeft(trimmed, "+-"), "0x") {
			l.Push(lua.LNumber(n))
			return 1
		}
		n, err := strconv.ParseFloat(trimmed, 64)
		if err != nil && !errors.Is(err, strconv.ErrRange) {
			l.Push(lua.LNil)
			return 1
		}
		l.Push(lua.LNumber(n))
		return 1
	}
}

func tostring(l *lua.LState) int {
	value := l.CheckAny(1)
	if n, ok := value.(lua.LNumber); ok {
		value = lua.LString(number(n))
	} else {
		value = l.ToStringMeta(value)
	}
	l.Push(value)
	return 1
}

// toString returns how a value reads, without asking its metatable.
func toString(value lua.LValue) string {
	if n, ok := value.(lua.LNumber); ok {
		return number(n)
	}
	return value.String()
}

// number returns how Lua writes a number: with 14 digits.
func number(n lua.LNumber) string { return digits(float64(n), 14) }

// digits is C's %.*g.
func digits(f float64, precision int) string {
	switch {
	case math.IsNaN(f):
		return "-nan" // what 0/0 is where Redis runs
	case math.IsInf(f, 1):
		return "inf"
	case math.IsInf(f, -1):
		return "-inf"
	}
	return strconv.FormatFloat(f, 'g', precision, 64)
}
