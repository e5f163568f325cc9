package sim

import (
	"bytes"
	"slices"
	"time"

	"github.com/lockfault/lockfault/checker"
	"github.com/lockfault/lockfault/faults"
	"github.com/lockfault/lockfault/internal/resp"
)

// arrive is what happens when a message reaches the door it was sent to: links
// and gate have their say before it goes in. Callers hold w.mu.
func (w *World) arrive(m *message) {
	c, on := m.conn, m.stream()
	if c.gone || m.way != faults.Before && c.severed != nil {
		return // nobody is there to take it
	}
	if m.arrived.IsZero() {
		m.arrived = time.Now()
	}
	if on.stuck != nil {
		on.behind = append(on.behind, m)
		c.travelling++
		return
	}
	if w.top.Links.On(c.link()).Cut {
		on.lost = true
	}
	if on.lost {
		w.lose(m)
		return
	}
	switch does, by := w.top.Gate.Decide(m.gate()); does {
	case faults.Holds:
		w.tellMessage(checker.Held, m)
		on.stuck = m
		w.held = append(w.held, m)
	case faults.Delays:
		on.stuck = m
		c.travelling++
		w.plan(m.arrived.Add(by), m.rank(), func() {
			c.travelling--
			w.loosen(m)
		})
	case faults.Drops:
		w.lose(m)
	case faults.Resets:
		w.tellMessage(checker.Dropped, m)
		c.client.State.Lost++
		c.sever(errReset)
	default:
		w.enter(m)
	}
}

// loosen lets in a message that was stuck, unless its way was cut meanwhile,
// and then what waited behind it.
func (w *World) loosen(m *message) {
	c, on := m.conn, m.stream()
	on.stuck = nil
	switch {
	case c.gone || m.way != faults.Before && c.severed != nil:
	case w.top.Links.On(c.link()).Cut:
		on.lost = true
		w.lose(m)
	default:
		w.enter(m)
	}
	behind := on.behind
	on.behind = nil
	for _, next := range behind {
		c.travelling--
		w.arrive(next)
	}
	c.releaseIfFinished()
}

func (w *World) lose(m *message) {
	w.tellMessage(checker.Dropped, m)
	m.conn.client.State.Lost++
	if m.way != faults.Messages { // a server drops messages of a subscription one by one
		m.stream().lost = true
	}
}

// enter lets a message in, unless whoever is behind the door is stopped.
func (w *World) enter(m *message) {
	c := m.conn
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

// open lets in what waits at a door.
func (w *World) open(door *[]*message) {
	waiting := *door
	*door = nil
	for _, m := range waiting {
		m.conn.travelling--
		if !m.conn.gone {
			w.enter(m)
		}
	}
	for _, m := range waiting {
		m.conn.releaseIfFinished()
	}
}

// receive hands a reply or push to the client.
func (w *World) receive(m *message) {
	c := m.conn
	if c.severed != nil {
		return
	}
	event := checker.Event{
		Kind: checker.Push, Client: c.client.Name, Node: c.node.Name, Sent: w.at(m.sent), Command: m.text,
	}
	if m.way == faults.After {
		event.Kind = checker.Reply
		c.client.State.Replies++
		c.unanswered = max(0, c.unanswered-1)
	}
	if w.record != nil {
		event.Reply = resp.Print(m.bytes, w.ledger.Name)
		w.tell(event)
	}
	c.received = append(c.received, m.bytes...)
	c.note()
}

// execute lets the server do what the request asks, and sends the answer.
func (w *World) execute(m *message) {
	c, s := m.conn, m.conn.server
	m.text = w.ledger.Command(c.client.Name, m.words)
	w.tell(checker.Event{
		Kind: checker.Request, Client: c.client.Name, Node: c.node.Name, Server: s.Name,
		Command: m.text, Sent: w.at(m.sent),
	})
	w.settle(s)
	if c.transaction == nil { // in a transaction nothing waits
		if wait := w.waiting(m); wait != nil {
			w.keepWaiting(wait)
			c.seen = s.offset
			return
		}
	}
	if len(w.subscribers) > 0 {
		w.stirred = true // a publication is passed on by goroutines of the server
	}
	s.dispatch(m)
	w.observe(s, checker.ByCommand, c.client.Name, m.words)
	c.seen = s.offset
	w.answer(m)
	w.serve(s)
}

// answer sends what the server wrote: replies, and messages to subscribers.
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

// collect sends what servers said unasked since the last time. It must be
// called when all goroutines wait. Callers hold w.mu.
func (w *World) collect() {
	for _, c := range slices.Clone(w.subscribers) {
		frames, err := c.out.take()
		// miniredis has one goroutine for channels and one for patterns, in
		// no order; Redis tells channels first.
		slices.SortStableFunc(frames, func(a, b []byte) int { return bytes.Compare(a[:2], b[:2]) })
		for _, frame := range frames {
			w.send(&message{conn: c, way: faults.Messages, bytes: frame})
		}
		if err != nil {
			c.sever(err)
		}
	}
}

func (w *World) tellMessage(kind checker.Kind, m *message) {
	if w.record == nil {
		return
	}
	text := m.text
	if m.way == faults.Before {
		text = w.ledger.Command(m.conn.client.Name, m.words)
	}
	e := checker.Event{
		Kind: kind, Client: m.conn.client.Name, Node: m.conn.node.Name, Direction: m.way.Direction(),
		Command: text, Sent: w.at(m.sent),
	}
	if m.bytes != nil {
		e.Reply = resp.Print(m.bytes, w.ledger.Name)
	}
	w.tell(e)
}
