// Package script runs the scripts that EVAL and its like are given, in Lua, and
// says what Redis 7.0 says: the same types both ways, the same errors in the same
// words, the same libraries locked against change.
//
// A script's text, keys and arguments come in; the reply goes out as bytes of
// RESP. What the script asks of Redis goes through a function of the caller's, so
// the package knows neither servers nor connections.
//
// The contract: https://redis.io/docs/latest/develop/programmability/lua-api/
package lua

import (
	"crypto/sha1"
	"encoding/hex"
	"errors"
	"fmt"
	"math"
	"reflect"
	"strings"

	lua "github.com/yuin/gopher-lua"
	"github.com/yuin/gopher-lua/parse"
)

// Sum returns what Redis calls a script by: its SHA1 in small hexadecimal
// letters.
func Sum(text string) string {
	sum := sha1.Sum([]byte(text))
	return hex.EncodeToString(sum[:])
}

// Machine runs scripts, one at a time. It keeps a Lua state with its libraries
// and each text that it compiled, which is what costs; nothing that one script
// does is left for the next.
//
// A machine belongs to one world at a time and is not safe for concurrent use: only one
// goroutine of a world executes commands, so nobody has to wait for a lock, and
// worlds that live at the same time have nothing in common. The zero value is
// ready for use.
type Machine struct {
	lua     *lua.LState // nil until the first script, and after one that failed
	guard   guard
	globals *lua.LTable
	// The metatables of the globals and of strings, as scripts may see them.
	metaGlobals, metaStrings *lua.LTable

	catcher  *lua.LFunction // puts an error that nobody caught into Redis's form
	null     *lua.LUserData // what JSON calls null
	compiled map[string]*lua.FunctionProto
	call     *Call // that is being run
	resp3    bool  // redis.setresp(3)
}

// Call is a script to run and what with.
type Call struct {
	Text, Sum  string
	Keys, Args []string
	// RESP3 says that the client's replies are in RESP3.
	RESP3 bool
	// Random is where math.random continues. Redis has one for each server.
	Random *Random
	// Do executes a command that the script calls and returns the reply,
	// in the version of RESP that it is asked for.
	Do func(words []string, resp3 bool) []byte
}

// chunk is what Redis calls a script in its errors.
const chunk = "user_script"

// maxCalls is how deep calls may nest: deeper than scripts go and less deep than
// Lua's 20,000, for gopher-lua takes time that is the square of it to say that they
// were too many, and the cube of it where each calls the next protected. maxValues is
// how many values calls may have at hand, more than Lua's 8,000.
const (
	maxCalls  = 1000
	maxValues = 1 << 16
)

// mostCompiled is how many texts a machine keeps.
const mostCompiled = 1000

// Compile checks that a script can be run. The error is Redis's reply.
func (m *Machine) Compile(text string) error {
	_, err := m.compile(text)
	return err
}

func (m *Machine) compile(text string) (*lua.FunctionProto, error) {
	if proto := m.compiled[text]; proto != nil {
		return proto, nil
	}
	tree, err := parse.Parse(strings.NewReader(text), chunk)
	if err != nil {
		return nil, cannotCompile(err)
	}
	textOfNumbers(reflect.ValueOf(tree))
	proto, err := lua.Compile(tree, chunk)
	if err != nil {
		return nil, cannotCompile(err)
	}
	if len(m.compiled)%mostCompiled == 0 { // somebody writes a new one each time
		m.compiled = map[string]*lua.FunctionProto{}
	}
	m.compiled[text] = proto
	return proto, nil
}

func cannotCompile(err error) error {
	text := err.Error()
	if at, ok := errors.AsType[*parse.Error](err); ok {
		what, line, token := at.Message, at.Pos.Line, at.Token
		if what == "syntax error" {
			what = "unexpected symbol"
		}
		if line == parse.EOF {
			line, token = 1, "<eof>"
		}
		text = fmt.Sprintf("%s:%d: %s near '%s'", chunk, line, what, token)
	}
	return fmt.Errorf("ERR Error compiling script (new function): %s", text)
}

