// Package lua runs the scripts of EVAL and similar commands with the behavior of Redis 7.0. Type
// conversions, error texts and read-only libraries are the same.
//
// A script's text, keys and arguments come in; the reply goes out as bytes of RESP. The caller
// provides a function that executes the commands of a script, so the package depends on neither
// servers nor connections. The package is not a general Lua interpreter: scripts have no files,
// modules, environments or debug library.
//
// Source of the behavior: https://redis.io/docs/latest/develop/programmability/lua-api/
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

// Sum returns the SHA-1 by which Redis names a script, in lower-case hexadecimal.
func Sum(text string) string {
	sum := sha1.Sum([]byte(text))
	return hex.EncodeToString(sum[:])
}

// Machine runs scripts, one at a time. A Machine caches a Lua state with its libraries and the
// compiled texts, because creating them is expensive. A script leaves nothing for the next script.
//
// A Machine belongs to one world at a time and is not safe for concurrent use. A Machine has no
// lock because only one goroutine of a world executes commands, and because worlds that exist at
// the same time share no Machine. The zero value is ready for use.
type Machine struct {
	lua     *lua.LState // nil until the first script, and after a script that failed
	guard   guard
	globals *lua.LTable
	// metaGlobals and metaStrings are read-only views of the metatables of the globals and of
	// strings.
	metaGlobals, metaStrings *lua.LTable

	catcher  *lua.LFunction // converts an uncaught error to Redis's form
	null     *lua.LUserData // stands for JSON's null
	compiled map[string]*lua.FunctionProto
	call     *Call // the call in progress; nil if none
	resp3    bool  // the script has called redis.setresp(3)
}

// Call holds a script and its parameters.
type Call struct {
	Text, Sum  string
	Keys, Args []string
	// RESP3 states that the client uses RESP3.
	RESP3 bool
	// Random is the generator of math.random. Redis has one per server.
	Random *Random
	// Do executes a command that the script calls, and returns the reply in RESP3 if resp3 is set,
	// otherwise in RESP2.
	Do func(words []string, resp3 bool) []byte
}

// chunk is the name of a script in Redis's errors.
const chunk = "user_script"

// maxCalls is the maximum depth of nested calls. The limit is deeper than scripts go, but below
// Lua's 20,000: gopher-lua needs time quadratic in the limit to report an overflow, and cubic if
// each call is a pcall. maxValues is the maximum number of values on the stack, more than Lua's
// 8,000.
const (
	maxCalls  = 1000
	maxValues = 1 << 16
)

// mostCompiled is the maximum number of compiled texts that a Machine caches.
const mostCompiled = 1000

// Compile reports whether a script compiles. The error text is Redis's reply.
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
	if len(m.compiled)%mostCompiled == 0 { // the cache is full: the client sends a new text each time
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

// Run runs a script and returns its reply in RESP. The reply is an error if the script did not
// compile or failed.
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
		// Discard the state with everything that the error left, such as unfinished calls and
		// coroutines.
		m.lua = nil
		out.error(m.failure(err))
		return out.bytes
	}
	out.bools = m.resp3
	out.add(m.lua.Get(-1), 0)
	m.lua.SetTop(0)
	return out.bytes
}

// protected calls the function on the stack and leaves its result there.
func (m *Machine) protected() (err error) {
	defer func() {
		if caught := recover(); caught != nil { // a stack too full to report the position
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

// caught is the error handler of a script. caught converts the error to a table, as redis.call
// does, and adds the position.
func (m *Machine) caught(l *lua.LState) int {
	e, ok := l.Get(1).(*lua.LTable)
	if !ok {
		e = m.failed("ERR " + toString(l.Get(1)))
	}
	for level := 1; level <= 2; level++ { // the function that raised the error, or its caller
		if source, line := position(l, level); line > 0 {
			e.RawSetString("source", lua.LString("@"+source))
			e.RawSetString("line", lua.LNumber(line))
			break
		}
	}
	l.Push(e)
	return 1
}

// failure returns the error of a failed script in Redis's form.
func (m *Machine) failure(err error) string {
	e, ok := errors.AsType[*lua.ApiError](err)
	if !ok {
		return "ERR " + err.Error()
	}
	table, ok := e.Object.(*lua.LTable)
	if !ok { // the error handler itself failed
		return "ERR " + toString(e.Object)
	}
	text := "ERR unknown error" // Redis 7.0.15 crashes on an error without a text
	if said, ok := table.RawGetString("err").(lua.LString); ok {
		text = string(said)
	}
	source, line := table.RawGetString("source"), table.RawGetString("line")
	if source == lua.LNil || line == lua.LNil {
		return text
	}
	return fmt.Sprintf("%s script: %s, on %s:%s.", text, m.call.Sum, toString(source), toString(line))
}

// failed returns a table that represents an error.
func (m *Machine) failed(text string) *lua.LTable { return m.record("err", lua.LString(text)) }

// record returns a table with one field.
func (m *Machine) record(field string, value lua.LValue) *lua.LTable {
	t := m.lua.CreateTable(0, 1)
	t.RawSetString(field, value)
	return t
}

// raise raises an error of a Redis library. The error has no position; its handler adds it.
func (m *Machine) raise(l *lua.LState, text string) int {
	l.Error(m.failed("ERR "+text), 1)
	return 0
}

// integer converts a Lua number to an integer as Redis does: it truncates the fraction. For a
// number out of range or NaN it returns the smallest int64.
func integer(n lua.LNumber) int64 {
	if f := float64(n); f >= math.MinInt64 && f < -math.MinInt64 {
		return int64(f)
	}
	return math.MinInt64
}
