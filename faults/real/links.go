package real

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/lockfault/lockfault/faults"
	"github.com/lockfault/lockfault/faults/real/proxy"
)

// link names the way between a client and a node: to its primary, whichever
// that is, or where clients find it themselves, to one of its servers.
type link struct{ client, node, server string }

// wire is that way: a proxy of toxiproxy with the gate in it.
type wire struct {
	world  *World
	client string
	node   *node
	link   *proxy.Link
	server *server // where it leads
	conns  map[*proxy.Conn]*conn
	addr   string        // of that server
	fixed  bool          // it always leads there
	cut    bool          // whatever is sent is lost
	after  time.Duration // and connections close that long after they were opened; 0 means never
}

// openLinks opens the links of a client to all nodes, and returns them in the
// nodes' order.
func (w *World) openLinks(client string) (list []*wire, err error) {
	for _, n := range w.nodes {
		ends := []*server{nil}
		if w.cfg.Sentinels > 0 {
			ends = n.servers
		}
		for _, s := range ends {
			on := link{client: client, node: n.name}
			if s != nil {
				on.server = s.name
			}
			if w.links[on] == nil {
				if w.links[on], err = w.openLink(on, n, s); err != nil {
					return nil, fmt.Errorf("real: the link of %s to %s: %w", client, n.name, err)
				}
			}
			list = append(list, w.links[on])
		}
	}
	return list, nil
}

// openLink opens one link, to the server or if that is nil to the node's
// primary.
func (w *World) openLink(on link, n *node, s *server) (*wire, error) {
	l := &wire{world: w, client: on.client, node: n, server: s, fixed: s != nil, conns: map[*proxy.Conn]*conn{}}
	if s == nil {
		l.server = n.serverFor(on.client)
	}
	l.addr = l.server.addr
	var err error
	l.link, err = w.proxies.Open(on.client+" to "+l.server.name, l.addr, tap{w, l})
	return l, err
}

func (l *wire) process() *process { return l.world.clients[l.client] }

// list returns the connections, oldest first.
func (l *wire) list() []*conn {
	return slices.SortedFunc(maps.Values(l.conns), func(a, b *conn) int { return a.proxied.ID() - b.proxied.ID() })
}

func (l *wire) opened(p *proxy.Conn) {
	c := &conn{wire: l, server: l.server, proxied: p}
	l.conns[p] = c
	c.closeAfter(l.after)
}

func (l *wire) closed(p *proxy.Conn) {
	if c := l.conns[p]; c != nil {
		delete(l.conns, p)
		c.end()
	}
}

// lead leads the client to another server. Its connections are reset.
func (l *wire) lead(to *server) error {
	if l.fixed {
		to = l.server
	}
	if l.server == to && l.addr == to.addr {
		return nil
	}
	l.server, l.addr = to, to.addr
	for _, c := range l.list() {
		c.reset()
	}
	return l.link.Redirect(to.addr)
}

// reset closes both ends of a connection.
func (c *conn) reset() {
	c.proxied.Reset()
	c.end()
}

// closeAfter closes both ends of a connection in order after that time, or not
// at all if it is none.
func (c *conn) closeAfter(after time.Duration) {
	if c.closing != nil {
		c.closing.dead = true
		c.closing = nil
	}
	if after == 0 {
		return
	}
	c.closing = c.wire.world.plan(time.Now().Add(after), func() {
		c.proxied.Close()
		c.end()
	})
}

// end takes note that a connection is over.
func (c *conn) end() {
	if c.gone {
		return
	}
	c.gone = true
	c.closeAfter(0)
	w, s := c.wire.world, c.server
	w.held = slices.DeleteFunc(w.held, func(m *message) bool { return m.conn == c })
	if s.busy == nil || s.busy.conn != c {
		return
	}
	if s.up && !s.paused {
		w.observe(s, "command", c.wire.client, s.busy.words) // whatever the server made of it
	}
	s.busy = nil
	w.open(s)
}

// eachLink calls do for every link that the lists select; an empty list means
// all.
func (w *World) eachLink(clients, nodes []string, do func(*wire) error) error {
	nodes = faults.ResolveNodes(nodes, w.cfg.Nodes)
	var errs []error
	for _, on := range slices.SortedFunc(maps.Keys(w.links), func(a, b link) int {
		return slices.Compare([]string{a.client, a.node, a.server}, []string{b.client, b.node, b.server})
	}) {
		if (len(clients) == 0 || slices.Contains(clients, on.client)) && (len(nodes) == 0 || slices.Contains(nodes, on.node)) {
			errs = append(errs, do(w.links[on]))
		}
	}
	return errors.Join(errs...)
}

// lose cuts the link; connections close after that time, or never if it is
// none.
func (l *wire) lose(after time.Duration) {
	l.cut, l.after = true, after
	for _, c := range l.list() {
		c.closeAfter(after)
	}
}

// heal mends the link. Connections that lost something are of no use any more;
// their ends find that out now that they can talk again.
func (l *wire) heal() error {
	if !l.cut {
		return nil
	}
	l.cut, l.after = false, 0
	for _, c := range l.list() {
		c.closeAfter(0)
		if c.requests.lost || c.replies.lost {
			c.reset()
		}
	}
	return nil
}
