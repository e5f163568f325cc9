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

// link names the way between a client and a node: to its primary, whichever
// that is, or where clients find it themselves, to one of its servers.
type link struct{ client, node, server string }

// wire is that way: a proxy of toxiproxy with the gate in it.
type wire struct {
	world  *World
	client string
	node   *topology.Node
	link   *proxy.Link
	server *server // where it leads
	conns  map[*proxy.Conn]*conn
	addr   string // of that server
	fixed  bool   // it always leads there
}

// openLinks opens the links of a client to all nodes, and returns them in the
// nodes' order.
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

// openLink opens one link, to the server or if that is nil to the node's
// primary.
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

// road is how the link is.
func (l *wire) road() topology.LinkState {
	return l.world.top.Links.On(topology.Link{Client: l.client, Node: l.node.Name})
}

// reshape has the link as slow as it should be. What is on its way arrives at
// once if that is another speed than it was.
func (l *wire) reshape() error {
	on := topology.Link{Client: l.client, Node: l.node.Name}
	return l.world.slow(l.link, proxy.Both, l.road(), on)
}

// slow has a link as slow as a road is, in that direction: the topology says when
// what is sent arrives.
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

// lead leads the client to another server. Its connections are reset.
func (l *wire) lead(to *server) error {
	if l.fixed {
		to = l.server
	}
	if l.server == to && l.addr == to.addr {
		return nil
	}
	l.server, l.addr = to, to.addr
	had := l.list()
	// Who is reset dials at once, and must not be led to the server of before.
	err := l.link.Redirect(to.addr)
	for _, c := range had {
		c.reset()
	}
	return err
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
	c.gone, c.asked = true, nil
	c.closeAfter(0)
	w, s := c.wire.world, c.server
	w.top.Forget(func(m topology.Message) bool { return m.(*message).conn == c })
	if s.busy == nil || s.busy.conn != c {
		return
	}
	if s.Answers() {
		w.awaited(s.busy, time.Now())                        // by a client that gave up
		w.observe(s, "command", c.wire.client, s.busy.words) // whatever the server made of it
	}
	s.busy = nil
	w.open(s)
}

// wires returns those of some links, in their order.
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
