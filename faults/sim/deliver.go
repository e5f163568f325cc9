package sim

import (
	"slices"
	"time"

	"github.com/lockfault/lockfault/checker"
	"github.com/lockfault/lockfault/faults"
	"github.com/lockfault/lockfault/internal/resp"
)

// arrive is what happens when a message reaches the door it was sent to: links
// and gate have their say before it goes in. Callers hold w.mu.
func (w *World) arrive(m *message) {
	c := m.conn
	if c.gone || m.way != faults.Before && c.severed != nil {
		return // nobody is there to take it
	}
	if w.links.cut[link{c.client.name, c.node.name}] || m.lost() {
		w.lose(m)
		return
	}
	if m.delayed {
		w.enter(m)
		return
	}
	switch does, by := w.gate.Decide(m.gate()); does {
	case faults.Holds:
		w.tellMessage(checker.Held, m)
		w.held = append(w.held, m)
	case faults.Delays:
		m.delayed = true
		w.postpone(m, by)
	case faults.Drops:
		w.lose(m)
	case faults.Resets:
		w.tellMessage(checker.Dropped, m)
		c.client.state.Lost++
		c.sever(errReset)
	default:
		w.enter(m)
	}
}

// postpone lets a message, and with it what its connection carries behind it,
// arrive later.
func (w *World) postpone(m *message, by time.Duration) {
	c := m.conn
	due := time.Now().Add(by)
	last := &c.lastToClient
	if m.way == faults.Before {
		last = &c.lastToServer
	}
	if due.After(*last) {
		*last = due
	}
	c.travelling++
	w.plan(due, m.rank(), func() {
		c.travelling--
		w.arrive(m)
	})
}

// lost reports whether something before it on its way was lost. Messages of a
// subscription are not part of that: a server drops them one by one.
func (m *message) lost() bool {
	if m.way == faults.Before {
		return m.conn.lostToServer
	}
	return m.conn.lostToClient
}

func (w *World) lose(m *message) {
	w.tellMessage(checker.Dropped, m)
	m.conn.client.state.Lost++
	switch m.way {
	case faults.Before:
		m.conn.lostToServer = true
	case faults.After:
		m.conn.lostToClient = true
	}
}

// enter lets a message in, unless whoever is behind the door is stopped.
func (w *World) enter(m *message) {
	c := m.conn
	switch {
	case m.way == faults.Before && c.server.paused:
		c.server.door = append(c.server.door, m)
		c.travelling++
	case m.way == faults.Before:
		w.execute(m)
	case c.client.state.Paused:
		c.client.door = append(c.client.door, m)
		c.travelling++
	case c.client.state.Crashed:
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
}

// receive hands a reply or push to the client.
func (w *World) receive(m *message) {
	c := m.conn
	if c.severed != nil {
		return
	}
	event := checker.Event{
		Kind: checker.Push, Client: c.client.name, Node: c.node.name, Sent: m.sent, Command: m.text,
	}
	if m.way == faults.After {
		event.Kind = checker.Reply
		c.client.state.Replies++
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
	c := m.conn
	m.text = w.ledger.Command(c.client.name, m.words)
	w.tell(checker.Event{
		Kind: checker.Request, Client: c.client.name, Node: c.node.name, Server: c.server.name,
		Command: m.text, Sent: m.sent,
	})
	if m.command == "WAIT" {
		w.waitForReplicas(m)
		return
	}
	if len(w.async) > 0 || waits(m.command) {
		w.stirred = true // a publication is passed on by goroutines of the server
	}
	c.server.dispatch(m)
	w.observe(c.server, checker.ByCommand, c.client.name, m.words)
	w.answer(m)
}

// answer sends what the server wrote: replies, and messages to subscribers.
func (w *World) answer(request *message) {
	c := request.conn
	frames, err := c.out.take()
	for _, frame := range frames {
		reply := &message{conn: c, way: faults.After, command: request.command, text: request.text, bytes: frame}
		if resp.IsPush(frame) {
			reply.way, reply.command, reply.text = faults.Messages, "", ""
		}
		w.send(reply)
	}
	if err != nil {
		c.sever(err)
	}
	if len(frames) == 0 && err == nil && !c.async {
		// The server keeps the client waiting: the answer comes on its own.
		c.async = true
		w.async = append(w.async, c)
		c.requests = append(c.requests, request)
	}
	switch request.command {
	case "SUBSCRIBE", "PSUBSCRIBE":
		if !c.async {
			c.async = true
			w.async = append(w.async, c)
		}
	}
}

// collect sends what servers said unasked since the last time. It must be
// called when all goroutines wait. Callers hold w.mu.
func (w *World) collect() {
	if len(w.async) == 0 {
		return
	}
	for _, c := range slices.Clone(w.async) {
		frames, err := c.out.take()
		for _, frame := range frames {
			m := &message{conn: c, way: faults.Messages, bytes: frame}
			if !resp.IsPush(frame) && len(c.requests) > 0 {
				request := c.requests[0]
				c.requests = c.requests[1:]
				m.way, m.command, m.text = faults.After, request.command, request.text
				w.observe(c.server, checker.ByCommand, c.client.name, request.words)
			}
			w.send(m)
		}
		if err != nil {
			c.sever(err)
		}
	}
}

// pass lets held messages of the named clients in, the one held longest first.
func (w *World) pass(p faults.Pass) {
	if !p.Once {
		w.gate.EndHolds(p.Clients)
	}
	var passing []*message
	w.held = slices.DeleteFunc(w.held, func(m *message) bool {
		if !slices.Contains(p.Clients, m.conn.client.name) || p.Once && len(passing) > 0 {
			return false
		}
		passing = append(passing, m)
		return true
	})
	for _, m := range passing {
		w.tellMessage(checker.Passed, m)
		if !m.conn.gone {
			w.enter(m)
		}
	}
}

func (w *World) tellMessage(kind checker.Kind, m *message) {
	if w.record == nil {
		return
	}
	text := m.text
	if m.way == faults.Before {
		text = w.ledger.Command(m.conn.client.name, m.words)
	}
	direction := map[faults.Way]string{faults.Before: "request", faults.After: "reply", faults.Messages: "push"}[m.way]
	e := checker.Event{
		Kind: kind, Client: m.conn.client.name, Node: m.conn.node.name, Direction: direction,
		Command: text, Sent: m.sent,
	}
	if m.bytes != nil {
		e.Reply = resp.Print(m.bytes, w.ledger.Name)
	}
	w.tell(e)
}
