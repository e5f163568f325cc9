package sim

import (
	"fmt"
	"io"
	"maps"
	"net"
	"slices"
	"time"

	"github.com/lockfault/lockfault/checker"
	"github.com/lockfault/lockfault/faults"
)

// Apply implements [faults.World]. Every fault there is can be done here.
func (w *World) Apply(f faults.Fault) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closed {
		return fmt.Errorf("sim: %q: the world is closed: %w", f, net.ErrClosed)
	}
	w.stirred = true
	if w.gate.Order(f, w.cfg.TTL) {
		w.fault(f, "", "")
		return nil
	}
	switch f := f.(type) {
	case faults.Pass:
		w.fault(f, "", "")
		w.pass(f)
	case faults.Clear:
		w.fault(f, "", "")
		w.gate.Clear(f.Clients)
	case faults.PauseClient, faults.ResumeClient, faults.CrashClient, faults.RestartClient, faults.ClientClock:
		return w.applyToClient(f, w.process(faults.ClientOf(f)))
	case faults.Latency:
		w.fault(f, "", "")
		w.change(f.Clients, f.Nodes, func(on link) {
			w.links.latency[on] = latency{f.Base.Of(w.cfg.TTL), f.Jitter.Of(w.cfg.TTL)}
		})
	case faults.Bandwidth:
		w.fault(f, "", "")
		w.change(f.Clients, f.Nodes, func(on link) { w.links.bandwidth[on] = f.Rate.PerSecond(w.cfg.TTL) })
	case faults.Partition:
		w.fault(f, "", "")
		w.eachLink(f.Clients, f.Nodes, func(on link) { w.cut(on, 0) })
	case faults.Timeout:
		w.fault(f, "", "")
		w.eachLink(f.Clients, f.Nodes, func(on link) { w.cut(on, f.After.Of(w.cfg.TTL)) })
	case faults.Heal:
		w.fault(f, "", "")
		w.eachLink(f.Clients, f.Nodes, w.heal)
	default:
		n := w.node(faults.ResolveNodes([]string{faults.NodeOf(f)}, w.cfg.Nodes)[0])
		if n == nil {
			return fmt.Errorf("sim: %q: there is no such node among %d", f, w.cfg.Nodes)
		}
		w.settle(n.primary)
		w.fault(f, "", n.name)
		return w.applyToNode(f, n)
	}
	return nil
}

func (w *World) fault(f faults.Fault, client, node string) {
	w.tell(checker.Event{Kind: checker.Fault, Client: client, Node: node, Text: f.String()})
}

func (w *World) applyToClient(f faults.Fault, c *client) error {
	tell := func(kind checker.Kind) { w.tell(checker.Event{Kind: kind, Client: c.name}) }
	switch f := f.(type) {
	case faults.PauseClient:
		if c.state.Paused || c.state.Crashed {
			return nil
		}
		tell(checker.Pause)
		c.state.Paused, c.since = true, time.Now()
	case faults.ResumeClient:
		if !c.state.Paused {
			return nil
		}
		tell(checker.Resume)
		w.resume(c)
	case faults.CrashClient:
		if c.state.Crashed {
			return nil
		}
		tell(checker.Crash)
		c.state.Crashed = true
		if c.state.Paused {
			w.resume(c)
		}
		// The process is gone, its operating system closes the connections;
		// what it had written is still on its way.
		for _, conn := range slices.Clone(c.conns) {
			conn.hangUp()
		}
	case faults.RestartClient:
		if !c.state.Crashed {
			return nil
		}
		tell(checker.Restart)
		w.former = append(w.former, c) // whoever is blocked in it stays so: a dead process does nothing
		next := newClient(c.name)
		next.skew = c.skew
		next.state.Lost, next.state.Replies = c.state.Lost, c.state.Replies
		next.state.RoundTrips, next.state.PausedFor = c.state.RoundTrips, c.state.PausedFor
		w.clients[c.name] = next
	case faults.ClientClock:
		w.fault(f, c.name, "")
		c.skew += f.By.Of(w.cfg.TTL)
	}
	return nil
}

