package real

import (
	"slices"
	"strings"
	"time"

	"github.com/lockfault/lockfault/checker"
	"github.com/lockfault/lockfault/faults"
	"github.com/lockfault/lockfault/faults/real/proxy"
	"github.com/lockfault/lockfault/internal/resp"
)

// conn is a connection of a client to a server, seen from the gate.
type conn struct {
	wire     *wire
	server   *server
	proxied  *proxy.Conn
	requests stream
	replies  stream

	awaited    *message // the request that the server has
	next       *message // the request that is let in when that is answered
	unanswered int      // requests whose reply the client doesn't have
	more       bool     // the last request was sent together with others
	closing    *timer   // that the link's timeout has set
	gone       bool
}

// stream is one direction of a connection. It keeps its order, so no message
// arrives while another is stuck, and can't leave out its middle.
type stream struct {
	coming []*message // what set out and has not arrived
	lost   bool       // a message was lost, and with it all that follow
	stuck  *message   // what waits, held or delayed, or for its turn
}

func (s *stream) knows(p *proxy.Message) bool {
	return slices.ContainsFunc(s.coming, func(m *message) bool { return m.Message == p })
}

// stream returns the stream that a message travels on.
func (c *conn) stream(p *proxy.Message) *stream {
	if p.Request {
		return &c.requests
	}
	return &c.replies
}

// message is a request, reply or push on its way.
type message struct {
	*proxy.Message
	conn    *conn
	way     faults.Way
	words   []string // of the request, or of the one that a reply answers
	command string   // its name
	text    string   // it in full, with owner values by short names
	arrived time.Time
	entered time.Time // of a request: when the server was let have it
	replies int       // of a request: how many there are yet to come
	then    *message  // of one that came before the gate was shut: the next that the server has already
}

func (m *message) stream() *stream { return m.conn.stream(m.Message) }

func (m *message) process() *process { return m.conn.wire.process() }

// tap hands what it sees on a link to the script's goroutine, once the gate is
// shut.
type tap struct {
	world *World
	wire  *wire
}

func (t tap) Opened(c *proxy.Conn) {
	t.world.inbox.put(func() { t.wire.opened(c) })
}

func (t tap) Sent(m *proxy.Message) {
	if !t.world.ajar.isShut.Load() {
		return // what is under way when it is shut is looked at when it arrives
	}
	t.world.inbox.put(func() { t.world.setOut(t.wire.conns[m.Conn], m) })
}

func (t tap) Arrived(m *proxy.Message) {
	if t.world.ajar.pass(t.wire, m) {
		return
	}
	arrived := time.Now()
	t.world.inbox.put(func() { t.world.came(t.wire.conns[m.Conn], m, arrived) })
}

func (t tap) Closed(c *proxy.Conn) {
	t.world.ajar.closed(c)
	t.world.inbox.put(func() { t.wire.closed(c) })
}

// setOut takes note of a message that its sender has written, unless that is
// known: the server is done with a request when it has written the answer,
// however long that takes to arrive.
func (w *World) setOut(c *conn, p *proxy.Message) {
	if c == nil || c.gone || c.stream(p).knows(p) {
		return
	}
	on := c.stream(p)
	on.coming = append(on.coming, w.written(c, p))
}

// came is what happens when a message comes to the gate.
func (w *World) came(c *conn, p *proxy.Message, arrived time.Time) {
	if c == nil || c.gone {
		return // reset meanwhile: there is nobody to take it
	}
	var m *message
	if on := c.stream(p); on.knows(p) {
		m, on.coming = on.coming[0], on.coming[1:]
	} else {
		m = w.written(c, p) // before the gate was shut
	}
	m.arrived = arrived
	w.arrive(m)
}

