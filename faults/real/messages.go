package real

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/lockfault/lockfault/checker"
	"github.com/lockfault/lockfault/faults"
	"github.com/lockfault/lockfault/faults/real/proxy"
	"github.com/lockfault/lockfault/faults/topology"
	"github.com/lockfault/lockfault/internal/rediscmd"
	"github.com/lockfault/lockfault/internal/resp"
)

// conn is a connection of a client to a server, as the gate sees it.
type conn struct {
	wire     *wire
	server   *server
	proxied  *proxy.Conn
	requests stream
	replies  stream

	awaited    *message   // the request that the server is executing
	next       *message   // the next request, forwarded after the answer
	asked      []*message // with a [Service]: all requests that the server has, oldest first
	given      []int      // numbers of the requests that the client has given up and the server may still have
	unanswered int        // number of requests whose reply the client waits for
	more       bool       // the last request was sent together with others
	names      []string   // values that the beginning of the connection sent
	closing    *timer     // set by the link's timeout
	gone       bool
}

// stream is one direction of a connection.
type stream struct {
	topology.Lane
	coming []*message // messages that were sent and have not arrived
}

// stream returns the stream of a message.
func (c *conn) stream(p *proxy.Message) *stream {
	if p.Request {
		return &c.requests
	}
	return &c.replies
}

// message is a request, reply or push in transit.
type message struct {
	*proxy.Message
	conn    *conn
	way     faults.Way
	words   []string      // of the request, or of the request that a reply answers
	command string        // name of the command
	text    string        // the whole command, with short names for owner values
	did     faults.Effect // the command's effect on the lock
	entered time.Time     // of a request: when it was forwarded to the server
	replies int           // of a request: how many replies are still to come
	feeders []*message    // of a waiting request: requests that were forwarded to the server since
	fed     bool          // of a request: its push to a waiting request is recorded
	opens   bool          // of a request or its reply: it belongs to the beginning or end of a connection
	idle    bool          // of a request or its reply: it can't have changed the lock's holder
	settles int           // of a reply: number of requests that the client stops waiting for
	request *message      // of a reply of a service's server: the request that it answers
}

// unsolicited is the way of messages that a [Service]'s server sends without a request, and of
// messages of the protocol itself. No gate order matches them.
const unsolicited faults.Way = ""

func (m *message) stream() *stream { return m.conn.stream(m.Message) }

func (m *message) process() *process { return m.conn.wire.process() }

// linkTap receives the messages of a link. The goroutines that carry the messages call it one at a
// time. In a closed world all messages are discarded.
type linkTap struct {
	world *World
	wire  *wire
}

// Lock waits for the world's lock, if necessary until Run is called.
func (t linkTap) Lock() { t.world.mu.take() }

func (t linkTap) Unlock() { t.world.moved() }

func (t linkTap) Opened(c *proxy.Conn) {
	if !t.world.closed {
		t.wire.opened(c)
	}
}

// Sent records a message that its sender has written. The server has finished a request when it has
// written the answer, however long that answer takes to arrive.
func (t linkTap) Sent(p *proxy.Message) {
	if c := t.wire.conns[p.Conn]; !t.world.closed && c != nil && !c.gone {
		m := t.world.written(c, p)
		m.stream().coming = append(m.stream().coming, m)
	}
}

// Between lets the script take its next step if the script has waited for a request to be sent: the
// step then affects that request.
func (t linkTap) Between() {
	if w := t.world; w.until != nil && w.until() {
		w.moved()
		w.mu.take()
	}
}

// Arrived decides on a message. A message whose connection was reset meanwhile is ignored.
func (t linkTap) Arrived(p *proxy.Message) {
	if c := t.wire.conns[p.Conn]; !t.world.closed && c != nil && !c.gone {
		on := c.stream(p)
		m := on.coming[0]
		on.coming = slices.Delete(on.coming, 0, 1)
		t.world.top.Arrive(m)
	}
}

func (t linkTap) Closed(c *proxy.Conn) {
	if !t.world.closed {
		t.wire.closed(c)
	}
}

// written returns the message for bytes that a sender has written.
func (w *World) written(c *conn, p *proxy.Message) *message {
	m := &message{Message: p, conn: c}
	c.forsake(p)
	switch {
	case p.Quiet:
		m.way = unsolicited
		c.more = c.more && p.More
	case p.Request:
		m.asks()
		if m.Silent {
			break
		}
		if c.unanswered == 0 && !c.more {
			m.process().State.RoundTrips++
		}
		c.unanswered++
		c.more = p.More
	case w.cfg.Service == nil && resp.IsPush(p.Bytes):
		m.way = faults.Messages
	case w.cfg.Service != nil && !c.reply(m):
		m.way = unsolicited
	default:
		m.way = faults.After
		w.answered(m)
	}
	return m
}

