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
	"github.com/lockfault/lockfault/internal/resp"
)

// conn is a connection of a client to a server, seen from the gate.
type conn struct {
	wire     *wire
	server   *server
	proxied  *proxy.Conn
	requests stream
	replies  stream

	awaited    *message   // the request that the server has
	next       *message   // the request that is let in when that is answered
	asked      []*message // of a [Service]: all that it has, oldest first
	given      []int      // the numbers of requests that the client has given up, and the server may have nevertheless
	unanswered int        // requests whose reply the client doesn't have, and waits for
	more       bool       // the last request was sent together with others
	names      []string   // what its beginning said of the client
	closing    *timer     // that the link's timeout has set
	gone       bool
}

// stream is one direction of a connection.
type stream struct {
	topology.Lane
	coming []*message // what set out and has not arrived
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
	words   []string      // of the request, or of the one that a reply answers
	command string        // its name
	text    string        // it in full, with owner values by short names
	did     faults.Effect // what that did with the lock
	entered time.Time     // of a request: when the server was let have it
	replies int           // of a request: how many there are yet to come
	feeders []*message    // of one that waits: what the server was let have since
	fed     bool          // of a request: what it gave to one that waited is told
	opens   bool          // of a request or its reply: it belongs to a connection's beginning or end
	idle    bool          // of both: it can't have changed whose the lock is
	settles int           // of a reply: after how many requests the client doesn't wait any more
	request *message      // of a reply of a service's server: what it answers
}

// unsolicited is the way of what a [Service]'s server says without having been asked, and of what is its protocol's own affair. No order is about that.
const unsolicited faults.Way = ""

func (m *message) stream() *stream { return m.conn.stream(m.Message) }

func (m *message) process() *process { return m.conn.wire.process() }

// linkTap is what sees the messages of a link. They come on the goroutines that carry
// them, who take turns; in a world that has closed they go nowhere.
type linkTap struct {
	world *World
	wire  *wire
}

// Lock waits for a turn: until Run is called, if need be.
func (t linkTap) Lock() { t.world.mu.take() }

func (t linkTap) Unlock() { t.world.moved() }

func (t linkTap) Opened(c *proxy.Conn) {
	if !t.world.closed {
		t.wire.opened(c)
	}
}

// Sent takes note of a message that its sender has written: the server is done
// with a request when it has written the answer, however long that takes to
// arrive.
func (t linkTap) Sent(p *proxy.Message) {
	if c := t.wire.conns[p.Conn]; !t.world.closed && c != nil && !c.gone {
		m := t.world.written(c, p)
		m.stream().coming = append(m.stream().coming, m)
	}
}

// Between lets the script take its next step if it has waited for a request to
// set out: what it does then befalls that request.
func (t linkTap) Between() {
	if w := t.world; w.until != nil && w.until() {
		w.moved()
		w.mu.take()
	}
}

// Arrived decides on a message. One whose connection was reset meanwhile has
// nobody to take it.
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

// written makes a message of what its sender has written.
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

// asks makes a request of the message.
func (m *message) asks() {
	m.way, m.words, m.command, m.opens, m.idle = faults.Before, m.Words, strings.ToUpper(m.Words[0]), m.Opens, m.Reads || m.conn.wire.world.elsewhere(m.Within)
	m.replies = answers(m.Words)
}

// reply makes a message the reply to the request that it answers; false if there is none.
func (c *conn) reply(m *message) bool {
	at := slices.IndexFunc(c.asked, func(request *message) bool { return request.Number == m.Answers })
	if at < 0 {
		return false
	}
	request := c.asked[at]
	m.words, m.command, m.text, m.opens, m.idle, m.settles, m.request, m.did = request.words, request.command, request.text, request.opens, request.idle, 1, request, request.did
	if !m.Overtakes {
		m.settles = at + 1
		c.asked = slices.Delete(c.asked, 0, at+1) // those before it get none any more
		return true
	}
	c.asked = slices.Delete(c.asked, at, at+1)
	old := func(number int) bool { return number < request.Number } // given up, and by now the server has done it, or never will
	c.asked = slices.DeleteFunc(c.asked, func(m *message) bool { return old(m.Number) && slices.Contains(c.given, m.Number) })
	c.given = slices.DeleteFunc(c.given, old)
	return true
}

