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
)

// CLIENT TRACKING is done here, since miniredis doesn't know it. It is asked what
// it knows for the sake of WATCH: whether a key was written to, and be it the same
// as before. That is what Redis goes by, too, when it tells clients that what they
// cached is no longer true. A few commands miniredis takes for writes that changed
// nothing, or the other way round; so each key's record is looked at as well.

// tracking is what a server keeps of clients' caches, in memory only. The zero
// value is empty.
type tracking struct {
	clients []*conn            // who tracks, the first to begin first
	readers map[string][]*conn // who is told of the next change of a key, once
	watched map[string]*watch  // the keys that matter
	changes []change           // what those will be told who track prefixes
	said    []*message         // it goes out behind the answer to the request in hand
	expiry  *item              // when the next watched key will be gone
	overdue bool               // that time came while the server was stopped
}

// watch is how a key was when it was last looked at.
type watch struct {
	peer server.Peer // which watches it
	was  record
}

// change is a key that was written to by a client, or nil: by the server itself.
type change struct {
	key string
	by  *conn
}

// clientTracking is how a connection tracks. The zero value doesn't.
type clientTracking struct {
	on, bcast, optin, optout, noloop bool

	prefixes []string // of bcast; sorted
	caching  bool     // CLIENT CACHING was said of the next command or transaction
}

// track has a connection track from now on as the tracker says.
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
	s.foresee(nil) // keys that are there may expire
}

// untrack ends that. The server forgets what the connection has read.
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

// tracked executes a command and takes note of whose caches it makes wrong, and
// then of what the client that is served has now read.
func (s *redis) tracked(command string, words []string, execute func()) {
	if len(s.tracking.clients) > 0 {
		s.foresee(words[1:])
		defer func() {
			s.invalidate(words)
			s.remember(command, words)
		}()
	}
	execute()
}

// foresee watches what a command may change of what is tracked by prefix: keys that
// there are and keys that it names.
func (s *redis) foresee(words []string) {
	for _, key := range slices.Concat(s.mini.DB(0).Keys(), words) {
		if s.tracking.broadcasts(key) {
			s.watch(key)
		}
	}
}

// remember takes note of what the client that is served read by a command, if that
// matters to it.
func (s *redis) remember(command string, words []string) {
	t, c := &s.tracking, s.serving
	if c == nil || !c.tracker.on || c.tracker.bcast || c.tracker.optin && !c.tracker.caching || c.tracker.optout && c.tracker.caching {
		return
	}
	for _, key := range keysRead(command, words) {
		s.watch(key)
		if !slices.Contains(t.readers[key], c) {
			t.readers[key] = append(t.readers[key], c)
		}
	}
}

// broadcasts reports whether anybody tracks a prefix of the key.
func (t *tracking) broadcasts(key string) bool {
	return slices.ContainsFunc(t.clients, func(c *conn) bool {
		return slices.ContainsFunc(c.tracker.prefixes, func(prefix string) bool { return strings.HasPrefix(key, prefix) })
	})
}

// watch begins to watch a key, unless it is watched.
func (s *redis) watch(key string) {
	if s.tracking.watched[key] == nil {
		on := &watch{was: s.record(key)}
		s.ask(&on.peer, "WATCH", key)
		s.tracking.watched[key] = on
	}
}

// written reports whether a watched key was written to since, maybe by a command,
// and goes on watching if not.
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

// sparing reports whether a command, in upper case, has written nothing for Redis if
// everything is as it was.
func sparing(command string) bool {
	switch command {
	case "SADD", "ZADD", "SETBIT", "PFADD":
		return true
	}
	return false
}

// invalidate looks which watched keys were written to and sees to it that those
// are told who cached one. Of several keys they are told in the order in which
// the command, if it was one, names them.
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
			s.watch(key) // it may expire
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

// flushed has all that track forget everything.
func (s *redis) flushed() {
	t := &s.tracking
	for _, c := range t.clients {
		s.say(c, []byte("_\r\n"))
	}
	clear(t.readers)
	clear(t.watched)
}

// say sends a client that understands it a message that some keys are no longer
// what it knows: an array of them, or null, which means all. Redis has no such
// message in RESP2.
func (s *redis) say(c *conn, keys []byte) {
	if c.peer.Resp3 {
		push := append([]byte(">2\r\n$10\r\ninvalidate\r\n"), keys...)
		s.tracking.said = append(s.tracking.said, &message{conn: c, way: faults.Messages, bytes: push})
	}
}

// broadcast tells those who track prefixes what changed, a message for each
// prefix.
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

// tellTracking sends those who track what there is to say by now, and plans when the
// next key that matters to them expires.
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

// lookTracked looks what became of watched keys when it was no client's command
// that may have changed them.
func (w *World) lookTracked(s *redis) {
	if len(s.tracking.clients) > 0 {
		s.tick()
		s.mini.DB(0) // miniredis counts the time up to now when it is asked for something
		s.invalidate(nil)
		w.tellTracking(s)
	}
}

// planTracked plans to look again when the first of the watched keys expires.
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
	// Rounded up: before that moment the key would still be there.
	after := time.Duration(min(math.Ceil(float64(left)/s.Clock.Rate()), float64(topology.Century)))
	t.expiry = w.plan(time.Now().Add(after), rank{who: servers + s.Name, what: "tracked expiry"}, func() {
		t.expiry = nil
		if t.overdue = !s.Answers(); !t.overdue {
			w.lookTracked(s)
		}
	})
}

// array returns strings as a server sends them.
func array(words ...string) []byte {
	out := fmt.Appendf(nil, "*%d\r\n", len(words))
	for _, word := range words {
		out = fmt.Appendf(out, "$%d\r\n%s\r\n", len(word), word)
	}
	return out
}