// written makes a message of what its sender has written.
func (w *World) written(c *conn, p *proxy.Message) *message {
	m := &message{Message: p, conn: c}
	switch {
	case p.Request:
		m.asks()
		if c.unanswered == 0 && !c.more {
			m.process().state.RoundTrips++
		}
		c.unanswered++
		c.more = p.More
	case resp.IsPush(p.Bytes):
		m.way = faults.Messages
	default:
		m.way = faults.After
		w.answered(m)
	}
	return m
}

// asks makes a request of the message.
func (m *message) asks() {
	m.way, m.words, m.command = faults.Before, m.Words, strings.ToUpper(m.Words[0])
	m.replies = answers(m.Words)
}

// answers returns how many replies a request gets.
func answers(words []string) int {
	switch strings.ToUpper(words[0]) {
	case "SUBSCRIBE", "PSUBSCRIBE", "SSUBSCRIBE", "UNSUBSCRIBE", "PUNSUBSCRIBE", "SUNSUBSCRIBE":
		return max(1, len(words)-1)
	}
	return 1
}

// arrive lets links and gate have their say on a message.
func (w *World) arrive(m *message) {
	c, on := m.conn, m.stream()
	if c.gone {
		return
	}
	if on.lost || c.wire.cut {
		w.lose(m)
		return
	}
	switch does, by := w.gate.Decide(faults.Message{Client: c.wire.client, Node: c.wire.node.name, Way: m.way, Command: m.command}); does {
	case faults.Holds:
		w.tellMessage(checker.Held, m)
		on.stuck = m
		w.held = append(w.held, m)
	case faults.Delays:
		on.stuck = m
		w.plan(m.arrived.Add(by), func() { w.loosen(m) })
	case faults.Drops:
		w.lose(m)
	case faults.Resets:
		w.tellMessage(checker.Dropped, m)
		m.process().state.Lost++
		m.Reset()
		c.end()
	default:
		w.enter(m)
	}
}

// loosen lets in a message that was stuck, unless its way was cut meanwhile.
func (w *World) loosen(m *message) {
	m.stream().stuck = nil
	switch {
	case m.conn.gone:
	case m.conn.wire.cut:
		w.lose(m)
	default:
		w.enter(m)
	}
}

func (w *World) lose(m *message) {
	w.tellMessage(checker.Dropped, m)
	m.process().state.Lost++
	if m.way == faults.Messages && !m.conn.wire.cut { // a server drops messages of a subscription one by one
		m.Skip()
		return
	}
	m.stream().lost = true
	m.Drop()
}

// enter lets a message in, unless the server behind the door is stopped or has
// another request in hand. The requests of a pipeline are let in one by one, as
// the server executes them: what it would do between two of them can be told
// apart, and one behind a WAIT keeps nobody else waiting.
func (w *World) enter(m *message) {
	c, s := m.conn, m.conn.server
	switch {
	case m.way != faults.Before:
		w.receive(m)
	case c.awaited != nil:
		c.next, c.requests.stuck = m, m
	case s.paused || s.busy != nil:
		s.door = append(s.door, m)
	default:
		w.execute(m)
	}
}

// open lets in what waits at a server's door, as far as it goes.
func (w *World) open(s *server) {
	for len(s.door) > 0 && !s.paused && s.busy == nil {
		m := s.door[0]
		s.door = s.door[1:]
		if !m.conn.gone {
			w.execute(m)
		}
	}
}

// receive hands a reply or push to the client.
func (w *World) receive(m *message) {
	c := m.conn
	event := checker.Event{
		Kind: checker.Push, Client: c.wire.client, Node: c.wire.node.name, Sent: w.at(m.SetOut), Command: m.text,
	}
	if m.way == faults.After {
		event.Kind = checker.Reply
		m.process().state.Replies++
		c.unanswered = max(0, c.unanswered-1)
	}
	if w.record != nil {
		event.Reply = resp.Print(m.Bytes, w.ledger.Name)
		w.tell(event)
	}
	m.Forward()
}