func (w *World) resume(c *client) {
	c.state.Paused = false
	c.state.PausedFor += time.Since(c.since)
	close(c.freed)
	c.freed = make(chan struct{})
	for _, conn := range w.readers.waking {
		if conn.client == c {
			conn.linger()
		}
	}
	if !c.state.Crashed {
		for _, conn := range slices.Clone(c.conns) {
			if len(conn.partial) > 0 {
				_ = conn.sendWritten() // the connection is severed then
			}
		}
		w.open(&c.door)
	}
	c.door = nil
}

// eachLink calls do for every link that the lists select; an empty list means
// all, and the link of anyone stands for clients that are yet to come.
func (w *World) eachLink(clients, nodes []string, do func(link)) {
	if len(clients) == 0 {
		clients = append(slices.Sorted(maps.Keys(w.clients)), anyone)
	}
	if len(nodes) == 0 {
		for _, n := range w.nodes {
			nodes = append(nodes, n.name)
		}
	}
	for _, c := range clients {
		for _, n := range faults.ResolveNodes(nodes, w.cfg.Nodes) {
			do(link{c, n})
		}
	}
}

// change changes links. What is on its way there arrives at once, in its order,
// as it does when toxiproxy removes what had slowed it.
func (w *World) change(clients, nodes []string, do func(link)) {
	changed := map[link]bool{}
	w.eachLink(clients, nodes, func(on link) {
		do(on)
		changed[on] = true
	})
	arriving := w.schedule.take(func(it *item) bool { return it.travels && changed[link{it.rank.who, it.rank.where}] })
	for on := range changed {
		for _, conn := range w.conns(on) {
			for _, way := range []*stream{&conn.toServer, &conn.toClient} {
				way.line, way.last = line{}, time.Now()
			}
		}
	}
	for _, it := range arriving {
		it.run()
	}
}

// conns returns the connections of a link that their client has not given up.
func (w *World) conns(on link) []*conn {
	c := w.clients[on.client]
	if c == nil {
		return nil
	}
	return slices.DeleteFunc(slices.Clone(c.conns), func(conn *conn) bool { return conn.node.name != on.node })
}

// cut cuts a link; connections close after that time, or never if it is none.
func (w *World) cut(on link, after time.Duration) {
	w.links.cut[on] = after
	for _, conn := range w.conns(on) {
		w.closeAfter(conn, after)
	}
}

// closeAfter closes a connection after that time, or not at all if it is none.
func (w *World) closeAfter(c *conn, after time.Duration) {
	if after == 0 {
		c.closes = time.Time{}
		return
	}
	c.closes = time.Now().Add(after)
	on := c.link()
	w.plan(c.closes, rank{who: on.client, where: on.node, what: "timeout"}, func() {
		// All whose time has come, in one go: connections have no order.
		for _, conn := range w.conns(on) {
			if !conn.closes.IsZero() && !conn.closes.After(time.Now()) {
				conn.sever(io.EOF)
			}
		}
	})
}

// heal mends a link. Connections that lost something are of no use any more;
// their ends find that out now that they can talk again.
func (w *World) heal(on link) {
	if !w.links.isCut(on) {
		return
	}
	delete(w.links.cut, on)
	for _, conn := range w.conns(on) {
		w.closeAfter(conn, 0)
		if conn.toServer.lost || conn.toClient.lost {
			conn.sever(errReset)
		}
	}
}

func (w *World) applyToNode(f faults.Fault, n *node) error {
	s := n.primary
	switch f := f.(type) {
	case faults.CrashNode:
		s.crash()
	case faults.RestartNode:
		w.restart(n, f.Empty)
	case faults.PauseNode:
		s.paused = true
	case faults.ResumeNode:
		s.paused = false
		w.serve(s)
		w.open(&s.door)
		if s.joining == nil {
			w.catchUp(s)
		}
	case faults.Failover:
		next := s.successor()
		if next == nil {
			return fmt.Errorf("sim: %q: %s has no replica that is up; declare replicas in the script", f, n.name)
		}
		s.crash()
		w.promote(n, next)
	case faults.Split:
		if n.rival == nil {
			n.rival = s.successor()
		}
		if n.rival == nil {
			return fmt.Errorf("sim: %q: %s has no replica that is up; declare replicas in the script", f, n.name)
		}
		for _, name := range f.Clients {
			n.split[name] = true
			for _, conn := range slices.Clone(s.conns) {
				if conn.client.name == name {
					conn.sever(errReset)
				}
			}
		}
	case faults.Join:
		return w.join(n)
	case faults.NodeClock:
		s.move(f.By.Of(w.cfg.TTL))
		w.observe(s, checker.ByClock, "", nil)
	case faults.NodeDrift:
		if !(f.Rate > 0) || f.Rate > faults.MaxRate {
			return fmt.Errorf("sim: %q: a clock runs at a rate above 0 and up to %d", f, faults.MaxRate)
		}
		s.drift(f.Rate)
		w.observe(s, checker.ByClock, "", nil)
	case faults.Flush:
		s.flush()
		s.operate("FLUSHALL") // other databases
		w.observe(s, checker.ByFlush, "", nil)
	case faults.Evict:
		s.operate("DEL", w.cfg.Key)
		w.observe(s, checker.ByEviction, "", nil)
	case faults.ScriptFlush:
		s.operate("SCRIPT", "FLUSH")
	case faults.Replication:
		w.setReplication(s, f)
	default:
		return fmt.Errorf("sim: %T: %w", f, faults.ErrUnsupported)
	}
	return nil
}

