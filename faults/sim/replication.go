package sim

import (
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/lockfault/lockfault/checker"
	"github.com/lockfault/lockfault/faults/topology"
)

// feed is a follower's connection to its leader, with a stream of effects. The zero value is not
// connected.
type feed struct {
	of        *topology.Server // the leader
	connected bool             // as the leader sees it; effects sent while false are missed
	joining   *item            // the handshake in progress; nil if none
	session   int              // increases when data on its way is lost

	line    topology.Line
	last    time.Time  // arrival of the last effect: the stream keeps its order
	sent    []shipment // effects on their way
	waiting []effect   // effects held back since the stream was stopped
	door    []effect   // effects that arrived while the server was stopped

	applied int             // offset of the last applied effect
	acked   int             // offset that the leader knows to be applied
	missed  []effect        // effects to send after reconnecting
	another bool            // the leader has changed: all data is sent
	whole   bool            // a full resynchronization is needed, which sends all data
	shape   topology.Stream // the leader's Stream that is in force here
}

// shipment is an effect on its way.
type shipment struct {
	effect  effect
	arrives *item
}

// of returns the redis of a server of the topology.
func (w *World) of(s *topology.Server) *redis { return w.servers[s.ID] }

// followers returns the servers that follow s, up or not.
func (w *World) followers(s *redis) (list []*redis) {
	for _, f := range s.Followers() {
		list = append(list, w.of(f))
	}
	return list
}

// replicate compares the data with the data last sent to the followers, and sends them the
// difference. Like Redis it sends effects instead of commands, and expiry as dates on the primary's
// clock.
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

// take applies an effect on a follower, and sends the new offset to the leader.
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
			return // the acknowledgement was lost
		}
		f.in.acked = max(f.in.acked, e.offset)
		w.serve(leader)
	})
}

// down returns when data that the leader sends at from arrives at the follower.
func (w *World) down(f *redis, from time.Time, what, command string, size int) time.Time {
	road := f.in.shape.Road()
	slowed := w.arrives(road, &f.in.line, topology.JitterKey{On: replicaLink(f), What: "delay of " + what, Command: command}, from, size)
	return slowed.Add(w.up(f, from, what, command).Sub(from))
}

// up returns when data that the follower sends at from arrives at the leader, without the delays of
// the leader's Stream.
func (w *World) up(f *redis, from time.Time, what, command string) time.Time {
	on := replicaLink(f)
	return w.arrives(w.top.Links.On(on), &topology.Line{}, topology.JitterKey{On: on, What: what, Command: command}, from, 0)
}

// replicaLink returns the link between a follower and its leader. No fault can name this link.
func replicaLink(f *redis) topology.Link { return topology.Link{Client: f.Name, Node: f.Node.Name} }

// hasten delivers at once the effects on their way to a follower.
func (w *World) hasten(f *redis) {
	f.in.line, f.in.last = topology.Line{}, time.Now()
	for _, sh := range slices.Clone(f.in.sent) {
		sh.arrives.dead = true
		sh.arrives.run()
	}
}

// lose loses the data on its way between a follower and its leader. The effects count as missed.
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

// disconnect ends a follower's connection to its leader, or its handshake.
func (f *redis) disconnect() {
	f.lose()
	f.in.connected, f.in.acked = false, 0
	f.in.abort()
}

// abort ends a handshake in progress.
func (in *feed) abort() {
	if in.joining != nil {
		in.joining.dead = true
		in.joining = nil
	}
}

// The sizes in bytes of a primary's replies to a replica that reconnects, measured on the wire of
// redis-server 7.0.15. The replies are +PONG; +OK for each of two pipelined REPLCONF; and after
// PSYNC, +CONTINUE with 40 digits, followed by the missed data, or +FULLRESYNC, followed by all
// data.
const (
	pong       = 7
	replconf   = 10
	continues  = 52
	fullResync = 56 + 6 + 175
)

// connect starts a follower's handshake with its leader. connect does nothing if the follower is
// connected or connecting, or if an obstacle exists; it is called again when the obstacle is gone.
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

// answer returns a leader's reply to PSYNC: the effects that the follower missed, or all data.
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
