package lua

import (
	"maps"
	"slices"

	lua "github.com/yuin/gopher-lua"
)

// guard makes tables read-only, as Redis does with the tables that all scripts share: the globals
// and the libraries. Lua has no read-only tables, so a script gets an empty proxy table. Its
// metatable redirects reads to the real table and makes writes fail. Functions that could bypass a
// metatable check the guard first.
type guard map[*lua.LTable]*lua.LTable // the real table by its proxy

const modifies = "Attempt to modify a readonly table"

// lock returns a read-only proxy of t.
func (g guard) lock(l *lua.LState, t *lua.LTable) *lua.LTable {
	meta := l.CreateTable(0, 2)
	meta.RawSetString("__index", t)
	meta.RawSetString("__newindex", l.NewFunction(func(l *lua.LState) int {
		l.RaiseError(modifies)
		return 0
	}))
	locked := l.CreateTable(0, 0)
	locked.Metatable = meta
	g[locked] = t
	return locked
}

// behind returns the real table of a proxy, or t itself if t is not a proxy.
func (g guard) behind(t *lua.LTable) *lua.LTable {
	if hidden, ok := g[t]; ok {
		return hidden
	}
	return t
}

// changes returns f with a check: it raises an error if the first argument is read-only.
func (m *Machine) changes(f lua.LGFunction) lua.LGFunction {
	return func(l *lua.LState) int {
		if t, ok := l.Get(1).(*lua.LTable); ok && m.guard[t] != nil {
			return m.raise(l, modifies)
		}
		return f(l)
	}
}

// start creates a Lua state like that of Redis, without the libraries that scripts may not use:
// files, modules, environments, debug.
func (m *Machine) start() {
	l := lua.NewState(lua.Options{
		SkipOpenLibs: true, RegistrySize: 256, RegistryGrowStep: 4096, RegistryMaxSize: maxValues,
		CallStackSize: maxCalls, MinimizeStackMemory: true,
	})
	m.lua, m.guard, m.null = l, guard{}, l.NewUserData()
	raw := l.G.Global
	for _, open := range [...]lua.LGFunction{lua.OpenBase, lua.OpenTable, lua.OpenString, lua.OpenMath, lua.OpenCoroutine} {
		open(l)
	}
	l.SetTop(0)
	m.globals = l.CreateTable(0, 40)
	shared := m.guard.lock(l, m.globals)
	// shared holds the globals of functions created from now on. shared also holds the function
	// textOfNumber, whose name no script can contain.
	l.G.Global, l.Env = shared, shared
	shared.RawSetString(textOfNumber, l.NewFunction(asText))

	for _, name := range [...]string{
		"_VERSION", "assert", "ipairs", "load", "loadstring", "rawequal", "type",
	} {
		m.globals.RawSetString(name, raw.RawGetString(name))
	}
	m.add(m.globals, m.base(raw))
	for _, name := range [...]string{"coroutine", "math", "string", "table"} {
		library := raw.RawGetString(name).(*lua.LTable)
		switch name {
		case "math":
			m.add(library, functions{"random": convert(m.random, []int{1, 2}, nil), "randomseed": m.randomSeed})
		case "string":
			m.add(library, functions{"format": format, "lower": inBytes('A', 'Z'), "upper": inBytes('a', 'z')})
			m.converts(library, map[string][]int{"byte": {2, 3}, "find": {3}, "gsub": {4}, "match": {3}, "rep": {2}, "sub": {2, 3}}, 1)
			library.RawSetString("__index", lua.LNil) // removes gopher-lua's lookup of string methods; this package's own is below
		case "table":
			m.converts(library, map[string][]int{"concat": {3, 4}}, 2)
			m.converts(library, map[string][]int{"remove": {2}})
			m.add(library, functions{"insert": m.changes(function(library, "insert"))})
		}
		m.globals.RawSetString(name, m.guard.lock(l, inOrder(l, library)))
	}
	m.globals.RawSetString("redis", m.guard.lock(l, m.redis()))
	m.globals.RawSetString("cjson", m.guard.lock(l, m.json()))
	m.globals.RawSetString("_G", shared)
	missing := m.record("__index", l.NewFunction(func(l *lua.LState) int {
		l.RaiseError("Script attempted to access nonexistent global variable '%s'", toString(l.Get(2)))
		return 0
	}))
	strings := m.record("__index", m.globals.RawGetString("string"))
	m.globals.Metatable = missing
	l.SetMetatable(lua.LString(""), strings)
	m.metaGlobals, m.metaStrings = m.guard.lock(l, missing), m.guard.lock(l, strings)
	m.catcher = l.NewFunction(m.caught)
}

// functions maps names to the functions of a table.
type functions map[string]lua.LGFunction

// add puts functions into a table, in the order of their names.
func (m *Machine) add(t *lua.LTable, all functions) {
	for _, name := range slices.Sorted(maps.Keys(all)) {
		t.RawSetString(name, m.lua.NewFunction(all[name]))
	}
}

// inOrder returns a copy of a library in the order of its names. gopher-lua fills its libraries in
// an undefined order, which a script that iterates over a library could observe.
func inOrder(l *lua.LState, library *lua.LTable) *lua.LTable {
	var names []string
	library.ForEach(func(name, _ lua.LValue) { names = append(names, name.String()) })
	slices.Sort(names)
	ordered := l.CreateTable(0, len(names))
	for _, name := range names {
		ordered.RawSetString(name, library.RawGetString(name))
	}
	return ordered
}

func function(t *lua.LTable, name string) lua.LGFunction {
	return t.RawGetString(name).(*lua.LFunction).GFunction
}
