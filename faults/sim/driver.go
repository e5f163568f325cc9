package sim

import (
	"fmt"
	"io"
	"net"
	"slices"
	"strings"
	"time"

	"github.com/lockfault/lockfault/checker"
	"github.com/lockfault/lockfault/faults"
	"github.com/lockfault/lockfault/faults/topology"
)

// Apply implements [faults.World]. This world supports every fault except those between nodes,
// because its nodes are independent Redis servers.
func (w *World) Apply(f faults.Fault) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closed {
		return fmt.Errorf("sim: %q: the world is closed: %w", f, net.ErrClosed)
	}
	w.stirred = true
	if err := w.top.Apply(f); err != nil {
		return fmt.Errorf("sim: %w", err)
	}
	return nil
}

// Met implements [faults.World].
func (w *World) Met() []int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.top.Gate.MatchCounts()
}

// driver implements [topology.Driver]. Its methods are called with World.mu held.
type driver struct{ *World }

var _ topology.Driver = driver{}

func (h driver) Record(e checker.Event) { h.emit(e) }

func (h driver) Records() bool { return h.record != nil }

func (h driver) StopClient(*topology.Client) error { return nil } // Read, Write and Enter check the pause

func (h driver) ContinueClient(of *topology.Client) error {
	c := h.process(of.Name)
	h.free(c)
	for _, conn := range slices.Clone(c.conns) {
		if len(conn.partial) > 0 {
			_ = conn.sendWritten() // an error has severed the connection
		}
	}
	h.open(&c.door)
	return nil
}

// free unblocks the goroutines that wait for the end of a pause.
func (w *World) free(c *client) {
	close(c.freed)
	c.freed = make(chan struct{})
	for _, conn := range w.readers.waking {
		if conn.client == c {
			conn.linger()
		}
	}
}

// EndClient ends a process. As its operating system would, EndClient closes the connections; data
// that the process had written is still on its way.
func (h driver) EndClient(of *topology.Client) error {
	c := h.process(of.Name)
	c.dead = true
	h.free(c)
	c.door = nil
	for _, conn := range slices.Clone(c.conns) {
		conn.hangUp()
	}
	return nil
}

// ReviveClient starts a new life of a client's process. Goroutines that are blocked in the previous
// life stay blocked until Close, because a dead process does nothing.
func (h driver) ReviveClient(of *topology.Client) error {
	h.former = append(h.former, h.clients[of.Name])
	h.clients[of.Name] = newClient(of)
	return nil
}

func (h driver) Reshape(links []topology.Link) error {
	changed := map[topology.Link]bool{}
	for _, on := range links {
		changed[on] = true
	}
	arriving := h.schedule.take(func(it *item) bool {
		return it.travels && changed[topology.Link{Client: it.rank.who, Node: it.rank.where}]
	})
	for on := range changed {
		for _, conn := range h.conns(on) {
			for _, way := range []*stream{&conn.toServer, &conn.toClient} {
				way.Line, way.last = topology.Line{}, time.Now()
			}
		}
	}
	for _, it := range arriving {
		it.run()
	}
	return nil
}

// Cut schedules the close of connections after the link's timeout. The topology loses the messages
// that arrive on the links.
func (h driver) Cut(links []topology.Link) {
	for _, on := range links {
		for _, conn := range h.conns(on) {
			h.closeAfter(conn, h.top.Links.On(on).Closes)
		}
	}
}

// Mend resets the connections that lost data. Such a connection is unusable, and its ends detect
// this as soon as they can communicate again.
func (h driver) Mend(links []topology.Link) {
	for _, on := range links {
		for _, conn := range h.conns(on) {
			h.closeAfter(conn, 0)
			if conn.toServer.Lost || conn.toClient.Lost {
				conn.sever(errReset)
			}
		}
	}
}

func (h driver) CutNodes([]topology.Pair) error { return nil } // never called: there are no Peers

func (h driver) MendNodes([]topology.Pair) error { return nil }

func (h driver) Lead(n *topology.Node) error {
	for _, s := range n.Servers {
		for _, conn := range slices.Clone(h.of(s).conns) {
			if !conn.fixed && n.For(conn.client.Name) != s {
				conn.sever(errReset)
			}
		}
	}
	return nil
}

func (h driver) Settle(s *topology.Server) { h.settle(h.of(s)) }

func (h driver) Observe(s *topology.Server, cause checker.Cause) { h.observe(h.of(s), cause, "", nil) }

func (h driver) Kill(of *topology.Server) error {
	s := h.of(of)
	s.crash()
	s.disconnect()
	s.in.whole = true
	for _, f := range h.followers(s) {
		f.in.connected, f.in.acked, f.in.whole = false, 0, true
	}
	return nil
}

// crash resets the connections of clients and discards the requests that wait on the server.
func (s *redis) crash() {
	s.door = nil
	for _, conn := range slices.Clone(s.conns) {
		conn.sever(errReset)
	}
	s.waiters = nil
}