// asks fills in the message as a request.
func (m *message) asks() {
	m.way, m.words, m.command, m.opens, m.idle = faults.Before, m.Words, strings.ToUpper(m.Words[0]), m.Opens, m.Reads || m.conn.wire.world.elsewhere(m.Within)
	m.replies = rediscmd.Of(m.Words).Replies(m.Words)
}

// reply fills in a message as the reply to its request. It returns false if no request matches.
func (c *conn) reply(m *message) bool {
	at := slices.IndexFunc(c.asked, func(request *message) bool { return request.Number == m.Answers })
	if at < 0 {
		return false
	}
	request := c.asked[at]
	m.words, m.command, m.text, m.opens, m.idle, m.settles, m.request, m.did = request.words, request.command, request.text, request.opens, request.idle, 1, request, request.did
	if !m.Overtakes {
		m.settles = at + 1
		c.asked = slices.Delete(c.asked, 0, at+1) // earlier requests get no reply any more
		return true
	}
	c.asked = slices.Delete(c.asked, at, at+1)
	old := func(number int) bool { return number < request.Number } // given up, and the server has executed it by now or never will
	c.asked = slices.DeleteFunc(c.asked, func(m *message) bool { return old(m.Number) && slices.Contains(c.given, m.Number) })
	c.given = slices.DeleteFunc(c.given, old)
	return true
}

// forsake records requests that get no answer any more, or none that the client waits for.
func (c *conn) forsake(p *proxy.Message) {
	c.unanswered = max(0, c.unanswered-len(p.GivesUp))
	if p.Request {
		c.given = append(c.given, p.GivesUp...)
		return
	}
	c.asked = slices.DeleteFunc(c.asked, func(m *message) bool { return slices.Contains(p.GivesUp, m.Number) })
}

// waited returns the number of requests that the server has and that the client hasn't given up.
func (c *conn) waited() (n int) {
	for _, m := range c.asked {
		if !slices.Contains(c.given, m.Number) {
			n++
		}
	}
	return n
}

// The following methods implement [topology.Message].

func (m *message) Owner() *topology.Client { return m.process().Client }

func (m *message) About() faults.Message {
	about := faults.Message{
		Client: m.conn.wire.client, Node: m.conn.wire.node.Name, Way: m.way, Command: m.command,
		Words: m.words, Keys: m.conn.wire.world.cfg.Lock.Keys, Did: m.did,
	}
	if m.conn.wire.world.cfg.Service != nil {
		about.Service, about.Opens, about.Quiet, about.Also = true, m.opens, m.Quiet, m.words[min(1, len(m.words)):]
	}
	return about
}

func (m *message) Lane() *topology.Lane { return &m.stream().Lane }

func (m *message) Gone() bool { return m.conn.gone }

func (m *message) Said() (command, reply string, sent time.Duration) {
	w := m.conn.wire.world
	command, sent = m.text, w.at(m.SetOut)
	switch {
	case m.way == faults.Before:
		command = m.asked()
	case w.cfg.Service != nil:
		reply = joined(m.Parts, w.ledger.Statement)
	default:
		reply = resp.Print(m.Bytes, w.ledger.Name)
	}
	return command, reply, sent
}

// asked returns a request in the form that histories show.
func (m *message) asked() string {
	w, client := m.conn.wire.world, m.conn.wire.client
	switch {
	case w.cfg.Service == nil:
		return w.ledger.Command(client, m.words)
	case m.Parts == nil:
		return strings.Join(m.words, " ")
	}
	for _, p := range m.Parts {
		w.ledger.Sent(client, p.Values)
		if m.opens {
			m.conn.names = append(m.conn.names, p.Values...)
		}
	}
	return joined(m.Parts, w.ledger.Statement)
}

// joined returns parts in the form that histories show.
func joined(parts []proxy.Part, print func(text string, values []string) string) string {
	var list []string
	for _, p := range parts {
		list = append(list, print(p.Text, p.Values))
	}
	return strings.Join(list, "; ")
}

func (m *message) Discard(alone bool) {
	if alone {
		m.Skip()
	} else {
		m.Drop()
	}
}

func (m *message) Break() {
	m.Reset()
	m.conn.end()
}

func (m *message) Later(by time.Duration, do func()) { m.conn.wire.world.plan(m.Arrived.Add(by), do) }

func (m *message) Free() {} // the proxy shows the next message

