package real

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/lockfault/lockfault/faults/real/proxy"
	"github.com/lockfault/lockfault/faults/topology"
)

// link identifies the path between a client and a node: to the node's current primary or, with
// sentinels, to one server.
type link struct{ client, node, server string }

// wire is the open link for a path: a proxy with the gate in it.
type wire struct {
	world  *World
	client string
	node   *topology.Node
	link   *proxy.Link
	server *server // the server that the link leads to
	conns  map[*proxy.Conn]*conn
	addr   string // address of that server
	fixed  bool   // the link always leads to that server
}

// openLinks opens the links of a client to all nodes, and returns them in the order of the nodes.
func (w *World) openLinks(client string) (list []*wire, err error) {
	for _, n := range w.top.Nodes {
		ends := []*topology.Server{nil}
		if w.cfg.Sentinels > 0 {
			ends = n.Servers
		}
		for _, s := range ends {
			on := link{client: client, node: n.Name}
			if s != nil {
				on.server = s.Name
			}
			if w.links[on] == nil {
				if w.links[on], err = w.openLink(on, n, s); err != nil {
					return nil, fmt.Errorf("real: the link of %s to %s: %w", client, n.Name, err)
				}
			}
			list = append(list, w.links[on])
		}
	}
	return list, nil
}

// openLink opens one link, to a server or, if that is nil, to the node's primary.
func (w *World) openLink(on link, n *topology.Node, s *topology.Server) (*wire, error) {
	l := &wire{world: w, client: on.client, node: n, fixed: s != nil, conns: map[*proxy.Conn]*conn{}}
	if s == nil {
		s = n.For(on.client)
	}
	l.server = w.of(s)
	l.addr = l.server.addr
	var err error
	name := on.client + " to " + s.Name
	if s := w.cfg.Service; s != nil {
		l.link, err = w.proxies.OpenSpeaking(name, l.addr, s.Speaks(), linkTap{w, l})
	} else {
		login := l.server.login()
		l.link, err = w.proxies.OpenGuarded(name, l.addr, proxy.Auth{Asks: w.password, Username: login.Username, Password: login.Password}, linkTap{w, l})
	}
	if err != nil {
		return nil, err
	}
	return l, l.reshape()
}

// road returns the state of the link.
func (l *wire) road() topology.LinkState {
	return l.world.top.Links.On(topology.Link{Client: l.client, Node: l.node.Name})
}

// reshape applies the link's speed. Bytes in transit arrive at once if the speed changes.
func (l *wire) reshape() error {
	on := topology.Link{Client: l.client, Node: l.node.Name}
	return l.world.slow(l.link, proxy.Both, l.road(), on)
}

// slow applies the speed of a road to a link in one direction or both. The topology computes when
// bytes arrive.
func (w *World) slow(l *proxy.Link, way proxy.Way, road topology.LinkState, on topology.Link) error {
	if road.Free() {
		return l.Slow(way, nil)
	}
	return l.Slow(way, func(way proxy.Way) proxy.DelayFunc {
		line, draw := &topology.Line{}, topology.JitterKey{On: on, What: fmt.Sprint(way)}
		return func(written time.Time, size int) time.Time {
			draw.Sent = written.Sub(w.made)
			return w.top.Links.Arrives(road, line, draw, written, size)
		}
	})
}

func (l *wire) process() *process { return l.world.clients[l.client] }

// list returns the connections, oldest first.
func (l *wire) list() []*conn {
	return slices.SortedFunc(maps.Values(l.conns), func(a, b *conn) int { return a.proxied.ID() - b.proxied.ID() })
}

func (l *wire) opened(p *proxy.Conn) {
	c := &conn{wire: l, server: l.server, proxied: p}
	l.conns[p] = c
	c.closeAfter(l.road().Closes)
}

func (l *wire) closed(p *proxy.Conn) {
	if c := l.conns[p]; c != nil {
		delete(l.conns, p)
		c.end()
	}
}

// lead leads the client to another server, and resets its connections.
func (l *wire) lead(to *server) error {
	if l.fixed {
		to = l.server
	}
	if l.server == to && l.addr == to.addr {
		return nil
	}
	l.server, l.addr = to, to.addr
	had := l.list()
	// A client whose connection is reset dials at once, and must not reach the previous server.
	err := l.link.Redirect(to.addr)
	for _, c := range had {
		c.reset()
	}
	return err
}

// reset closes both ends of a connection abruptly.
func (c *conn) reset() {
	c.proxied.Reset()
	c.end()
}

// closeAfter closes both ends of a connection in order after the given time. 0 cancels an earlier
// call.
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

// end records that a connection is over.
func (c *conn) end() {
	if c.gone {
		return
	}
	c.gone, c.asked = true, nil
	c.closeAfter(0)
	w, s := c.wire.world, c.server
	w.top.Forget(func(m topology.Message) bool { return m.(*message).conn == c })
	if s.busy == nil || s.busy.conn != c {
		return
	}
	if s.Answers() {
		w.awaited(s.busy, time.Now())                        // the client gave up
		w.observe(s, "command", c.wire.client, s.busy.words) // the server may have executed the request
	}
	s.busy = nil
	w.open(s)
}

// wires returns the open links for the given links, in order.
func (w *World) wires(links []topology.Link) (list []*wire) {
	for _, on := range links {
		for _, s := range slices.SortedFunc(maps.Keys(w.links), func(a, b link) int { return strings.Compare(a.server, b.server) }) {
			if s.client == on.Client && s.node == on.Node {
				list = append(list, w.links[s])
			}
		}
	}
	return list
}