func (h driver) Start(of *topology.Server, empty bool) error {
	s := h.of(of)
	s.operate("SCRIPT", "FLUSH") // a server keeps scripts only in memory
	h.wakes(s)
	if empty {
		s.mini.FlushAll() // a replica refuses the command FLUSHALL
	}
	if of.Leader != nil {
		s.in.applied = 0 // the offset that Redis reports until the replica has connected
		return h.Follow(of)
	}
	s.known = s.records()
	return nil
}

func (h driver) Stop(*topology.Server) error { return nil } // Enter checks the pause

func (h driver) Continue(of *topology.Server) error {
	s := h.of(of)
	h.wakes(s)
	h.serve(s)
	h.open(&s.door)
	door := s.in.door
	s.in.door = nil
	for _, e := range door {
		h.take(s, e)
	}
	h.connect(s)
	for _, f := range h.followers(s) {
		h.connect(f)
	}
	return nil
}

// wakes handles expiries that came due while the server was stopped or down, when keys do not
// expire.
func (w *World) wakes(s *redis) {
	if s.overdue {
		s.overdue = false
		w.expire(s)
	}
	if s.tracking.overdue {
		s.tracking.overdue = false
		w.lookTracked(s)
	}
}

func (h driver) Elect(_ *topology.Node, among []*topology.Server) (*topology.Server, error) {
	best := among[0]
	for _, s := range among {
		if h.of(s).in.applied > h.of(best).in.applied {
			best = s
		}
	}
	return best, nil
}

func (h driver) Promote(of *topology.Server) error {
	s := h.of(of)
	s.disconnect()
	s.offset = max(s.offset, s.in.applied)
	s.known, s.in = s.records(), feed{session: s.in.session, applied: s.offset}
	return nil
}

func (h driver) Follow(of *topology.Server) error {
	f := h.of(of)
	f.disconnect()
	if f.known != nil { // the server was a primary
		f.known, f.in.whole = nil, true
	}
	f.in.another = f.in.another || f.in.of != of.Leader
	f.in.of = of.Leader
	f.in.shape = of.Leader.Stream
	h.connect(f)
	return nil
}

func (h driver) Shape(of *topology.Server) error {
	f := h.of(of)
	was, is := f.in.shape, of.Leader.Stream
	f.in.shape = is
	f.in.abort() // the handshake restarts with the new settings
	if was.Timeout != is.Timeout && is.Timeout > 0 {
		f.lose()
		session := f.in.session
		h.plan(time.Now().Add(is.Timeout), rank{who: servers + f.Name, what: "timeout"}, func() {
			if f.in.session == session {
				f.in.connected = false
			}
		})
	}
	if was.Road() != is.Road() {
		h.hasten(f)
	}
	if is.Passes() {
		waiting := f.in.waiting
		f.in.waiting = nil
		for _, e := range waiting {
			h.ship(f, e)
		}
		h.connect(f)
	}
	return nil
}

func (h driver) SetClock(s *topology.Server, was topology.Clock) error {
	h.of(s).move(was)
	h.lookTracked(h.of(s))
	return nil
}

func (h driver) LimitMemory(*topology.Server) error { return nil } // dispatch checks Full

func (h driver) Operate(of *topology.Server, cause checker.Cause, words ...string) error {
	s := h.of(of)
	if answer := s.operate(words...); strings.HasPrefix(answer, "-") {
		return fmt.Errorf("%s of an operator: %s", words[0], strings.TrimSpace(answer[1:]))
	}
	h.tellTracking(s)
	if cause != "" {
		h.observe(s, cause, "", nil)
	}
	return nil
}

// conns returns the connections of a link that are open at the client's end.
func (w *World) conns(on topology.Link) []*conn {
	c := w.clients[on.Client]
	if c == nil {
		return nil
	}
	return slices.DeleteFunc(slices.Clone(c.conns), func(conn *conn) bool { return conn.node.Name != on.Node })
}

// closeAfter schedules the close of a connection. If after is 0, it cancels a scheduled close.
func (w *World) closeAfter(c *conn, after time.Duration) {
	if after == 0 {
		c.closes = time.Time{}
		return
	}
	c.closes = time.Now().Add(after)
	on := c.link()
	w.plan(c.closes, rank{who: on.Client, where: on.Node, what: "timeout"}, func() {
		// Close all connections that are due together, because connections have no order.
		for _, conn := range w.conns(on) {
			if !conn.closes.IsZero() && !conn.closes.After(time.Now()) {
				conn.sever(io.EOF)
			}
		}
	})
}

// arrives returns when data of size bytes arrives that is sent at from. See
// [topology.Links.Arrives].
func (w *World) arrives(road topology.LinkState, on *topology.Line, d topology.JitterKey, from time.Time, size int) time.Time {
	d.Sent = from.Sub(w.began)
	return w.top.Links.Arrives(road, on, d, from, size)
}
