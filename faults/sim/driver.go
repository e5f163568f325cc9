package sim

import (
	"fmt"
	"io"
	"net"
	"slices"
	"time"

	"github.com/lockfault/lockfault/checker"
	"github.com/lockfault/lockfault/faults"
	"github.com/lockfault/lockfault/faults/topology"
)

// Apply implements [faults.World]. Every fault there is can be done here, but those between nodes: they are
// Redis servers, which don't talk to one another.
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

// driver carry out what the topology decides. Their methods are called with
// World.mu held.
type driver struct{ *World }

var _ topology.Driver = driver{}

func (h driver) Record(e checker.Event) { h.emit(e) }

func (h driver) Records() bool { return h.record != nil }

func (h driver) StopClient(*topology.Client) error { return nil } // its reads, writes and door look

func (h driver) ContinueClient(of *topology.Client) error {
	c := h.process(of.Name)
	h.free(c)
	for _, conn := range slices.Clone(c.conns) {
		if len(conn.partial) > 0 {
			_ = conn.sendWritten() // the connection is severed then
		}
	}
	h.open(&c.door)
	return nil
}

// free sets those free who waited for the end of a pause.
func (w *World) free(c *client) {
	close(c.freed)
	c.freed = make(chan struct{})
	for _, conn := range w.readers.waking {
		if conn.client == c {
			conn.linger()
		}
	}
}

// EndClient ends a process. Its operating system closes the connections; what
// it had written is still on its way.
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

// ReviveClient leaves whoever is blocked in the former life there: a dead
// process does nothing.
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

// Cut has connections close when the link's timeout says so; arrive loses what
// is sent.
func (h driver) Cut(links []topology.Link) {
	for _, on := range links {
		for _, conn := range h.conns(on) {
			h.closeAfter(conn, h.top.Links.On(on).Closes)
		}
	}
}

// Mend resets connections that lost something: they are of no use any more, and
// their ends find that out now that they can talk again.
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

func (h driver) CutNodes([]topology.Pair) error { return nil } // there are no Peers

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

// crash ends the connections of clients.
func (s *redis) crash() {
	s.door = nil
	for _, conn := range slices.Clone(s.conns) {
		conn.sever(errReset)
	}
	s.waiters = nil
}

func (h driver) Start(of *topology.Server, empty bool) error {
	s := h.of(of)
	s.operate("SCRIPT", "FLUSH") // a server keeps scripts in memory only
	h.wakes(s)
	if empty {
		s.mini.FlushAll() // a replica heeds no FLUSHALL
	}
	if of.Leader != nil {
		s.in.applied = 0 // as Redis says until it has connected
		return h.Follow(of)
	}
	s.known = s.records()
	return nil
}

func (h driver) Stop(*topology.Server) error { return nil } // its door looks

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

// wakes sees to what a server missed while it was stopped or down: nothing
// expires there.
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
	if f.known != nil { // it was a primary itself
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
	f.in.abort() // it begins anew as things are now
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

func (h driver) Operate(of *topology.Server, cause checker.Cause, words ...string) error {
	s := h.of(of)
	s.operate(words...)
	h.tellTracking(s)
	if cause != "" {
		h.observe(s, cause, "", nil)
	}
	return nil
}

func (h driver) Evict(s *topology.Server) error {
	return h.Operate(s, checker.ByEviction, "DEL", h.cfg.Lock.Keys[0])
}

// conns returns the connections of a link that their client has not given up.
func (w *World) conns(on topology.Link) []*conn {
	c := w.clients[on.Client]
	if c == nil {
		return nil
	}
	return slices.DeleteFunc(slices.Clone(c.conns), func(conn *conn) bool { return conn.node.Name != on.Node })
}

// closeAfter closes a connection after that time, or not at all if it is none.
func (w *World) closeAfter(c *conn, after time.Duration) {
	if after == 0 {
		c.closes = time.Time{}
		return
	}
	c.closes = time.Now().Add(after)
	on := c.link()
	w.plan(c.closes, rank{who: on.Client, where: on.Node, what: "timeout"}, func() {
		// All whose time has come, in one go: connections have no order.
		for _, conn := range w.conns(on) {
			if !conn.closes.IsZero() && !conn.closes.After(time.Now()) {
				conn.sever(io.EOF)
			}
		}
	})
}

// arrives returns when something arrives that sets out then: see [topology.Links].
func (w *World) arrives(road topology.LinkState, on *topology.Line, d topology.JitterKey, from time.Time, size int) time.Time {
	d.Sent = from.Sub(w.began)
	return w.top.Links.Arrives(road, on, d, from, size)
}
