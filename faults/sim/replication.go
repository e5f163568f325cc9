package sim

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/lockfault/lockfault/checker"
)

// feed is the replication stream of a server to its replicas.
type feed struct {
	offset  int               // how many effects the server has had
	known   map[string]record // what the replicas were told; nil if they followed another server
	stopped bool
	waiting []effect // while stopped
	delay   time.Duration
	last    time.Time // arrival of the last effect: the stream keeps its order
	applied int       // as a replica: how many effects arrived
	acked   map[*redis]int
	waiters []*waiter
}

// record is a key with all that a replica must know of it.
type record struct {
	kind    string
	content string // for comparison
	pairs   []string
	until   time.Time // on the server's clock; zero means for ever
}

// effect is a change of some keys; a nil record means that the key is gone. A
// full one carries all data there is: whatever else a replica has is gone too.
type effect struct {
	offset int
	keys   map[string]*record
	full   bool
}

// replicate compares the data with what the replicas were told and sends them
// the difference: effects, not commands, and expiry as dates on the clock of
// the primary, as Redis does.
func (w *World) replicate(s *redis) {
	if len(s.node.servers) == 1 {
		return
	}
	now, full := s.records(), s.known == nil
	changed := map[string]*record{}
	for key, r := range now {
		was, ok := s.known[key]
		if !ok || was.content != r.content || was.until.Sub(r.until).Abs() > slack {
			changed[key] = &r
		}
	}
	for key := range s.known {
		if _, ok := now[key]; !ok {
			changed[key] = nil
		}
	}
	s.known = now
	if len(changed) == 0 && !full {
		return
	}
	s.offset++
	e := effect{s.offset, changed, full}
	if s.stopped {
		s.waiting = append(s.waiting, e)
		return
	}
	w.stream(s, e)
}

// stream sends an effect to the replicas.
func (w *World) stream(s *redis, e effect) {
	now := time.Now()
	due := now.Add(w.links.travel(link{s.name, s.node.name}, "effect", strconv.Itoa(e.offset), now.Sub(w.began)) + s.delay)
	if !due.After(s.last) {
		due = s.last.Add(time.Nanosecond)
	}
	s.last = due
	for _, replica := range s.replicas() {
		w.plan(due, rank{who: servers + replica.name, what: "effect"}, func() { w.follow(s, replica, e) })
	}
}

// replicas returns who follows the server.
func (s *redis) replicas() []*redis {
	if s != s.node.primary {
		return nil // the rival of a split has nobody
	}
	return slices.DeleteFunc(slices.Clone(s.node.servers), func(other *redis) bool {
		return other == s || !other.up || other == s.node.rival
	})
}

// follow applies an effect on a replica, which then says how far it got.
func (w *World) follow(primary, replica *redis, e effect) {
	if primary != replica.node.primary || !replica.up || replica.leads() {
		return // it has another primary by now, or is one
	}
	w.settle(replica)
	if e.full {
		for key := range replica.records() {
			if e.keys[key] == nil {
				replica.apply(key, nil)
			}
		}
	}
	for _, key := range slices.Sorted(maps.Keys(e.keys)) {
		replica.apply(key, e.keys[key])
	}
	replica.applied = e.offset
	w.observe(replica, checker.ByReplication, "", nil)
	due := time.Now().Add(w.links.travel(link{replica.name, replica.node.name}, "ack", "", time.Since(w.began)))
	w.plan(due, rank{who: servers + replica.name, what: "ack"}, func() {
		if primary.acked == nil {
			primary.acked = map[*redis]int{}
		}
		primary.acked[replica] = max(primary.acked[replica], e.offset)
		w.serve(primary)
	})
}

// records reads all data.
func (s *redis) records() map[string]record {
	s.tick()
	db := s.mini.DB(0)
	all := map[string]record{}
	for _, key := range db.Keys() {
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
		all[key] = r
	}
	return all
}

// apply makes a key what the record says.
func (s *redis) apply(key string, r *record) {
	s.tick()
	db := s.mini.DB(0)
	db.Del(key)
	if r == nil || !r.until.IsZero() && !r.until.After(s.now()) {
		return
	}
	switch r.kind {
	case "string":
		_ = db.Set(key, r.pairs[0]) // the key is gone, so it can't have another type
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

// copyFrom makes the data what another server has, and the server its replica.
func (s *redis) copyFrom(other *redis) {
	data := other.records()
	s.mini.DB(0).FlushDB()
	for key, r := range data {
		s.apply(key, &r)
	}
	s.feed = feed{applied: other.offset}
}
