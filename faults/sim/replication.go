package sim

import (
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/lockfault/lockfault/checker"
	"github.com/lockfault/lockfault/faults/topology"
)

// feed is how a server that follows is told what its leader does: a connection
// to the leader, with a stream of effects on it. The zero value isn't connected.
type feed struct {
	of        *topology.Server // the leader
	connected bool             // for the leader; what sets out else is missed
	joining   *item            // the handshake, if one is under way
	session   int              // grows when what is on its way is lost

	line    topology.Line
	last    time.Time  // arrival of the last effect: the stream keeps its order
	sent    []shipment // what is on its way
	waiting []effect   // what set out since the stream was stopped
	door    []effect   // what arrived while the server was stopped

	applied int             // how many of its leader's effects arrived
	acked   int             // how many of them the leader knows of
	missed  []effect        // what it must be sent when it has connected
	another bool            // its leader is not the one before: it is sent all data
	whole   bool            // and by a full resynchronization
	shape   topology.Stream // what the above goes by
}

// shipment is an effect on its way.
type shipment struct {
	effect  effect
	arrives *item
}

// of returns the server of the topology's one.
func (w *World) of(s *topology.Server) *redis { return w.servers[s.ID] }

// followers returns who follows the server, up or not.
func (w *World) followers(s *redis) (list []*redis) {
	for _, f := range s.Followers() {
		list = append(list, w.of(f))
	}
	return list
}

// replicate compares the data with what the followers were told and sends them
// the difference: effects, not commands, and expiry as dates on the clock of
// the primary, as Redis does.
func (w *World) replicate(s *redis) {
	if len(s.Node.Servers) == 1 {
		return
	}
	now := s.records()
	e := effect{keys: map[string]*record{}}
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
	if len(e.keys) == 0 {
		return
	}
	s.offset++
	e.offset = s.offset
	for _, f := range w.followers(s) {
		switch {
		case !f.in.connected || f.in.shape.Timeout > 0:
			f.in.missed = append(f.in.missed, e)
		case f.in.shape.Stopped:
			f.in.waiting = append(f.in.waiting, e)
		default:
			w.ship(f, e)
		}
	}
}

// ship sends an effect to a follower.
func (w *World) ship(f *redis, e effect) {
	in := &f.in
	due := w.down(f, time.Now(), "effect", strconv.Itoa(e.offset), e.size)
	if !due.After(in.last) {
		due = in.last.Add(time.Nanosecond)
	}
	in.last = due
	var it *item
	it = w.plan(due, rank{who: servers + f.Name, what: "effect"}, func() {
		in.sent = slices.DeleteFunc(in.sent, func(sh shipment) bool { return sh.arrives == it })
		if f.Paused {
			in.door = append(in.door, e)
			return
		}
		w.take(f, e)
	})
	in.sent = append(in.sent, shipment{e, it})
}

// take applies an effect on a follower, and says how far it got.
func (w *World) take(f *redis, e effect) {
	w.settle(f)
	if len(f.tracking.clients) > 0 {
		f.foresee(slices.Collect(maps.Keys(e.keys)))
	}
	f.apply(e)
	if e.full {
		f.flushed()
	}
	w.lookTracked(f)
	f.in.applied = e.offset
	w.observe(f, checker.ByReplication, "", nil)
	leader, session := w.of(f.Leader), f.in.session
	w.plan(w.up(f, time.Now(), "ack", ""), rank{who: servers + f.Name, what: "ack"}, func() {
		if f.in.session != session {
			return // it was lost
		}
		f.in.acked = max(f.in.acked, e.offset)
		w.serve(leader)
	})
}

// down returns when something arrives at a follower that sets out then, and up
// the same of what the follower says.
func (w *World) down(f *redis, from time.Time, what, command string, size int) time.Time {
	road := f.in.shape.Road()
	slowed := w.arrives(road, &f.in.line, topology.JitterKey{On: replicaLink(f), What: "delay of " + what, Command: command}, from, size)
	return slowed.Add(w.up(f, from, what, command).Sub(from))
}

func (w *World) up(f *redis, from time.Time, what, command string) time.Time {
	on := replicaLink(f)
	return w.arrives(w.top.Links.On(on), &topology.Line{}, topology.JitterKey{On: on, What: what, Command: command}, from, 0)
}

// replicaLink is the link between a follower and its leader. No fault names it.
func replicaLink(f *redis) topology.Link { return topology.Link{Client: f.Name, Node: f.Node.Name} }

// hasten lets what is on its way to a follower arrive at once.
func (w *World) hasten(f *redis) {
	f.in.line, f.in.last = topology.Line{}, time.Now()
	for _, sh := range slices.Clone(f.in.sent) {
		sh.arrives.dead = true
		sh.arrives.run()
	}
}

// lose loses what is on its way between a follower and its leader.
func (f *redis) lose() {
	in := &f.in
	lost := in.door
	for _, sh := range in.sent {
		sh.arrives.dead = true
		lost = append(lost, sh.effect)
	}
	in.missed = slices.Concat(lost, in.waiting, in.missed)
	in.sent, in.waiting, in.door = nil, nil, nil
	in.line, in.last = topology.Line{}, time.Time{}
	in.session++
}

// disconnect ends a follower's connection to its leader.
func (f *redis) disconnect() {
	f.lose()
	f.in.connected, f.in.acked = false, 0
	f.in.abort()
}

// abort ends a handshake.
func (in *feed) abort() {
	if in.joining != nil {
		in.joining.dead = true
		in.joining = nil
	}
}

// What a primary answers a replica that connects anew, as seen on the wire of
// redis-server 7.0.15: +PONG; +OK for each of two REPLCONF that come in one go;
// and behind PSYNC, with what the replica missed in its train, +CONTINUE with 40
// digits, or, with all data behind it, +FULLRESYNC.
const (
	pong       = 7
	replconf   = 10
	continues  = 52
	fullResync = 56 + 6 + 175
)

// connect has a follower connect to its leader, unless it is connected, or
// anything is in the way: then somebody calls again when that has gone.
func (w *World) connect(f *redis) {
	in := &f.in
	switch {
	case f.Leader == nil || in.connected || in.joining != nil:
		return
	case !f.Answers() || !f.Leader.Answers() || !in.shape.Passes():
		return
	}
	ready := w.up(f, time.Now(), "ping", "")
	ready = w.up(f, w.down(f, ready, "pong", "", pong), "replconf", "")
	ready = w.up(f, w.down(f, ready, "ok", "", replconf), "psync", "")
	in.joining = w.plan(ready, rank{who: servers + f.Name, what: "psync"}, func() {
		in.joining = nil
		if !f.Answers() || !f.Leader.Answers() || !in.shape.Passes() {
			return
		}
		for _, e := range w.of(f.Leader).answer(f) {
			w.ship(f, e)
		}
	})
}

// answer returns what a leader answers to PSYNC: what the follower missed, or
// all data.
func (s *redis) answer(f *redis) []effect {
	in := &f.in
	s.world.settle(s)
	missed := in.missed
	e := effect{offset: in.applied, size: continues}
	if in.another || in.whole {
		missed = nil
		e.offset, e.full, e.keys = s.offset, true, map[string]*record{}
		for key, r := range s.records() {
			e.keys[key] = &r
			e.size += r.size(key, record{})
		}
	}
	if in.whole {
		e.size += fullResync - continues
	}
	in.connected, in.missed, in.another, in.whole = true, nil, false, false
	return append([]effect{e}, missed...)
}