// Run runs a script and returns its reply, which is an error if the script could
// not be compiled or failed.
func (m *Machine) Run(c Call) []byte {
	out := reply{resp3: c.RESP3}
	proto, err := m.compile(c.Text)
	if err != nil {
		out.error(err.Error())
		return out.bytes
	}
	if m.lua == nil {
		m.start()
	}
	m.call, m.resp3 = &c, false
	defer func() { m.call = nil }()
	m.globals.RawSetString("KEYS", m.list(c.Keys))
	m.globals.RawSetString("ARGV", m.list(c.Args))
	m.lua.Push(m.lua.NewFunctionFromProto(proto))
	if err := m.protected(); err != nil {
		// Whatever the error left behind, calls half done or coroutines, goes
		// with the state.
		m.lua = nil
		out.error(m.failure(err))
		return out.bytes
	}
	out.bools = m.resp3
	out.add(m.lua.Get(-1), 0)
	m.lua.SetTop(0)
	return out.bytes
}

// protected calls the function on the stack and leaves what it returns there.
func (m *Machine) protected() (err error) {
	defer func() {
		if caught := recover(); caught != nil { // no room was left to say where it happened
			err = fmt.Errorf("%s: stack overflow", chunk)
		}
	}()
	return m.lua.PCall(0, 1, m.catcher)
}

func (m *Machine) list(words []string) *lua.LTable {
	t := m.lua.CreateTable(len(words), 0)
	for _, word := range words {
		t.Append(lua.LString(word))
	}
	return t
}

// caught is the error handler of a script: it makes a table of the error, as
// redis.call does, and adds where it happened.
func (m *Machine) caught(l *lua.LState) int {
	e, ok := l.Get(1).(*lua.LTable)
	if !ok {
		e = m.failed("ERR " + toString(l.Get(1)))
	}
	for level := 1; level <= 2; level++ { // who raised it, or who called that
		if source, line := position(l, level); line > 0 {
			e.RawSetString("source", lua.LString("@"+source))
			e.RawSetString("line", lua.LNumber(line))
			break
		}
	}
	l.Push(e)
	return 1
}

// failure puts the error with which a script ended into the words of Redis.
func (m *Machine) failure(err error) string {
	e, ok := errors.AsType[*lua.ApiError](err)
	if !ok {
		return "ERR " + err.Error()
	}
	table, ok := e.Object.(*lua.LTable)
	if !ok { // the handler itself failed
		return "ERR " + toString(e.Object)
	}
	text := "ERR unknown error" // Redis 7.0.15 crashes of an error without a text
	if said, ok := table.RawGetString("err").(lua.LString); ok {
		text = string(said)
	}
	source, line := table.RawGetString("source"), table.RawGetString("line")
	if source == lua.LNil || line == lua.LNil {
		return text
	}
	return fmt.Sprintf("%s script: %s, on %s:%s.", text, m.call.Sum, toString(source), toString(line))
}

// failed returns the table that stands for an error.
func (m *Machine) failed(text string) *lua.LTable { return m.record("err", lua.LString(text)) }

// record returns a table of one field.
func (m *Machine) record(field string, value lua.LValue) *lua.LTable {
	t := m.lua.CreateTable(0, 1)
	t.RawSetString(field, value)
	return t
}

// raise ends the script with an error of a library of Redis's, which says
// nothing about where it happened; that is added by who catches it.
func (m *Machine) raise(l *lua.LState, text string) int {
	l.Error(m.failed("ERR "+text), 1)
	return 0
}

// integer returns a Lua number as Redis takes it: what is behind the point is
// lost, and what is too large is the least one there is.
func integer(n lua.LNumber) int64 {
	if f := float64(n); f >= math.MinInt64 && f < -math.MinInt64 {
		return int64(f)
	}
	return math.MinInt64
}
