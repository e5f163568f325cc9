package sim

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"time"
)

// record is the state of a key that a replica needs. The zero value is a key that does not exist.
type record struct {
	kind    string
	content string // for comparison
	pairs   []string
	until   time.Time // on the server's clock; zero means never
}

// effect is a change of some keys; a nil record means that the key was removed. A full effect has
// all data: a follower removes every other key.
type effect struct {
	offset int
	keys   map[string]*record
	full   bool
	size   int // approximate size in bytes of RESP
}

// moved reports whether the expiry dates of the records differ by more than slack.
func (r record) moved(other record) bool { return r.until.Sub(other.until).Abs() > slack }

// size returns the approximate size of the commands that Redis would send to change a key from was
// to r.
func (r record) size(key string, was record) (total int) {
	date := strconv.FormatInt(r.until.UnixMilli(), 10)
	set := map[string]string{"string": "SET", "hash": "HSET", "list": "RPUSH", "set": "SADD", "zset": "ZADD"}[r.kind]
	words := append([]string{set, key}, r.pairs...)
	switch {
	case r.content == was.content && r.until.IsZero():
		return size("PERSIST", key)
	case r.content == was.content:
		return size("PEXPIREAT", key, date)
	case r.until.IsZero():
		return size(words...)
	case r.kind == "string":
		return size(append(words, "PXAT", date)...)
	case r.moved(was):
		return size(words...) + size("PEXPIREAT", key, date)
	}
	return size(words...)
}

// size returns the length of a command in RESP.
func size(words ...string) int {
	header := func(n int) int { return len("*\r\n") + len(strconv.Itoa(n)) }
	total := header(len(words))
	for _, word := range words {
		total += header(len(word)) + len(word) + len("\r\n")
	}
	return total
}

// records returns the records of all keys in database 0.
func (s *redis) records() map[string]record {
	s.tick()
	all := map[string]record{}
	for _, key := range s.mini.DB(0).Keys() {
		all[key] = s.record(key)
	}
	return all
}

// record returns the record of a key, or the zero record if the key does not exist.
func (s *redis) record(key string) record {
	db := s.mini.DB(0)
	if !db.Exists(key) {
		return record{}
	}
	r := record{kind: db.Type(key)}
	switch r.kind {
	case "string":
		value, _ := db.Get(key)
		r.pairs = []string{value}
	case "hash":
		fields, _ := db.HKeys(key)
		for _, field := range fields {
			r.pairs = append(r.pairs, field, db.HGet(key, field))
		}
	case "list":
		r.pairs, _ = db.List(key)
	case "set":
		r.pairs, _ = db.Members(key)
	case "zset":
		scores, _ := db.SortedSet(key)
		for _, member := range slices.Sorted(maps.Keys(scores)) {
			r.pairs = append(r.pairs, member, strconv.FormatFloat(scores[member], 'g', -1, 64))
		}
	}
	r.content = fmt.Sprintf("%s %q", r.kind, r.pairs)
	if ttl := db.TTL(key); ttl > 0 {
		r.until = s.now().Add(ttl)
	}
	return r
}

// apply changes the data as the effect states.
func (s *redis) apply(e effect) {
	if e.full {
		for key := range s.records() {
			if e.keys[key] == nil {
				s.set(key, nil)
			}
		}
	}
	for _, key := range slices.Sorted(maps.Keys(e.keys)) {
		s.set(key, e.keys[key])
	}
}

// set changes a key to the record, or removes it if the record is nil or expired.
func (s *redis) set(key string, r *record) {
	s.tick()
	db := s.mini.DB(0)
	db.Del(key)
	if r == nil || !r.until.IsZero() && !r.until.After(s.now()) {
		return
	}
	switch r.kind {
	case "string":
		_ = db.Set(key, r.pairs[0]) // cannot fail: the key was removed, so it has no other type
	case "hash":
		db.HSet(key, r.pairs...)
	case "list":
		_, _ = db.Push(key, r.pairs...)
	case "set":
		_, _ = db.SetAdd(key, r.pairs...)
	case "zset":
		for i := 0; i < len(r.pairs); i += 2 {
			score, _ := strconv.ParseFloat(r.pairs[i+1], 64)
			_, _ = db.ZAdd(key, score, r.pairs[i])
		}
	}
	if !r.until.IsZero() {
		db.SetTTL(key, r.until.Sub(s.now()))
	}
}
