package faults

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/lockfault/lockfault/checker"
)

// A Key is a lock's key as it is found on a server. The zero value is a key
// that doesn't exist.
type Key struct {
	// Value is the owner value: a string key's value, or the field of a hash
	// that counts an owner's holds.
	Value string
	// Count is a hash's count; 0 for a string.
	Count string
	// Expires is when the key will be gone, on the harness's clock; 0 means
	// never.
	Expires time.Duration
}

// A Ledger knows to whom a lock's key belongs. Lock clients write owner values
// that mean nothing to anybody else, often random ones; the ledger learns from
// the commands who wrote which, gives each a short name (A1 is the first that
// A wrote), and tells the changes of the key on each server as events.
// The zero value is not valid; use [NewLedger]. Not safe for concurrent use.
type Ledger struct {
	key     string
	names   map[string]string // by raw value
	writer  map[string]string // who wrote the raw value first
	claimed map[string]string // who took the key with the raw value last
	written map[string]int    // how many values each client wrote
	servers map[string]entry
}

type entry struct {
	key   Key
	owner string
}

// NewLedger returns the ledger of the lock with that key.
func NewLedger(key string) *Ledger {
	return &Ledger{
		key: key, names: map[string]string{}, writer: map[string]string{}, claimed: map[string]string{},
		written: map[string]int{}, servers: map[string]entry{},
	}
}

// Command returns a client's request as one would type it, with owner values
// by their short names. It must be called for each request in the order in
// which the nodes execute them: that is how the ledger learns the values.
func (l *Ledger) Command(client string, words []string) string {
	if len(words) == 0 {
		return ""
	}
	name := strings.ToUpper(words[0])
	values, secrets := l.values(name, words), secrets(name, words)
	var out strings.Builder
	out.Grow(64)
	for i, word := range words {
		if i > 0 {
			out.WriteByte(' ')
		}
		switch {
		case i == 0:
			out.WriteString(name)
		case slices.Contains(secrets, i):
			out.WriteString("(secret)")
		case slices.Contains(values, i):
			out.WriteString(l.learn(client, word))
		case i == 1 && isScript(name):
			out.WriteString(scriptName(word))
		default:
			out.WriteString(l.Name(word))
		}
	}
	return out.String()
}

// Name returns the short name of an owner value, or the word itself, quoted if
// it is not plain, where it is none.
func (l *Ledger) Name(word string) string {
	if name, ok := l.names[word]; ok && len(word) >= minValue {
		return name
	}
	if word == "" || strings.ContainsFunc(word, func(r rune) bool { return r <= ' ' || r > '~' }) {
		return strconv.Quote(word)
	}
	return word
}

// minValue is the shortest word that is taken for an owner value wherever it
// stands; a shorter one, a thread id perhaps, could be anything.
const minValue = 8

// values returns which words of a request are owner values. Its name is in upper
// case.
func (l *Ledger) values(name string, words []string) []int {
	switch {
	case name == "SET" || name == "SETNX" || name == "GETSET":
		if len(words) > 2 && words[1] == l.key {
			return []int{2}
		}
	case isScript(name) && len(words) > 3:
		keys, err := strconv.Atoi(words[2])
		if err != nil || keys < 0 || 3+keys > len(words) {
			return nil
		}
		var at []int
		for i := 3 + keys; i < len(words); i++ {
			_, known := l.names[words[i]]
			_, err := strconv.ParseFloat(words[i], 64)
			if known || err != nil && len(words[i]) >= minValue && !strings.Contains(words[i], l.key) {
				at = append(at, i)
			}
		}
		return at
	}
	return nil
}

// secrets returns which words of a request are a login: nothing for a history,
// which is there to be shown. Its name is in upper case.
func secrets(name string, words []string) []int {
	from, to := 1, len(words) // AUTH password, AUTH username password
	switch name {
	case "AUTH":
	case "HELLO": // HELLO 2 AUTH username password …
		from = 1 + slices.IndexFunc(words, func(w string) bool { return strings.EqualFold(w, "AUTH") })
		if from == 0 {
			return nil
		}
		to = min(from+2, len(words))
	default:
		return nil
	}
	var at []int
	for i := from; i < to; i++ {
		at = append(at, i)
	}
	return at
}

func (l *Ledger) learn(client, value string) string {
	if name, ok := l.names[value]; ok {
		return name
	}
	l.written[client]++
	name := fmt.Sprintf("%s%d", client, l.written[client])
	l.names[value], l.writer[value] = name, client
	return name
}

// Saw tells the ledger how the key stands on a server after a cause: for
// ByCommand the client's words. It returns the change as an event without its
// time, and false if there was none. An expiry that moved by less than slack
// is no change.
func (l *Ledger) Saw(node, server string, key Key, cause checker.Cause, client string, words []string, slack time.Duration) (checker.Event, bool) {
	was := l.servers[server]
	if was.key.Value == key.Value && was.key.Count == key.Count && (was.key.Expires == 0) == (key.Expires == 0) &&
		(was.key.Expires-key.Expires).Abs() <= slack && cause != checker.ByFailover {
		return checker.Event{}, false
	}
	now := entry{key: key, owner: l.owner(was, key, cause, client, words)}
	l.servers[server] = now
	event := checker.Event{
		Kind: checker.State, Node: node, Server: server, Owner: now.owner, Value: l.print(key),
		Expires: key.Expires, Cause: cause,
	}
	if cause == checker.ByCommand {
		event.Client = client
	}
	return event, true
}

// owner decides whose a key is. A value belongs to the client that wrote it
// first, also when another puts it back; but one that takes a free key with
// anything but a plain SET claims it, even with a value that others use too.
func (l *Ledger) owner(was entry, key Key, cause checker.Cause, client string, words []string) string {
	switch {
	case key.Value == "":
		return ""
	case cause != checker.ByCommand:
		return l.claimed[key.Value]
	case was.key.Value == key.Value:
		return was.owner
	}
	owner, known := l.writer[key.Value]
	if !known {
		l.learn(client, key.Value)
		owner = client
	}
	if was.key.Value == "" && !isPlainSet(words) {
		owner = client
	}
	l.claimed[key.Value] = owner
	return owner
}

func (l *Ledger) print(key Key) string {
	name, ok := l.names[key.Value]
	if !ok {
		name = key.Value
	}
	if key.Count != "" {
		name += "×" + key.Count
	}
	return name
}

func isPlainSet(words []string) bool {
	return len(words) >= 3 && strings.EqualFold(words[0], "SET") &&
		!slices.ContainsFunc(words[3:], func(w string) bool { return strings.EqualFold(w, "NX") })
}

func isScript(name string) bool { return sameCommand("EVAL", name) }

// scriptName shortens a script or its digest to something that fits a line.
func scriptName(script string) string {
	if len(script) > 12 && strings.IndexFunc(script, unicode.IsSpace) < 0 {
		return script[:8] + "…"
	}
	script = strings.Join(strings.Fields(script), " ")
	if len(script) > 12 && !strings.Contains(script, " ") {
		return script[:8] + "…"
	}
	if runes := []rune(script); len(runes) > 40 {
		script = string(runes[:39]) + "…"
	}
	return strconv.Quote(script)
}