// crash ends the server process: it answers nobody any more.
func (s *redis) crash() {
	s.up, s.paused = false, false
	s.door = nil
	for _, conn := range slices.Clone(s.conns) {
		conn.sever(errReset)
	}
	s.waiters = nil
}

// successor returns the replica that is promoted when the server fails: the one
// that got furthest, as Sentinel chooses among replicas of one priority.
func (s *redis) successor() (best *redis) {
	for _, other := range s.node.servers {
		if other != s && other.up && other != s.node.rival && (best == nil || other.applied > best.applied) {
			best = other
		}
	}
	return best
}

// promote makes a replica the node's primary.
func (w *World) promote(n *node, next *redis) {
	n.primary = next
	next.known, next.acked = nil, nil
	next.offset = max(next.offset, next.applied)
	w.saw(next, next.look(w.cfg.Key, w.began), checker.ByFailover, "", nil)
	w.replicate(next)
}

// join ends a split: what only the old primary had is lost.
func (w *World) join(n *node) error {
	next := n.rival
	if next == nil {
		return fmt.Errorf("sim: %s join: it is not split", n.name)
	}
	old := n.primary
	n.rival = nil
	clear(n.split)
	for _, conn := range slices.Clone(old.conns) {
		conn.sever(errReset)
	}
	w.promote(n, next)
	old.copyFrom(next)
	w.observe(old, checker.ByReplication, "", nil)
	return nil
}

// restart brings back the server of a node that crashed: as its primary, or as a
// replica of whoever took its place.
func (w *World) restart(n *node, empty bool) {
	down := slices.IndexFunc(n.servers, func(s *redis) bool { return !s.up })
	if down < 0 {
		return
	}
	s := n.servers[down]
	if !n.primary.up {
		s = n.primary
	}
	s.up = true
	s.operate("SCRIPT", "FLUSH") // a server keeps scripts in memory only
	if s != n.primary {
		s.copyFrom(n.primary)
		w.observe(s, checker.ByReplication, "", nil)
		return
	}
	if empty {
		s.operate("FLUSHALL")
	}
	w.observe(s, checker.ByRestart, "", nil)
	w.catchUp(s)
}

func (w *World) setReplication(s *redis, f faults.Replication) {
	switch f.Mode {
	case faults.ReplicationStop, faults.ReplicationStart:
		if s.timeout > 0 {
			s.timeout = 0
			s.disconnect() // it may have lost something
		}
		if s.stopped = f.Mode == faults.ReplicationStop; !s.stopped {
			s.delay, s.jitter, s.bandwidth = 0, 0, 0
			w.hasten(s)
		}
	case faults.ReplicationDelay:
		s.delay, s.jitter = f.Delay.Of(w.cfg.TTL), f.Jitter.Of(w.cfg.TTL)
		w.hasten(s)
	case faults.ReplicationBandwidth:
		s.bandwidth = f.Rate.PerSecond(w.cfg.TTL)
		w.hasten(s)
	case faults.ReplicationTimeout:
		s.timeout = f.After.Of(w.cfg.TTL)
		s.lose()
		session := s.session
		w.plan(time.Now().Add(s.timeout), rank{who: servers + s.name, what: "timeout"}, func() {
			if s.session == session {
				s.gone = true
			}
		})
	case faults.ReplicationReset:
		s.disconnect()
	}
	w.catchUp(s)
}
