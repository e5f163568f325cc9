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
	waiting []effect          // what can't set out yet
	sent    []shipment        // what is on its way, in order
	last    time.Time         // arrival of the last effect: the stream keeps its order
	applied int               // as a replica: how many effects arrived
	acked   map[*redis]int
	waiters []*waiter

	stopped       bool
	timeout       time.Duration // nothing passes, and a connection stays open that long; 0 if there is none
	delay, jitter time.Duration
	bandwidth     float64 // in bytes per second; 0 is unlimited
	line          line

	gone    bool  // the replicas' connections are over: they have to connect anew
	joining *item // their handshake, if it is under way
	session int   // grows when what is on its way is lost
}

// shipment is an effect on its way.
type shipment struct {
	effect  effect
	arrives *item
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
	size   int // about, in bytes of RESP
}

// replicate compares the data with what the replicas were told and sends them
// the difference: effects, not commands, and expiry as dates on the clock of
// the primary, as Redis does.
func (w *World) replicate(s *redis) {
	if len(s.node.servers) == 1 {
		return
	}
	now, full := s.records(), s.known == nil
	e := effect{keys: map[string]*record{}, full: full}
	for key, r := range now {
		was, ok := s.known[key]
		if !ok || was.content != r.content || was.moved(r) {
			e.keys[key] = &r
			e.size += r.size(key, was)
		}
	}
	for key := range s.known {
		if _, ok := now[key]; !ok {
			e.keys[key] = nil
			e.size += size("DEL", key)
		}
	}
	s.known = now
	if len(e.keys) == 0 && !full {
		return
	}
	s.offset++
	e.offset = s.offset
	if s.stopped || s.timeout > 0 || s.gone {
		s.waiting = append(s.waiting, e)
		return
	}
	w.stream(s, e)
}

// moved reports whether the record has another expiry date than the other one.
func (r record) moved(other record) bool { return r.until.Sub(other.until).Abs() > slack }

// size returns about how long the commands are that Redis would send for a
// record that was another one before.
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

// size returns how long a command is in RESP.
func size(words ...string) int {
	header := func(n int) int { return len("*\r\n") + len(strconv.Itoa(n)) }
	total := header(len(words))
	for _, word := range words {
		total += header(len(word)) + len(word) + len("\r\n")
	}
	return total
}

// stream sends an effect to the replicas.
func (w *World) stream(s *redis, e effect) {
	replicas := s.replicas()
	if len(replicas) == 0 {
		return
	}
	now := time.Now()
	due := w.down(s, now, "effect", strconv.Itoa(e.offset), e.size)
	if !due.After(s.last) {
		due = s.last.Add(time.Nanosecond)
	}
	s.last = due
	var it *item
	it = w.plan(due, rank{who: servers + replicas[0].name, what: "effect"}, func() {
		s.sent = slices.DeleteFunc(s.sent, func(sh shipment) bool { return sh.arrives == it })
		for _, replica := range replicas {
			w.follow(s, replica, e)
		}
	})
	s.sent = append(s.sent, shipment{e, it})
}

// down returns when something arrives at the replicas that sets out then.
func (w *World) down(s *redis, from time.Time, what, command string, size int) time.Time {
	on, sent := link{s.name, s.node.name}, from.Sub(w.began)
	return s.line.carry(from, size, s.bandwidth).Add(w.links.travel(on, what, command, sent) +
		max(0, s.delay+w.links.draw(s.jitter, on, "delay of "+what, command, sent)))
}

// up returns when something of the replicas arrives that sets out then.
func (w *World) up(s *redis, from time.Time, what string) time.Time {
	return from.Add(w.links.travel(link{s.name, s.node.name}, what, "", from.Sub(w.began)))
}

// hasten lets what is on its way to the replicas arrive at once.
func (w *World) hasten(s *redis) {
	s.line, s.last = line{}, time.Now()
	for _, sh := range slices.Clone(s.sent) {
		sh.arrives.dead = true
		sh.arrives.run()
	}
}

// lose loses what is on its way between the server and its replicas.
func (s *redis) lose() {
	var lost []effect
	for _, sh := range s.sent {
		sh.arrives.dead = true
		lost = append(lost, sh.effect)
	}
	s.waiting, s.sent = append(lost, s.waiting...), nil
	s.line, s.last = line{}, time.Time{}
	s.session++
}

// disconnect ends the connections of the replicas.
func (s *redis) disconnect() {
	s.lose()
	s.gone = true
}

// What a primary answers a replica that connects anew, as seen on the wire of
// redis-server 7.0.15: +PONG; +OK for each of two REPLCONF that come in one go;
// and behind PSYNC, with what the replica missed in its train, +CONTINUE with 40
// digits.
const (
	pong      = 7
	replconf  = 10
	continues = 52
)

// catchUp sends the replicas what waits, if anything passes: at once, or when
// they have connected anew.
func (w *World) catchUp(s *redis) {
	if s.joining != nil {
		s.joining.dead = true
		s.joining = nil
	}
	switch {
	case s.stopped || s.timeout > 0 || s.paused || !s.up:
	case !s.gone:
		waiting := s.waiting
		s.waiting = nil
		for _, e := range waiting {
			w.stream(s, e)
		}
	default:
		ready := w.up(s, time.Now(), "ping")
		ready = w.up(s, w.down(s, ready, "pong", "", pong), "replconf")
		ready = w.up(s, w.down(s, ready, "ok", "", replconf), "psync")
		s.joining = w.plan(ready, rank{who: servers + s.name, what: "psync"}, func() {
			s.joining = nil
			if s.paused || !s.up {
				return // it answers when it goes on
			}
			s.gone, s.acked = false, nil
			w.stream(s, effect{size: continues})
			w.catchUp(s)
		})
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

// follow applies an effect on a replica that has not had it yet, and says how
// far that got.
func (w *World) follow(primary, replica *redis, e effect) {
	if primary != replica.node.primary || !replica.up || replica.leads() {
		return // it has another primary by now, or is one
	}
	if e.full || e.offset > replica.applied {
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
	}
	session, applied := primary.session, replica.applied
	due := time.Now().Add(w.links.travel(link{replica.name, replica.node.name}, "ack", "", time.Since(w.began)))
	w.plan(due, rank{who: servers + replica.name, what: "ack"}, func() {
		if primary.session != session {
			return // it was lost
		}
		if primary.acked == nil {
			primary.acked = map[*redis]int{}
		}
		primary.acked[replica] = max(primary.acked[replica], applied)
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
	s.feed = feed{applied: other.offset, session: s.session + 1}
}
