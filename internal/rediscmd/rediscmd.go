// Package rediscmd is the table of the commands of Redis and Valkey. A row holds what the servers
// report of a command (facts.go, which internal/tools/genrediscmd generates), or what the
// documentation says of a command that is newer (newer.go), and the columns that only lockfault has
// (engine.go). All other packages derive from the table what they need to know of a command.
package rediscmd

import (
	"cmp"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

// Command is a row of the table.
type Command struct {
	// Name is in upper case; a subcommand has the name of its container before its own: CLIENT ID.
	Name string
	// Group is the group of COMMAND DOCS, such as string, pubsub, transactions or connection.
	Group string
	Flags Flags
	// Keys says which words of a request are keys, or channels if Access is empty. Keys that only the
	// code of the server finds, as in SORT with STORE, are missing.
	Keys []KeySpec
	// Redis and Valkey are the first releases that have the command, or empty.
	Redis, Valkey string
	// Options are the words that later releases added to the command.
	Options []Option
	Engine

	subcommands []*Command
}

// Option is a word that selects an option of a command, in upper case, with the first releases that
// have the option.
type Option struct{ Word, Redis, Valkey string }

// KeySpec says which words of a request are keys, as in COMMAND INFO.
type KeySpec struct {
	// Access is RO, RW, OW (overwrites) or RM (removes), or empty for words that are not keys.
	Access string
	// From is the index of the first key or, if Keyword is set, the index from which Keyword is
	// searched, backwards if From is negative. The first key follows Keyword.
	From    int
	Keyword string
	// Last is the index of the last key relative to the first or, if negative, to the end of the
	// request. Step is the distance between two keys. Only the first 1/Limit of the words are keys
	// if Limit is at least 2.
	Last, Step, Limit int
	// Counted says that the word at From is the number of keys, and that the keys follow.
	Counted bool
}

// Flags are the flags of COMMAND INFO that affect what a server replies.
type Flags uint16

// The flags.
const (
	Write       Flags = 1 << iota // changes keys
	ReadOnly                      // reads keys
	DenyOOM                       // fails if maxmemory is reached, also in a transaction or a script
	Admin                         // for operators
	PubSub                        // about channels
	NoScript                      // not allowed in scripts
	Blocking                      // may wait for another client
	Loading                       // allowed while the server loads its data
	Stale                         // allowed on a replica without a link to its primary
	NoAuth                        // allowed before a login
	NoMulti                       // not allowed in transactions
	AllowBusy                     // allowed while a script runs too long
	MovableKeys                   // the indexes of some keys depend on other words
)

// FlagNames returns the names of the flags in COMMAND INFO, in the order of their bits.
func FlagNames() []string {
	return []string{
		"write", "readonly", "denyoom", "admin", "pubsub", "noscript", "blocking", "loading", "stale", "no_auth", "no_multi",
		"allow_busy", "movablekeys",
	}
}

// Has reports whether the server flags the command with all of the given flags.
func (c *Command) Has(f Flags) bool { return c.Flags&f == f }

// LeavesKeys reports whether the command, or each of its subcommands, is known to change no key.
func (c *Command) LeavesKeys() bool {
	return c.Name != "" && !c.MayWrite() && !c.Observed
}

// MayWrite reports whether the server flags the command, or a subcommand, as a write. Scripts may
// write and are not flagged.
func (c *Command) MayWrite() bool {
	return c.Has(Write) || slices.ContainsFunc(c.subcommands, func(sub *Command) bool { return sub.Has(Write) })
}

// OfTransactions reports whether the command belongs to transactions, such as WATCH, whose reply says
// nothing of its keys.
func (c *Command) OfTransactions() bool { return c.Group == "transactions" }

// AboutChannels reports whether the command's words are names of channels instead of keys.
func (c *Command) AboutChannels() bool { return c.Group == "pubsub" }

// RunsScript reports whether the command runs a script or a function: the word after the command's
// name is the script, its digest or its name, and the script's keys and arguments follow.
func (c *Command) RunsScript() bool {
	return c.Group == "scripting" && slices.ContainsFunc(c.Keys, func(k KeySpec) bool { return k.Counted })
}

// Blocks reports whether a request of the command may be answered after later requests of other
// clients.
func (c *Command) Blocks(words []string) bool {
	return c.Timeout.Unit != 0 && (c.Timeout.After == "" || indexOf(words, c.Timeout.After) >= 0)
}

// TimeoutIn returns the word of a request that limits how long the request blocks. The result is
// false if the request does not block. words has at least one word.
func (c *Command) TimeoutIn(words []string) (word string, unit time.Duration, ok bool) {
	if !c.Blocks(words) {
		return "", 0, false
	}
	end := len(words) - 1
	at := min(c.Timeout.At, end)
	if at < 0 {
		at = end
	}
	if c.Timeout.After != "" {
		at = indexOf(words, c.Timeout.After) + 1
		if at > end {
			return "", 0, false
		}
	}
	return words[at], c.Timeout.Unit, true
}

// Replies returns the number of replies to a request of the command.
func (c *Command) Replies(words []string) int {
	if c.ReplyPerChannel {
		return max(1, len(words)-1)
	}
	return 1
}

// ValuesIn returns the indexes of the values in a request of the command: the first, the distance
// between two, and the last. The result is false if the request has no values.
func (c *Command) ValuesIn(words []string) (from, step, to int, ok bool) {
	v := c.Values
	if v.From == 0 {
		return 0, 0, 0, false
	}
	from, to = v.From, cmp.Or(v.To, len(words)-1)
	if v.After != "" {
		at := indexOf(words, v.After)
		if at < 0 {
			return 0, 0, 0, false
		}
		from += at
	}
	for from < len(words) && indexOf(v.Options, words[from-1]) >= 0 {
		from++
	}
	return from, max(1, v.Step), to, true
}

// ArgumentsIn returns the index of the first argument of a request that runs a script, after the
// script's keys. The index may be beyond the end. The result is false for other requests.
func (c *Command) ArgumentsIn(words []string) (at int, ok bool) {
	if !c.RunsScript() {
		return 0, false
	}
	_, last, ok := c.Keys[0].in(words)
	return last + 1, ok
}

// KeysIn returns the keys in a request of the command. A request that the server refuses for its
// number of words may have fewer.
func (c *Command) KeysIn(words []string) (keys []string) {
	for _, k := range c.Keys {
		first, last, ok := k.in(words)
		for i := first; ok && k.Access != "" && i <= last && i < len(words); i += k.Step {
			keys = append(keys, words[i])
		}
	}
	return keys
}

// in returns the indexes of the first and of the last key in a request, which may have fewer words.
func (k KeySpec) in(words []string) (first, last int, ok bool) {
	first = k.From
	if k.Keyword != "" {
		at := -1
		if k.From >= 0 {
			if at = indexOf(words[min(k.From, len(words)):], k.Keyword); at >= 0 {
				at += k.From
			}
		} else {
			for at = len(words) + k.From; at >= 0 && !strings.EqualFold(words[at], k.Keyword); {
				at--
			}
		}
		if at < 0 {
			return 0, 0, false
		}
		first = at + 1
	}
	switch {
	case k.Counted:
		if first >= len(words) {
			return 0, 0, false
		}
		n, err := strconv.Atoi(words[first])
		n = min(n, len(words)) // the request has fewer keys than it says
		return first + 1, first + 1 + (n-1)*k.Step, err == nil && n >= 0
	case k.Last >= 0:
		last = first + k.Last
	case k.Limit > 1:
		last = first + (len(words)-first)/k.Limit + k.Last
	default:
		last = len(words) + k.Last
	}
	return first, last, true
}

// indexOf returns the index of the first word that equals word without regard to case, or -1.
func indexOf(words []string, word string) int {
	return slices.IndexFunc(words, func(w string) bool { return strings.EqualFold(w, word) })
}

// Lookup returns the row with the given name, in upper case, or an empty row. The caller must not
// change the row.
func Lookup(name string) *Command {
	if c, ok := table()[name]; ok {
		return c
	}
	return &Command{}
}

// Of returns the row of a request: of its subcommand if the command has subcommands and the request
// names one of them, otherwise of its command. The row is empty if the table lacks the command. The
// caller must not change the row.
func Of(words []string) *Command {
	if len(words) == 0 {
		return &Command{}
	}
	c := Lookup(strings.ToUpper(words[0]))
	if len(c.subcommands) > 0 && len(words) > 1 {
		if sub, ok := table()[c.Name+" "+strings.ToUpper(words[1])]; ok {
			return sub
		}
	}
	return c
}

// All returns the rows in the order of their names. The caller must not change the rows.
func All() []*Command {
	return slices.SortedFunc(maps.Values(table()), func(a, b *Command) int { return strings.Compare(a.Name, b.Name) })
}

// ClientCommands returns the names of the commands that clients send, without subcommands and
// without commands between servers. Commands of older releases are first, of the same release those
// with shorter names. The caller owns the slice.
func ClientCommands() []string { return slices.Clone(clientCommands()) }

var clientCommands = sync.OnceValue(func() (names []string) {
	rows := slices.DeleteFunc(All(), func(c *Command) bool { return c.Internal || strings.Contains(c.Name, " ") })
	slices.SortStableFunc(rows, func(a, b *Command) int {
		return cmp.Or(compareReleases(cmp.Or(a.Redis, a.Valkey), cmp.Or(b.Redis, b.Valkey)), cmp.Compare(len(a.Name), len(b.Name)))
	})
	for _, c := range rows {
		names = append(names, c.Name)
	}
	return names
})

// compareReleases compares two releases such as 2.6.12.
func compareReleases(a, b string) int {
	numbers := func(release string) (list []int) {
		for number := range strings.SplitSeq(release, ".") {
			n, _ := strconv.Atoi(number) // the table has nothing but numbers; a test checks
			list = append(list, n)
		}
		return list
	}
	return slices.Compare(numbers(a), numbers(b))
}

// table returns the rows by name.
var table = sync.OnceValue(func() map[string]*Command {
	columns, options := engine(), newerOptions()
	rows := map[string]*Command{}
	for _, c := range slices.Concat(facts(), newer()) {
		c.Engine = columns[c.Name]
		c.Options = slices.Concat(c.Options, options[c.Name])
		rows[c.Name] = &c
	}
	for _, c := range rows {
		if container, _, ok := strings.Cut(c.Name, " "); ok {
			rows[container].subcommands = append(rows[container].subcommands, c)
		}
	}
	return rows
})
