package proxy

import (
	"errors"
	"fmt"
	"io"
	"net"
	"sync"

	"github.com/Shopify/toxiproxy/v2/stream"
)

// A Conn is one connection of a client through a link to the upstream. It is
// safe for concurrent use.
//
// Its two directions end one by one, as those of a TCP connection: a client
// that closes its side, or a process that is killed, still gets to the other
// side what it had written, whenever that is forwarded, and then its end.
type Conn struct {
	link *Link
	id   int
	done chan struct{} // closed when the sockets are

	client, server side
	up, down       *ingress
	talk           Session

	mu     sync.Mutex // guards what follows, and the sides' fields that say so
	over   bool       // the sockets are closed
	closed bool       // the tap was told, or is being told
	err    error
}

// side is the proxy's socket to one of the two processes, and what toxiproxy or
// a door writes to.
type side struct {
	conn   *Conn
	other  *side
	socket net.Conn
	ahead  []byte // what the process wrote first, which was read already

	// Guarded by Conn.mu. Only the goroutine that writes here sets gone, and
	// may read it without.
	spent    bool // what the process wrote was all handed to toxiproxy
	gone     bool // the process takes nothing any more
	finished bool // nothing follows what was written to it
}

func newConn(l *Link, client net.Conn, ahead []byte, server net.Conn) *Conn {
	l.accepted++
	c := &Conn{link: l, id: l.accepted, done: make(chan struct{}), talk: l.protocol.Begin()}
	c.client = side{conn: c, other: &c.server, socket: client, ahead: ahead}
	c.server = side{conn: c, other: &c.client, socket: server}
	c.up = c.newFront(&c.client, &c.server, stream.Upstream)
	c.down = c.newFront(&c.server, &c.client, stream.Downstream)
	return c
}

func (c *Conn) newFront(from, to *side, way stream.Direction) *ingress {
	f := &ingress{conn: c, from: from, way: way, to: to}
	c.link.running.Add(2) // until it is exhausted, and its other end closed
	if c.link.tap != nil {
		c.link.running.Add(1)
		f.door = newDoor(c, to)
		f.to = f.door
	}
	return f
}

// start carries both directions.
func (c *Conn) start() {
	for _, f := range []*ingress{c.up, c.down} {
		if f.door != nil {
			go f.door.attend()
		}
		if c.link.hasToxics(f.way) {
			f.divert()
		}
		go f.carry()
	}
}

// Link returns the link that the connection is on.
func (c *Conn) Link() *Link { return c.link }

// ID returns the connection's number among its link's, from 1.
func (c *Conn) ID() int { return c.id }

// Err returns why the connection ended: nil while it lasts and where both ends
// closed it in order. It wraps ErrReset where it was closed from here,
// the protocol's error (resp.ErrProtocol of [RESP]) where it carried something else, and the
// socket's error where one end broke.
func (c *Conn) Err() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.err
}

// Reset closes both ends at once; they see a connection reset by its peer.
// What was on its way is lost. It doesn't wait for Closed.
func (c *Conn) Reset() { c.end(ErrReset, true) }

// Close is Reset, but the ends see a connection that is closed in order.
func (c *Conn) Close() { c.end(ErrReset, false) }

// end closes both sockets, by RST or in order. Only the first call counts.
func (c *Conn) end(why error, abruptly bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.endLocked(why, abruptly)
}

func (c *Conn) endLocked(why error, abruptly bool) {
	if c.over {
		return
	}
	c.over = true
	if why != nil {
		c.err = why
	}
	close(c.done)
	for _, s := range []*side{&c.client, &c.server} {
		if s.socket != nil {
			closeSocket(s.socket, abruptly)
		}
	}
}

// closeSocket closes a socket; abruptly means by RST, if it can do that.
func closeSocket(socket net.Conn, abruptly bool) {
	if tcp, ok := socket.(interface{ SetLinger(int) error }); ok && abruptly {
		_ = tcp.SetLinger(0) // else it ends by FIN: the best that is left
	}
	_ = socket.Close() // it is gone either way
}

// ended reports whether the sockets are closed.
func (c *Conn) ended() bool {
	select {
	case <-c.done:
		return true
	default:
		return false
	}
}

// flow waits while the link is stopped; false if the connection ended.
func (c *Conn) flow() bool {
	for {
		stopped := c.link.stopped.Load()
		if stopped == nil {
			return true
		}
		select {
		case <-*stopped:
		case <-c.done:
			return false
		}
	}
}

// exhausted takes note that a side's stream has ended. How doesn't matter to
// the other side: a reset would destroy what is still on its way there.
func (c *Conn) exhausted(s *side, err error) {
	defer c.link.running.Done()
	c.mu.Lock()
	s.spent = true
	if !c.over && c.err == nil && !errors.Is(err, io.EOF) {
		c.err = err
	}
	c.unlockAndTell()
}

// unlockAndTell unlocks c.mu, and tells the tap if the connection has ended:
// its sockets are closed, and there will be no more messages. What toxics still
// delay goes nowhere.
func (c *Conn) unlockAndTell() {
	quiet := c.link.tap == nil || c.client.finished && c.server.finished // whoever looked at messages there is gone
	tell := c.over && c.client.spent && c.server.spent && quiet && !c.closed
	c.closed = c.closed || tell
	c.mu.Unlock()
	if tell {
		c.link.forget(c)
	}
}

// read reads what the process writes.
func (s *side) read(p []byte) (int, error) {
	if len(s.ahead) == 0 {
		return s.socket.Read(p)
	}
	n := copy(p, s.ahead)
	s.ahead = s.ahead[n:]
	return n, nil
}

// Write implements io.Writer. It never fails: toxiproxy's writers leave at the
// first error, and whatever comes after stays stuck in front of them forever.
// What can't be written is lost, as on a network; that a process is gone shows
// in what is read from it.
func (s *side) Write(p []byte) (int, error) {
	if s.gone {
		return len(p), nil
	}
	c := s.conn
	if _, err := s.socket.Write(p); err != nil {
		c.mu.Lock()
		s.gone = true
		if s.spent && s.other.finished { // the other side heard the end, and goes on; nothing else would stop it
			c.endLocked(err, true)
		}
		c.mu.Unlock()
	}
	return len(p), nil
}

// Close implements io.Closer. It must be called once, behind the last Write.
func (s *side) Close() error {
	c := s.conn
	defer c.link.running.Done()
	c.mu.Lock()
	s.finished = true
	switch {
	case s.other.finished:
		c.endLocked(nil, false)
	case c.over:
	case !s.other.spent:
		c.endLocked(fmt.Errorf("%w: by a toxic", ErrReset), false)
	default:
		if socket, ok := s.socket.(interface{ CloseWrite() error }); ok {
			_ = socket.CloseWrite() // fails where the process is gone already
		}
	}
	c.unlockAndTell()
	return nil
}
