package lua_test

import (
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/lockfault/lockfault/faults/sim/lua"
	"github.com/lockfault/lockfault/internal/resp"
)

// run runs a script and returns its reply on one line. answers maps the words of a command to its
// reply.
func run(m *lua.Machine, random *lua.Random, text string, answers map[string]string, args ...string) string {
	return resp.Print(m.Run(lua.Call{
		Text: text, Sum: lua.Sum(text), Args: args, Random: random,
		Do: func(words []string, resp3 bool) []byte {
			answer, ok := answers[strings.Join(words, " ")]
			if !ok {
				answer = "+OK\r\n"
			}
			return []byte(answer)
		},
	}), nil)
}

// TestRepliesOfCommands checks replies that package conformance cannot get from a server; its
// tables have the rest.
func TestRepliesOfCommands(t *testing.T) {
	for _, c := range []struct{ name, answer, script, want string }{
		{"RESP3 null", "_\r\n", "return redis.call('x') == nil", "(integer) 1"},
		{"RESP3 boolean", "#t\r\n", "return redis.call('x') == true", "(integer) 1"},
		{"RESP3 double", ",1.5\r\n", "return tostring(redis.call('x').double)", `"1.5"`},
		{"RESP3 big number", "(123\r\n", "return redis.call('x').big_number", `"123"`},
		{"RESP3 verbatim", "=7\r\ntxt:abc\r\n", "local v = redis.call('x').verbatim_string return {v.format, v.string}", `["txt" "abc"]`},
		{"RESP3 map", "%1\r\n+k\r\n:1\r\n", "for k, v in pairs(redis.call('x').map) do return {k.ok, v} end", `["k" (integer) 1]`},
		{"RESP3 set", "~1\r\n$1\r\na\r\n", "return redis.call('x').set.a", "(integer) 1"},
		{"nested", "*2\r\n*1\r\n:1\r\n-ERR no\r\n", "local r = redis.call('x') return {r[1][1], r[2].err}", `[(integer) 1 "ERR no"]`},
		{"null array", "*-1\r\n", "return redis.call('x') == false", "(integer) 1"},
		{"binary", "$3\r\n\r\n\x00\r\n", "return redis.call('x')", `"\r\n\x00"`},
		{"broken", "nonsense", "return redis.call('x')", "(nil)"},
	} {
		t.Run(c.name, func(t *testing.T) {
			var m lua.Machine
			if got := run(&m, new(lua.Random), c.script, map[string]string{"x": c.answer}); got != c.want {
				t.Errorf("%s: got %s, want %s", c.script, got, c.want)
			}
		})
	}
}

func TestNestsAsDeepAsTheProtocol(t *testing.T) {
	var m lua.Machine
	got := run(&m, new(lua.Random), "local t = {} t[1] = t return t", nil)
	if !strings.Contains(got, "ERR reached lua stack limit") {
		t.Errorf("a table in itself: %s", got)
	}
}

// reach is a script that visits everything that a script can reach and reports what it could
// change.
const reach = `
local changed, seen = {}, {[KEYS] = true, [ARGV] = true}
local function go(path, t)
	if type(t) ~= 'table' or seen[t] then return end
	seen[t] = true
	for how, f in pairs({
		new = function() t.x = 1 end,
		index = function() t[1] = 1 end,
		rawset = function() rawset(t, 'x', 1) end,
		insert = function() table.insert(t, 1) end,
		meta = function() setmetatable(t, {}) end,
	}) do
		if pcall(f) then table.insert(changed, path .. ' ' .. how) end
	end
	local names = {}
	for name, value in pairs(t) do
		if pcall(function() t[name] = nil end) then table.insert(changed, path .. '.' .. tostring(name)) end
		names[name] = value
	end
	for name, value in pairs(names) do go(path .. '.' .. tostring(name), value) end
	local meta = getmetatable(t)
	if #path < 100 then go(path .. '()', meta) end
end
go('_G', _G)
go('""', getmetatable(''))
table.sort(changed)
return changed
`