// execute lets the server have a request. One that doesn't block its client
// has the server to itself, so that what changes is its doing.
func (w *World) execute(m *message) {
	c, s := m.conn, m.conn.server
	w.settle(s)
	m.text = w.ledger.Command(c.wire.client, m.words)
	w.tell(checker.Event{
		Kind: checker.Request, Client: c.wire.client, Node: c.wire.node.name, Server: s.name, Command: m.text, Sent: w.at(m.SetOut),
	})
	c.awaited = m
	if !blocks(m.words) {
		s.busy = m
	}
	s.told(m.words)
	m.entered = time.Now()
	m.Forward()
}

// blocks reports whether a request may be answered only after others.
func blocks(words []string) bool {
	switch strings.ToUpper(words[0]) {
	case "WAIT", "WAITAOF", "BLPOP", "BRPOP", "BLMOVE", "BLMPOP", "BRPOPLPUSH", "BZPOPMIN", "BZPOPMAX", "BZMPOP":
		return true
	case "XREAD", "XREADGROUP":
		return slices.ContainsFunc(words, func(word string) bool { return strings.EqualFold(word, "BLOCK") })
	}
	return false
}

// changes reports whether a command may change a key. What isn't known to leave
// keys alone does.
func changes(command string) bool {
	switch command {
	case "GET", "MGET", "HGET", "HEXISTS", "HGETALL", "EXISTS", "TTL", "PTTL", "TYPE", "STRLEN",
		"PING", "ECHO", "HELLO", "AUTH", "CLIENT", "SELECT", "INFO", "ROLE", "TIME", "COMMAND", "WAIT", "WAITAOF",
		"SUBSCRIBE", "PSUBSCRIBE", "UNSUBSCRIBE", "PUNSUBSCRIBE", "PUBLISH", "MULTI", "WATCH", "UNWATCH":
		return false
	}
	return true
}

// answered takes note of a reply that the server sent, before anything is
// decided about its way back.
func (w *World) answered(m *message) {
	c := m.conn
	if c.awaited == nil {
		return // an error that a server sends before it closes a connection
	}
	request := c.awaited
	m.words, m.command, m.text = request.words, request.command, request.text
	w.must(c.server.serves(m.command, m.Bytes))
	if request.replies--; request.replies > 0 {
		return
	}
	c.awaited = request.then
	if !blocks(request.words) && !c.server.wasPaused(request.entered) {
		w.note(c.server.name, m.SetOut.Sub(request.entered)-c.server.trip())
	}
	if s := c.server; changes(request.command) && (s.busy == nil || s.busy == request) {
		w.observe(s, checker.ByCommand, c.wire.client, request.words)
	}
	w.finished(request)
}

// finished lets the next request have the server that had this one: the rest of
// a pipeline comes first.
func (w *World) finished(request *message) {
	c, s := request.conn, request.conn.server
	if s.busy == request {
		s.busy = nil
	}
	if next := c.next; next != nil {
		c.next, c.requests.stuck = nil, nil
		w.enter(next)
	}
	w.open(s)
}

// pass lets held messages of the named clients in, the one held longest first.
func (w *World) pass(p faults.Pass) {
	for _, m := range faults.Passing(w.gate, p, &w.held, func(m *message) string { return m.conn.wire.client }) {
		w.tellMessage(checker.Passed, m)
		w.loosen(m)
	}
}

func (w *World) tellMessage(kind checker.Kind, m *message) {
	if w.record == nil {
		return
	}
	text := m.text
	if m.way == faults.Before {
		text = w.ledger.Command(m.conn.wire.client, m.words)
	}
	e := checker.Event{
		Kind: kind, Client: m.conn.wire.client, Node: m.conn.wire.node.name, Direction: m.way.Direction(), Command: text, Sent: w.at(m.SetOut),
	}
	if m.way != faults.Before {
		e.Reply = resp.Print(m.Bytes, w.ledger.Name)
	}
	w.tell(e)
}
