package sim

import (
	"bytes"
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/alicebob/miniredis/v2/server"

	"github.com/lockfault/lockfault/faults"
	"github.com/lockfault/lockfault/faults/topology"
	"github.com/lockfault/lockfault/internal/rediscmd"
)

// This file implements CLIENT TRACKING, which miniredis does not support. The file uses miniredis's
// WATCH to detect writes to a key, including writes of an equal value, which Redis also reports to
// clients that cache the key. For a few commands WATCH in miniredis differs from Redis about what
// is a write, so this file also compares the record of each key.

// tracking is a server's state for clients that track keys, which it keeps only in memory. The zero
// value is empty.
type tracking struct {
	clients []*conn            // connections that track, in the order in which they began
	readers map[string][]*conn // connections to notify once of the next change of a key
	watched map[string]*watch  // the keys that some connection tracks
	changes []change           // changes to report to connections that track prefixes
	said    []*message         // messages to send after the reply to the current request
	expiry  *item              // the next expiry of a watched key
	overdue bool               // the expiry came due while the server was stopped or down
}

// watch is the state of a key when it was last examined.
type watch struct {
	peer server.Peer // the peer that watches the key
	was  record
}

// change is a write to a key. by is nil if the server itself made the change.
type change struct {
	key string
	by  *conn
}

// clientTracking is the tracking mode of a connection. The zero value does not track.
type clientTracking struct {
	on, bcast, optin, optout, noloop bool

	prefixes []string // of bcast; sorted
	caching  bool     // CLIENT CACHING applies to the next command or transaction
}

// track turns on tracking for a connection, with the given mode and additional prefixes.
func (s *redis) track(c *conn, as clientTracking) {
	t := &s.tracking
	if !c.tracker.on {
		t.clients = append(t.clients, c)
	}
	as.on, as.caching = true, c.tracker.caching
	if as.bcast && len(as.prefixes) == 0 {
		as.prefixes = []string{""}
	}
	as.prefixes = slices.Compact(slices.Sorted(slices.Values(append(as.prefixes, c.tracker.prefixes...))))
	c.tracker = as
	if t.readers == nil {
		t.readers, t.watched = map[string][]*conn{}, map[string]*watch{}
	}
	s.foresee(nil) // existing keys may expire
}

// untrack turns off tracking for a connection, and removes the record of the keys that it has read.
func (s *redis) untrack(c *conn) {
	t := &s.tracking
	is := func(other *conn) bool { return other == c }
	c.tracker = clientTracking{}
	t.clients = slices.DeleteFunc(t.clients, is)
	for key, readers := range t.readers {
		t.readers[key] = slices.DeleteFunc(readers, is)
	}
	if len(t.clients) == 0 {
		if t.expiry != nil {
			t.expiry.dead = true
		}
		s.tracking = tracking{said: t.said}
	}
}

// tracked executes a command. Afterwards it invalidates the caches that the command made stale, and
// records the keys that the current client has read.
func (s *redis) tracked(words []string, execute func()) {
	if len(s.tracking.clients) > 0 {
		s.foresee(words[1:])
		defer func() {
			s.invalidate(words)
			s.remember(words)
		}()
	}
	execute()
}

// foresee watches the keys that a command may change and that a connection tracks by prefix: the
// existing keys and the keys that the command names.
func (s *redis) foresee(words []string) {
	for _, key := range slices.Concat(s.mini.DB(0).Keys(), words) {
		if s.tracking.broadcasts(key) {
			s.watch(key)
		}
	}
}

// remember records the keys that the current client read with a command, if the client tracks them.
func (s *redis) remember(words []string) {
	t, c := &s.tracking, s.serving
	if c == nil || !c.tracker.on || c.tracker.bcast || c.tracker.optin && !c.tracker.caching || c.tracker.optout && c.tracker.caching {
		return
	}
	for _, key := range keysRead(words) {
		s.watch(key)
		if !slices.Contains(t.readers[key], c) {
			t.readers[key] = append(t.readers[key], c)
		}
	}
}

// keysRead returns the keys that a read-only command reads, which are the keys that Redis tracks;
// nil for other commands. Of a read-only script Redis tracks the keys that its commands read.
func keysRead(words []string) []string {
	command := rediscmd.Of(words)
	if !command.Has(rediscmd.ReadOnly) || command.RunsScript() {
		return nil
	}
	return command.KeysIn(words)
}

// broadcasts reports whether a connection tracks a prefix of the key.
func (t *tracking) broadcasts(key string) bool {
	return slices.ContainsFunc(t.clients, func(c *conn) bool {
		return slices.ContainsFunc(c.tracker.prefixes, func(prefix string) bool { return strings.HasPrefix(key, prefix) })
	})
}

// watch begins to watch a key, unless it is already watched.
func (s *redis) watch(key string) {
	if s.tracking.watched[key] == nil {
		on := &watch{was: s.record(key)}
		s.ask(&on.peer, "WATCH", key)
		s.tracking.watched[key] = on
	}
}