func TestNothingCanBeChanged(t *testing.T) {
	var m lua.Machine
	if got := run(&m, new(lua.Random), reach, nil); got != "[]" {
		t.Errorf("a script can change %s", got)
	}
}

// all is a script that lists everything that it can reach.
const all = `
local list, seen = {}, {}
local function go(path, t)
	if type(t) ~= 'table' or seen[t] then return end
	seen[t] = true
	for name, value in pairs(t) do
		list[#list+1] = path .. '.' .. tostring(name) .. ' ' .. type(value)
		go(path .. '.' .. tostring(name), value)
	end
end
go('_G', _G)
go('""', getmetatable(''))
list[#list+1] = #KEYS .. ' ' .. #ARGV .. ' ' .. tostring(coroutine.running())
list[#list+1] = tostring(redis.call('get') == false)
return list
`

// TestNothingIsLeft checks that every script finds the same state in the same order, whatever the
// previous script did.
func TestNothingIsLeft(t *testing.T) {
	answers := map[string]string{"get": "$-1\r\n"}
	var fresh lua.Machine
	want := run(&fresh, new(lua.Random), all, answers)
	if !strings.Contains(want, "_G.redis.call function") {
		t.Fatalf("a script finds %s", want)
	}
	var m lua.Machine
	var random lua.Random
	for _, text := range []string{
		reach,
		"KEYS.x = 1 ARGV[1] = 2 return 1",
		"redis.setresp(3) return 1",
		"redis.setresp(3) error('mine')",
		"coroutine.resume(coroutine.create(function() coroutine.yield() end))",
		"coroutine.wrap(function() error('mine') end)()",
		"coroutine.wrap(function() coroutine.yield() end)() error('mine')",
		"local function f() return 1 + f() end return f()",
		"local function f() return 1 + f() end return pcall(f)",
		"local f f = function() return pcall(f) end return f()",
		"return string.rep('x', 1000):gsub('x', function() return redis.call('get') and 'y' end)",
		"table.sort({3, 2, 1}, function() error('mine') end)",
		"return unpack({}, 1, 1e7)",
		"return setmetatable({}, {__index = function() error('mine') end}).x",
		"error(setmetatable({}, {__tostring = function() error('mine') end}))",
		"return (",
		"math.randomseed(1)",
	} {
		run(&m, &random, text, answers)
		if got := run(&m, &random, all, answers); got != want {
			t.Errorf("after %q a script finds\n%s\nand not\n%s", text, got, want)
		}
	}
}

// TestMachinesAreApart checks that machines share nothing, by running many at once. Only the race
// detector can find more than a crash here.
func TestMachinesAreApart(t *testing.T) {
	var ready sync.WaitGroup
	for i := range 4 {
		ready.Go(func() {
			var m lua.Machine
			var random lua.Random
			for n := range 50 {
				text := fmt.Sprintf("math.randomseed(ARGV[1]) return {math.random(1000), %d}", n%5)
				want := run(new(lua.Machine), new(lua.Random), text, nil, fmt.Sprint(i))
				if got := run(&m, &random, text, nil, fmt.Sprint(i)); got != want {
					t.Errorf("%s: got %s, want %s", text, got, want)
				}
			}
		})
	}
	ready.Wait()
}

// release is the script with which nearly every lock releases.
const release = `if redis.call("get", KEYS[1]) == ARGV[1] then return redis.call("del", KEYS[1]) end return 0`

func BenchmarkRun(b *testing.B) {
	call := lua.Call{
		Text: release, Sum: lua.Sum(release), Keys: []string{"lock"}, Args: []string{"a"}, Random: new(lua.Random),
		Do: func(words []string, _ bool) []byte {
			if words[0] == "get" {
				return []byte("$1\r\na\r\n")
			}
			return []byte(":1\r\n")
		},
	}
	b.Run("machine=used", func(b *testing.B) {
		b.ReportAllocs()
		var m lua.Machine
		for b.Loop() {
			m.Run(call)
		}
	})
	b.Run("machine=new", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			var m lua.Machine
			m.Run(call)
		}
	})
}
