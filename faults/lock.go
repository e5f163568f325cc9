package faults

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"
)

// A Lock says where a lock lives on its servers, and whose it is there.
type Lock struct {
	// Keys are the keys whose contents say whose it is, at least one. The first
	// is the lock's own: the one that an eviction removes.
	Keys []string
	// Query is what servers that are not Redis are asked about the lock, in their own language; empty asks nothing. There is one key then, the
	// lock's name.
	Query string
	// Owner reads whose the lock is; nil reads it by the words, as [Attributor] does.
	Owner func(Change) (client string, known bool)
}

// SingleKeyLock returns the lock that lives under one key, where words say whose it is.
func SingleKeyLock(key string) Lock { return Lock{Keys: []string{key}} }

// A Change is a moment at which what a server holds under a lock's keys became
// something else.
type Change struct {
	// Before and After are the lock's keys, in the order of [Lock.Keys].
	Before, After []Key
	// Client is whose command it was; empty where it was the server's own doing.
	Client string
	// Owner is whose the lock was before, as far as that is known.
	Owner string
	// Wrote returns the client that was the first to send a word; empty if none
	// has.
	Wrote func(word string) string
}

// A Key is one of a lock's keys as it is found on a server. The zero value is a
// key that doesn't exist.
type Key struct {
	// Type is what Redis calls the type: string, hash, list, set or zset; other
	// for any other; empty for a key that doesn't exist.
	Type string
	// Words are what it holds: a string's value, a hash's fields and their
	// values in turn, a list's elements, a set's members, a sorted set's members
	// and their scores in turn. Hashes and sets are in the order of the alphabet.
	// Others have none.
	Words []string
	// Expires is when the key will be gone, on the harness's clock; 0 means
	// never.
	Expires time.Duration
}

// Exists reports whether there is such a key.
func (k Key) Exists() bool { return k.Type != "" }

// same reports whether both hold the same, whatever their expiry.
func (k Key) same(other Key) bool {
	if k.Type != other.Type || len(k.Words) != len(other.Words) {
		return false
	}
	for i, word := range k.Words {
		if other.Words[i] != word {
			return false
		}
	}
	return true
}

// A Scored is a member of a sorted set.
type Scored struct {
	Member string
	Score  float64
}

// SortedSet returns the words of a sorted set.
func SortedSet(members []Scored) []string {
	slices.SortFunc(members, func(a, b Scored) int {
		return cmp.Or(cmp.Compare(a.Score, b.Score), cmp.Compare(a.Member, b.Member))
	})
	var words []string
	for _, m := range members {
		words = append(words, m.Member, strconv.FormatFloat(m.Score, 'f', -1, 64))
	}
	return words
}

// Hash returns the words of a hash.
func Hash(fields map[string]string) []string {
	var words []string
	for _, field := range slices.Sorted(maps.Keys(fields)) {
		words = append(words, field, fields[field])
	}
	return words
}

// SameKeys reports whether all keys hold the same, whatever their expiry.
func SameKeys(a, b []Key) bool { return slices.EqualFunc(a, b, Key.same) }

// Expiry returns when the first of the keys will be gone that will be, on the
// harness's clock; 0 means never.
func Expiry(keys []Key) time.Duration {
	var first time.Duration
	for _, k := range keys {
		if k.Expires != 0 && (first == 0 || k.Expires < first) {
			first = k.Expires
		}
	}
	return first
}

// Without returns the keys without those that are gone by a moment, and whether
// there are such. It leaves keys as it is.
func Without(keys []Key, now time.Duration) ([]Key, bool) {
	left, found := slices.Clone(keys), false
	for i, k := range keys {
		if k.Expires != 0 && k.Expires <= now {
			left[i], found = Key{}, true
		}
	}
	return left, found
}

// bears returns the words that may say whose the key is: neither a sorted set's
// scores nor what is short in a hash's values, the counters.
func (k Key) bears() []string {
	switch k.Type {
	case "hash":
		var words []string
		for i, word := range k.Words {
			if i%2 == 0 || len(word) >= minValue {
				words = append(words, word)
			}
		}
		return words
	case "zset":
		var members []string
		for i := 0; i < len(k.Words); i += 2 {
			members = append(members, k.Words[i])
		}
		return members
	}
	return slices.Clone(k.Words)
}

// shown is how many entries of a key are printed.
const shown = 16

// print shows a key on one line; each word passes through name. What has no order
// on the server, or one that the words make, stands in the order of the names: by
// words that were drawn at random it would be another each time.
func (k Key) print(name func(string) string) string {
	var entries []string
	switch k.Type {
	case "":
		return ""
	case "string":
		return name(k.Words[0])
	case "hash":
		for i := 0; i+1 < len(k.Words); i += 2 {
			count := k.Words[i+1]
			if len(count) >= minValue {
				count = name(count)
			}
			entries = append(entries, name(k.Words[i])+"×"+count)
		}
		slices.Sort(entries)
		return strings.Join(upTo(shown, entries), ",")
	case "zset":
		for i := 0; i+1 < len(k.Words); i += 2 {
			entries = append(entries, name(k.Words[i])+":"+k.Words[i+1])
		}
		for from, i := 0, 0; i < len(entries); i++ { // those of one score
			if i+1 == len(entries) || k.Words[2*i+3] != k.Words[2*i+1] {
				slices.Sort(entries[from : i+1])
				from = i + 1
			}
		}
	default:
		for _, word := range k.Words {
			entries = append(entries, name(word))
		}
		if k.Type == "set" {
			slices.Sort(entries)
		}
	}
	switch k.Type {
	case "list":
		return "[" + strings.Join(upTo(shown, entries), " ") + "]"
	case "set", "zset":
		return "{" + strings.Join(upTo(shown, entries), " ") + "}"
	}
	return "(" + k.Type + ")"
}

// upTo cuts a list short and says so.
func upTo(n int, list []string) []string {
	if len(list) <= n {
		return list
	}
	return append(list[:n:n], fmt.Sprintf("… %d more", len(list)-n))
}