// forsake takes note of requests that get no answer any more, or none that anybody waits for.
func (c *conn) forsake(p *proxy.Message) {
	c.unanswered = max(0, c.unanswered-len(p.GivesUp))
	if p.Request {
		c.given = append(c.given, p.GivesUp...)
		return
	}
	c.asked = slices.DeleteFunc(c.asked, func(m *message) bool { return slices.Contains(p.GivesUp, m.Number) })
}

// waited returns how many requests the server has that the client hasn't given up.
func (c *conn) waited() (n int) {
	for _, m := range c.asked {
		if !slices.Contains(c.given, m.Number) {
			n++
		}
	}
	return n
}

// answers returns how many replies a request gets.
func answers(words []string) int {
	switch strings.ToUpper(words[0]) {
	case "SUBSCRIBE", "PSUBSCRIBE", "SSUBSCRIBE", "UNSUBSCRIBE", "PUNSUBSCRIBE", "SUNSUBSCRIBE":
		return max(1, len(words)-1)
	}
	return 1
}

// The following implement [topology.Message].

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

// asked returns a request as histories have it.
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

// joined returns parts as histories have them.
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

func (m *message) Free() {} // the proxy shows the next one

// Enter lets a message in, unless the server behind the door is stopped or has
// another request in hand. The requests of a pipeline are let in one by one, as
// the server executes them: what it would do between two of them can be told
// apart, and one behind a WAIT keeps nobody else waiting.
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

// open lets in what waits at a server's door, as far as it goes.
func (w *World) open(s *server) {
	for len(s.door) > 0 && !s.Paused && s.busy == nil {
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
	if m.way == faults.After {
		c.unanswered = max(0, c.unanswered-max(1, m.settles))
	}
	if !m.Quiet {
		w.top.Received(m)
	}
	m.Forward()
}

// hand lets the server of a service have a request, which it takes when it gets to it. Nobody looks at what it does there, so
// it keeps nobody waiting.
func (w *World) hand(m *message) {
	m.text = m.asked()
	w.tellOf(m)
	if !m.Silent {
		m.conn.asked = append(m.conn.asked, m)
	}
	m.Forward()
}

// tellOf records that the server is let have a request.
func (w *World) tellOf(m *message) {
	c := m.conn
	w.emit(checker.Event{
		Kind: checker.Request, Client: c.wire.client, Node: c.wire.node.Name, Server: c.server.Name, Command: m.text, Sent: w.at(m.SetOut), Silent: m.Silent,
	})
}

// execute lets the server have a request. One that doesn't block its client
// has the server to itself, so that what changes is its doing.
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

// answered takes note of a reply that the server sent, before anything is
// decided about its way back.
func (w *World) answered(m *message) {
	c := m.conn
	switch {
	case w.cfg.Service != nil: // reply has done the rest
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

// awaited notes how long a server was waited for to answer a request.
func (w *World) awaited(request *message, until time.Time) {
	if s := request.conn.server; !blocks(request.words) && !s.wasPaused(request.entered) {
		w.note(s.Name, s.Name+" to answer", until.Sub(request.entered)-s.trip())
	}
}

// did records how a request that was answered changed the lock's keys, and returns
// what it did by that.
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
	// What it gave to somebody who waited may have been told before.
	return cmp.Or(w.observe(s, checker.ByCommand, request.conn.wire.client, request.words), request.did)
}

// finished lets the next request have the server that had this one: the rest of
// a pipeline comes first.
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
