package lua

import (
	"strings"

	lua "github.com/yuin/gopher-lua"
)

// version is the version of Redis whose behavior this package reproduces.
const (
	version       = "7.0.15"
	versionNumber = 7<<16 | 0<<8 | 15
)

// redis returns the library by which a script communicates with Redis.
func (m *Machine) redis() *lua.LTable {
	t := m.lua.CreateTable(0, 24)
	m.add(t, functions{
		"acl_check_cmd":      m.aclCheckCommand,
		"breakpoint":         func(l *lua.LState) int { l.Push(lua.LFalse); return 1 }, // no debugger is attached
		"call":               func(l *lua.LState) int { return m.command(l, true) },
		"debug":              func(*lua.LState) int { return 0 },
		"error_reply":        m.errorReply,
		"log":                m.log,
		"pcall":              func(l *lua.LState) int { return m.command(l, false) },
		"replicate_commands": func(l *lua.LState) int { l.Push(lua.LTrue); return 1 },
		"set_repl":           m.setReplication,
		"setresp":            m.setRESP,
		"sha1hex":            m.sha1hex,
		"status_reply":       m.statusReply,
	})
	for i, name := range [...]string{"LOG_DEBUG", "LOG_VERBOSE", "LOG_NOTICE", "LOG_WARNING"} {
		t.RawSetString(name, lua.LNumber(i))
	}
	for _, c := range [...]struct {
		name  string
		value int
	}{{"REPL_ALL", 3}, {"REPL_AOF", 1}, {"REPL_NONE", 0}, {"REPL_REPLICA", 2}, {"REPL_SLAVE", 2}, {"REDIS_VERSION_NUM", versionNumber}} {
		t.RawSetString(c.name, lua.LNumber(c.value))
	}
	t.RawSetString("REDIS_VERSION", lua.LString(version))
	return t
}

// command is redis.call if raises is set, otherwise redis.pcall. redis.call raises an error reply;
// redis.pcall returns it.
func (m *Machine) command(l *lua.LState, raises bool) int {
	value, said := m.execute(l)
	if said != "" {
		value = m.failed(said)
		if raises {
			l.Error(value, 1)
		}
	}
	l.Push(value)
	return 1
}

// execute executes the command on the stack. said is an error, or empty.
func (m *Machine) execute(l *lua.LState) (value lua.LValue, said string) {
	words := make([]string, l.GetTop())
	if len(words) == 0 {
		return nil, "ERR Please specify at least one argument for this redis lib call"
	}
	for i := range words {
		switch arg := l.Get(i + 1).(type) {
		case lua.LString:
			words[i] = string(arg)
		case lua.LNumber:
			words[i] = digits(float64(arg), 17)
		default:
			return nil, "ERR Lua redis lib command arguments must be strings or integers"
		}
	}
	answer := m.call.Do(words, m.resp3)
	if answer[0] == '-' {
		line, _ := cut(answer)
		return nil, line[1:]
	}
	value, _ = m.read(answer)
	return value, ""
}

// oneText returns the only argument of a function, and whether it is text.
func oneText(l *lua.LState) (string, bool) {
	text, ok := l.Get(1).(lua.LString)
	return string(text), ok && l.GetTop() == 1
}

func (m *Machine) errorReply(l *lua.LState) int {
	text, ok := oneText(l)
	if !ok {
		text = "ERR wrong number or type of arguments"
	}
	text = strings.TrimPrefix(text, "-")
	if !strings.Contains(text, " ") {
		text = "ERR " + text
	}
	l.Push(m.failed(text))
	return 1
}

func (m *Machine) statusReply(l *lua.LState) int {
	text, ok := oneText(l)
	if !ok {
		l.Push(m.failed("ERR wrong number or type of arguments"))
		return 1
	}
	l.Push(m.record("ok", lua.LString(text)))
	return 1
}

func (m *Machine) sha1hex(l *lua.LState) int {
	if l.GetTop() != 1 {
		return m.raise(l, "wrong number of arguments")
	}
	text := ""
	switch value := l.Get(1).(type) {
	case lua.LString:
		text = string(value)
	case lua.LNumber:
		text = formatNumber(value)
	}
	l.Push(lua.LString(Sum(text)))
	return 1
}

// log is redis.log. log checks its arguments and writes nothing, because there is no log.
func (m *Machine) log(l *lua.LState) int {
	if l.GetTop() < 2 {
		return m.raise(l, "redis.log() requires two arguments or more.")
	}
	level, ok := l.Get(1).(lua.LNumber)
	switch {
	case !ok:
		return m.raise(l, "First argument must be a number (log level).")
	case level < 0 || level > 3:
		return m.raise(l, "Invalid debug level.")
	}
	return 0
}

func (m *Machine) setRESP(l *lua.LState) int {
	if l.GetTop() != 1 {
		return m.raise(l, "redis.setresp() requires one argument.")
	}
	switch l.Get(1) {
	case lua.LNumber(2), lua.LNumber(3):
		m.resp3 = l.Get(1) == lua.LNumber(3)
		return 0
	}
	return m.raise(l, "RESP version must be 2 or 3.")
}

// setReplication is redis.set_repl. setReplication checks its argument and has no effect: effects
// are always replicated.
func (m *Machine) setReplication(l *lua.LState) int {
	if l.GetTop() != 1 {
		return m.raise(l, "redis.set_repl() requires two arguments.")
	}
	if flags, ok := l.Get(1).(lua.LNumber); !ok || flags < 0 || flags > 3 {
		return m.raise(l, "Invalid replication flags. Use REPL_AOF, REPL_REPLICA, REPL_ALL or REPL_NONE.")
	}
	return 0
}

// aclCheckCommand is redis.acl_check_cmd. aclCheckCommand always returns true.
func (m *Machine) aclCheckCommand(l *lua.LState) int {
	if l.GetTop() == 0 {
		return m.raise(l, "Please specify at least one argument for this redis.acl_check_cmd() call")
	}
	l.Push(lua.LTrue)
	return 1
}
