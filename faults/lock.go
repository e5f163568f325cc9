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

// Lock describes where a lock's data is on its servers and how its owner is read.
type Lock struct {
	// Keys are the keys whose contents determine the owner, at least one. The first is the lock's
	// own key, which an eviction removes.
	Keys []string
	// Query is the query that reads the lock from a server that is not Redis, in that server's
	// language. Empty sends no query. With a Query there is one key, the lock's name.
	Query string
	// Owner reads the lock's owner from a change. nil reads the owner from the words, as
	// [Attributor] does.
	Owner func(Change) (client string, known bool)
}

// SingleKeyLock returns a lock with one key, whose owner is read from the words in the key.
func SingleKeyLock(key string) Lock { return Lock{Keys: []string{key}} }

// OwnKey returns the first key, which exists while a client has the lock; empty if no key is known.
func (l Lock) OwnKey() string {
	if len(l.Keys) == 0 {
		return ""
	}
	return l.Keys[0]
}

// Change is a change of the contents of a lock's keys on a server.
type Change struct {
	// Before and After are the contents of the lock's keys, in the order of [Lock.Keys].
	Before, After []Key
	// Client is the client whose command made the change; empty if the server itself made it.
	Client string
	// Owner is the lock's owner before the change; empty if the owner was unknown or the lock was
	// free.
	Owner string
	// Wrote returns the client that was the first to send a word; empty if no client has sent it.
	Wrote func(word string) string
}

// Key is the content of one of a lock's keys on a server. The zero value is a key that does not
// exist.
type Key struct {
	// Type is the Redis type: string, hash, list, set or zset; "other" for any other type; empty
	// for a key that does not exist.
	Type string
	// Words are the contents of the key. They are a string's value, a hash's fields each followed
	// by its value, a list's elements, a set's members, or a sorted set's members each followed by
	// its score. Hashes and sets are sorted by bytes. Other types have no words.
	Words []string
	// Expires is when the key expires, on the harness's clock; 0 means never.
	Expires time.Duration
}

// Exists reports whether the key exists.
func (k Key) Exists() bool { return k.Type != "" }

// same reports whether both keys have the same contents, regardless of their expiry.
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

// Scored is a member of a sorted set.
type Scored struct {
	Member string
	Score  float64
}

// SortedSet returns the words of a sorted set, ordered by score and then by member. SortedSet sorts
// members in place.
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

// Hash returns the words of a hash, ordered by field.
func Hash(fields map[string]string) []string {
	var words []string
	for _, field := range slices.Sorted(maps.Keys(fields)) {
		words = append(words, field, fields[field])
	}
	return words
}

// SameKeys reports whether all keys have the same contents, regardless of their expiry.
func SameKeys(a, b []Key) bool { return slices.EqualFunc(a, b, Key.same) }

// Expiry returns the earliest expiry of the keys, on the harness's clock; 0 means that no key
// expires.
func Expiry(keys []Key) time.Duration {
	var first time.Duration
	for _, k := range keys {
		if k.Expires != 0 && (first == 0 || k.Expires < first) {
			first = k.Expires
		}
	}
	return first
}

// Without returns a copy of keys in which the keys that have expired at now are zero, and reports
// whether any has expired. Without does not modify keys.
func Without(keys []Key, now time.Duration) ([]Key, bool) {
	left, found := slices.Clone(keys), false
	for i, k := range keys {
		if k.Expires != 0 && k.Expires <= now {
			left[i], found = Key{}, true
		}
	}
	return left, found
}

// bears returns the words that may name the key's owner. bears leaves out a sorted set's scores and
// a hash's short values, which are counters.
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

// shown is the maximum number of entries of a key that print shows.
const shown = 16

// print returns the key on one line, with name applied to each word. Sets, hashes and sorted-set
// members of equal score are in the order of their names. An order by the words themselves would
// differ from run to run, because owner values are random.
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
		for from, i := 0, 0; i < len(entries); i++ { // members of equal score
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

// upTo returns at most n entries of the list, plus an entry with the number of those left out.
func upTo(n int, list []string) []string {
	if len(list) <= n {
		return list
	}
	return append(list[:n:n], fmt.Sprintf("… %d more", len(list)-n))
}
