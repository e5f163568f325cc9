package sim

import (
	"bytes"
	"slices"
	"time"

	"github.com/lockfault/lockfault/checker"
	"github.com/lockfault/lockfault/faults"
	"github.com/lockfault/lockfault/faults/topology"
	"github.com/lockfault/lockfault/internal/resp"
)

// arrive handles a message that has reached its destination. Behind a stuck message it waits;
// otherwise the topology decides on it. Callers hold w.mu.
func (w *World) arrive(m *message) {
	if m.arrived.IsZero() {
		m.arrived = time.Now()
	}
	if on := m.stream(); on.Stuck != nil && !m.Gone() {
		on.behind = append(on.behind, m)
		m.conn.travelling++
		return
	}
	w.top.Arrive(m)
}

// The following methods implement [topology.Message].

func (m *message) Owner() *topology.Client { return m.conn.client.Client }

func (m *message) About() faults.Message {
	return faults.Message{
		Client: m.conn.client.Name, Node: m.conn.node.Name, Way: m.way, Command: m.command,
		Words: m.words, Keys: m.conn.world.cfg.Lock.Keys, Did: m.did,
	}
}

func (m *message) Lane() *topology.Lane { return &m.stream().Lane }

func (m *message) Gone() bool { return m.conn.gone || m.way != faults.Before && m.conn.severed != nil }

func (m *message) Said() (command, reply string, sent time.Duration) {
	w := m.conn.world
	command, sent = m.text, w.at(m.sent)
	if m.way == faults.Before {
		command = w.ledger.Command(m.conn.client.Name, m.words)
	}
	if m.bytes != nil {
		reply = resp.Print(m.bytes, w.ledger.Name)
	}
	return command, reply, sent
}

func (m *message) Discard(bool) {}

func (m *message) Break() { m.conn.sever(errReset) }

func (m *message) Later(by time.Duration, do func()) {
	c := m.conn
	c.travelling++
	c.world.plan(m.arrived.Add(by), m.rank(), func() {
		c.travelling--
		do()
	})
}

func (m *message) Free() {
	c, on := m.conn, m.stream()
	behind := on.behind
	on.behind = nil
	for _, next := range behind {
		c.travelling--
		c.world.arrive(next)
	}
	c.releaseIfFinished()
}

// Enter delivers a message, or queues it if the receiver cannot take it yet. A request waits while
// the server is paused or an earlier request of the connection is blocked. A reply or push waits
// while the client is paused.
func (m *message) Enter() {
	c, w := m.conn, m.conn.world
	switch {
	case m.way == faults.Before && c.server.Paused:
		c.server.door = append(c.server.door, m)
		c.travelling++
	case m.way == faults.Before && c.waiter != nil:
		c.pending = append(c.pending, m)
		c.travelling++
	case m.way == faults.Before:
		w.execute(m)
	case c.client.State.Paused:
		c.client.door = append(c.client.door, m)
		c.travelling++
	case c.client.dead:
	default:
		w.receive(m)
	}
}

// open delivers the messages in a queue of a resumed client or server.
func (w *World) open(door *[]*message) {
	waiting := *door
	*door = nil
	for _, m := range waiting {
		m.conn.travelling--
		if !m.conn.gone {
			m.Enter()
		}
	}
	for _, m := range waiting {
		m.conn.releaseIfFinished()
	}
}

// receive gives a reply or push to the client.
func (w *World) receive(m *message) {
	c := m.conn
	if c.severed != nil {
		return
	}
	if m.way == faults.After {
		c.unanswered = max(0, c.unanswered-1)
	}
	w.top.Received(m)
	c.received = append(c.received, m.bytes...)
	c.note()
}

// execute executes a request on its server and sends the reply.
func (w *World) execute(m *message) {
	c, s := m.conn, m.conn.server
	m.text = w.ledger.Command(c.client.Name, m.words)
	w.emit(checker.Event{
		Kind: checker.Request, Client: c.client.Name, Node: c.node.Name, Server: s.Name,
		Command: m.text, Sent: w.at(m.sent),
	})
	w.settle(s)
	s.serving = c
	defer func() {
		s.serving = nil
		w.tellTracking(s)
	}()
	if c.transaction == nil { // inside a transaction no request blocks
		if wait := w.waiting(m); wait != nil {
			s.remember(m.words)
			w.keepWaiting(wait)
			c.seen = s.offset
			return
		}
	}
	if len(w.subscribers) > 0 {
		w.stirred = true // goroutines of the server forward a publication
	}
	s.dispatch(m)
	if c.transaction == nil && m.command != "CLIENT" {
		c.tracker.caching = false
	}
	m.did = w.observe(s, checker.ByCommand, c.client.Name, m.words)
	c.seen = s.offset
	w.answer(m)
	w.serve(s)
}

// answer sends the data that the server wrote for a request: replies, and pushes to the same
// connection.
func (w *World) answer(request *message) {
	c := request.conn
	frames, err := c.out.take()
	for _, frame := range frames {
		if resp.IsPush(frame) {
			w.send(&message{conn: c, way: faults.Messages, bytes: frame})
			continue
		}
		w.send(request.answer(frame))
	}
	if err != nil {
		c.sever(err)
	}
	switch request.command {
	case "SUBSCRIBE", "PSUBSCRIBE":
		if !c.subscribed && !c.gone {
			c.subscribed = true
			w.subscribers = append(w.subscribers, c)
		}
	}
}

// collect sends the pushes that servers have written since the last call. All goroutines must wait.
// Callers hold w.mu.
func (w *World) collect() {
	for _, c := range slices.Clone(w.subscribers) {
		frames, err := c.out.take()
		// miniredis has one goroutine for channels and one for patterns, in no defined order; Redis
		// sends messages of channels first.
		slices.SortStableFunc(frames, func(a, b []byte) int { return bytes.Compare(a[:2], b[:2]) })
		for _, frame := range frames {
			w.send(&message{conn: c, way: faults.Messages, bytes: frame})
		}
		if err != nil {
			c.sever(err)
		}
	}
}