// written reports whether a watched key was written to since watch, and keeps watching if not.
// words is the command that may have written; empty if the server itself may have.
func (s *redis) written(key string, words []string) bool {
	on := s.tracking.watched[key]
	s.ask(&on.peer, "MULTI")
	written := !bytes.Equal(s.ask(&on.peer, "EXEC"), []byte("*0\r\n"))
	is := s.record(key)
	same := is.content == on.was.content && !is.moved(on.was)
	switch {
	case !same:
		written = true
	case len(words) == 0:
	case written:
		written = !sparing(strings.ToUpper(words[0]))
	case strings.EqualFold(words[0], "GETEX"):
		written = len(words) > 2 && words[1] == key && is.kind != ""
	}
	if !written {
		on.was = is
		s.ask(&on.peer, "WATCH", key)
	}
	return written
}

// sparing reports whether Redis counts a command, in upper case, as no write if it leaves its key
// unchanged.
func sparing(command string) bool {
	switch command {
	case "SADD", "ZADD", "SETBIT", "PFADD":
		return true
	}
	return false
}

// invalidate queues messages to the connections that cached a watched key that was written to.
// Messages for several keys are in the order in which the command, if any, names the keys.
func (s *redis) invalidate(words []string) {
	t := &s.tracking
	named := func(key string) int {
		if i := slices.Index(words, key); i >= 0 {
			return i
		}
		return len(words)
	}
	keys := slices.SortedFunc(maps.Keys(t.watched), func(a, b string) int {
		return cmp.Or(cmp.Compare(named(a), named(b)), strings.Compare(a, b))
	})
	for _, key := range keys {
		if !s.written(key, words) {
			continue
		}
		delete(t.watched, key)
		if t.broadcasts(key) {
			t.changes = append(t.changes, change{key, s.serving})
			s.watch(key) // the key may expire
		}
		readers := t.readers[key]
		delete(t.readers, key)
		for _, c := range readers {
			if !c.tracker.bcast && !(c.tracker.noloop && c == s.serving) {
				s.say(c, array(key))
			}
		}
	}
}

// flushed queues messages for all tracking connections to discard their whole cache.
func (s *redis) flushed() {
	t := &s.tracking
	for _, c := range t.clients {
		s.say(c, []byte("_\r\n"))
	}
	clear(t.readers)
	clear(t.watched)
}

// say queues an invalidation message for a connection: an array of keys, or null for all keys. say
// does nothing for a connection in RESP2, where Redis has no such message.
func (s *redis) say(c *conn, keys []byte) {
	if c.peer.Resp3 {
		push := append([]byte(">2\r\n$10\r\ninvalidate\r\n"), keys...)
		s.tracking.said = append(s.tracking.said, &message{conn: c, way: faults.Messages, bytes: push})
	}
}

// broadcast queues the changes for connections that track prefixes, one message per prefix.
func (s *redis) broadcast() {
	t := &s.tracking
	changes := t.changes
	t.changes = nil
	if len(changes) == 0 {
		return
	}
	slices.SortStableFunc(changes, func(a, b change) int { return strings.Compare(a.key, b.key) })
	for _, c := range t.clients {
		for _, prefix := range c.tracker.prefixes {
			var keys []string
			for i, change := range changes {
				again := i+1 < len(changes) && changes[i+1].key == change.key // the last change counts
				if !again && strings.HasPrefix(change.key, prefix) && !(c.tracker.noloop && change.by == c) {
					keys = append(keys, change.key)
				}
			}
			if len(keys) > 0 {
				s.say(c, array(keys...))
			}
		}
	}
}

// tellTracking sends the queued messages to tracking connections, and schedules the next expiry of
// a tracked key.
func (w *World) tellTracking(s *redis) {
	t := &s.tracking
	s.broadcast()
	said := t.said
	t.said = nil
	for _, m := range said {
		if !m.conn.gone {
			w.send(m)
		}
	}
	if len(t.clients) > 0 {
		w.planTracked(s)
	}
}

// lookTracked examines watched keys after a change that no client's command made.
func (w *World) lookTracked(s *redis) {
	if len(s.tracking.clients) > 0 {
		s.tick()
		s.mini.DB(0) // miniredis counts the time up to now only when it is accessed
		s.invalidate(nil)
		w.tellTracking(s)
	}
}

// planTracked schedules lookTracked for the first expiry of a watched key.
func (w *World) planTracked(s *redis) {
	t := &s.tracking
	if t.expiry != nil {
		t.expiry.dead = true
		t.expiry = nil
	}
	left := time.Duration(math.MaxInt64)
	db := s.mini.DB(0)
	for key := range t.watched {
		if ttl := db.TTL(key); ttl > 0 {
			left = min(left, ttl)
		}
	}
	if left == math.MaxInt64 {
		return
	}
	// Rounded up: just before that moment the key would still exist.
	after := time.Duration(min(math.Ceil(float64(left)/s.Clock.Rate()), float64(topology.Century)))
	t.expiry = w.plan(time.Now().Add(after), rank{who: servers + s.Name, what: "tracked expiry"}, func() {
		t.expiry = nil
		if t.overdue = !s.Answers(); !t.overdue {
			w.lookTracked(s)
		}
	})
}

// array returns strings as a RESP array.
func array(words ...string) []byte {
	out := fmt.Appendf(nil, "*%d\r\n", len(words))
	for _, word := range words {
		out = fmt.Appendf(out, "$%d\r\n%s\r\n", len(word), word)
	}
	return out
}