// Enter forwards a message, unless the server is stopped or executes another request. The requests
// of a pipeline are forwarded one at a time, in the order in which the server executes them: the
// world can then observe the state between two of them, and a request after a WAIT delays no other
// client.
func (m *message) Enter() {
	c, s, w := m.conn, m.conn.server, m.conn.wire.world
	switch {
	case m.way != faults.Before:
		w.receive(m)
	case w.cfg.Service != nil:
		w.hand(m)
	case c.awaited != nil:
		c.next, c.requests.Stuck = m, m
	case s.Paused || s.busy != nil:
		s.door = append(s.door, m)
	default:
		w.execute(m)
	}
}

// open forwards the requests that wait for a server, as far as possible.
func (w *World) open(s *server) {
	for len(s.door) > 0 && !s.Paused && s.busy == nil {
		m := s.door[0]
		s.door = s.door[1:]
		if !m.conn.gone {
			w.execute(m)
		}
	}
}

// receive forwards a reply or push to the client.
func (w *World) receive(m *message) {
	c := m.conn
	if m.way == faults.After {
		c.unanswered = max(0, c.unanswered-max(1, m.settles))
	}
	if !m.Quiet {
		w.top.Received(m)
	}
	m.Forward()
}

// hand forwards a request to the server of a service, which executes it at any later time. The
// world doesn't observe the execution, so a request delays no other request.
func (w *World) hand(m *message) {
	m.text = m.asked()
	w.tellOf(m)
	if !m.Silent {
		m.conn.asked = append(m.conn.asked, m)
	}
	m.Forward()
}

// tellOf records that a request is forwarded to the server.
func (w *World) tellOf(m *message) {
	c := m.conn
	w.emit(checker.Event{
		Kind: checker.Request, Client: c.wire.client, Node: c.wire.node.Name, Server: c.server.Name, Command: m.text, Sent: w.at(m.SetOut), Silent: m.Silent,
	})
}

// execute forwards a request to the server. A request that doesn't block its client is the only one
// on the server, so every change is its effect.
func (w *World) execute(m *message) {
	c, s := m.conn, m.conn.server
	w.settle(s)
	m.text = w.ledger.Command(c.wire.client, m.words)
	w.tellOf(m)
	c.awaited = m
	if !blocks(m.words) {
		s.busy = m
	}
	s.observe(m.words)
	s.noteWaiters(m)
	m.entered = time.Now()
	m.Forward()
}

// blocks reports whether a request may be answered after later requests of other clients.
func blocks(words []string) bool { return rediscmd.Of(words).Blocks(words) }

// answered handles a reply that the server sent, before any decision about the reply's way back.
func (w *World) answered(m *message) {
	c := m.conn
	switch {
	case w.cfg.Service != nil: // reply has handled the rest
		m.did = cmp.Or(w.notice(c.server, m), m.did)
		return
	case c.awaited == nil:
		return // an error that a server sends before it closes a connection
	}
	request := c.awaited
	m.words, m.command, m.text = request.words, request.command, request.text
	w.must(c.server.serves(m.command, m.Bytes))
	if request.replies--; request.replies > 0 {
		return
	}
	c.awaited = nil
	w.awaited(request, m.SetOut)
	m.did = w.did(c.server, request, m.Bytes)
	w.finished(request)
}

// awaited records how long a server took to answer a request.
func (w *World) awaited(request *message, until time.Time) {
	if s := request.conn.server; !blocks(request.words) && !s.wasPaused(request.entered) {
		w.note(s.Name, s.Name+" to answer", until.Sub(request.entered)-s.trip())
	}
}

// did records how an answered request changed the lock's keys, and returns its effect.
func (w *World) did(s *server, request *message, reply []byte) faults.Effect {
	if blocks(request.words) {
		if did, took := w.served(s, request, reply); took {
			return did
		}
	}
	if did, handed := w.pushed(s, request, reply); handed {
		return did
	}
	if faults.LeavesKeys(request.command) || s.busy != nil && s.busy != request {
		return ""
	}
	// The effect of a push to a waiting request may have been recorded before.
	return cmp.Or(w.observe(s, checker.ByCommand, request.conn.wire.client, request.words), request.did)
}

// finished forwards the next request to the server after a request was answered: first the rest of
// the same pipeline, then the waiting requests.
func (w *World) finished(request *message) {
	c, s := request.conn, request.conn.server
	if s.busy == request {
		s.busy = nil
	}
	if next := c.next; next != nil {
		c.next, c.requests.Stuck = nil, nil
		next.Enter()
	}
	w.open(s)
}
