package proxy

import (
	"errors"
	"fmt"
	"io"
	"net"
	"sync"

	"github.com/Shopify/toxiproxy/v2/stream"
)

// A Conn is one connection of a client through a link to the upstream. It is safe for concurrent
// use.
//
// Its two directions end separately, as those of a TCP connection do: if a client closes its side,
// or a process is killed, the other side still receives what had been written, whenever that is
// forwarded, and then the end of the stream.
type Conn struct {
	link *Link
	id   int
	done chan struct{} // closed when the sockets are

	client, server side
	up, down       *ingress
	talk           Session

	mu     sync.Mutex // guards the fields below, and the fields of the sides that say so
	over   bool       // the sockets are closed
	closed bool       // the tap was notified of the end, or is being notified
	err    error
}

// side is the proxy's socket to one of the two processes. toxiproxy or an egress writes to it.
type side struct {
	conn   *Conn
	other  *side
	socket net.Conn
	ahead  []byte // the first bytes that the process wrote, which were read already

	// Guarded by Conn.mu. Only the goroutine that writes to this side sets gone, and that goroutine
	// may read it without the lock.
	spent    bool // all that the process wrote was handed to toxiproxy
	gone     bool // the process reads no more
	finished bool // nothing more will be written to the process
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
	c.link.running.Add(2) // until the ingress is exhausted, and its other end closed
	if c.link.tap != nil {
		c.link.running.Add(1)
		f.door = newDoor(c, to)
		f.to = f.door
	}
	return f
}

// start starts the goroutines that carry both directions.
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

// Link returns the link of the connection.
func (c *Conn) Link() *Link { return c.link }

// ID returns the connection's number among those of its link, from 1.
func (c *Conn) ID() int { return c.id }

// Err returns why the connection ended. It returns nil while the connection lasts, and after both
// ends closed it in order. The error wraps ErrReset if this package closed the connection, the
// protocol's error (resp.ErrProtocol for [RESP]) if it carried another protocol, and the socket's
// error if one end broke.
func (c *Conn) Err() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.err
}

// Reset closes both ends at once; both processes see a connection reset by the peer. Bytes in
// transit are lost. Reset does not wait for the tap's Closed.
func (c *Conn) Reset() { c.end(ErrReset, true) }

// Close acts like Reset, but both processes see an orderly close.
func (c *Conn) Close() { c.end(ErrReset, false) }

// end closes both sockets, by RST if abruptly is set and in order otherwise. Only the first call
// counts.
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

// closeSocket closes a socket, by RST if abruptly is set and the socket supports that.
func closeSocket(socket net.Conn, abruptly bool) {
	if tcp, ok := socket.(interface{ SetLinger(int) error }); ok && abruptly {
		_ = tcp.SetLinger(0) // if this fails, the connection ends by FIN instead
	}
	_ = socket.Close() // the socket is released even if this fails
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

// flow waits while the link is stopped. It returns false if the connection has ended.
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

// exhausted records that a side's stream has ended. The other side is closed in the same way for
// every cause: a reset would destroy bytes that are still on their way there.
func (c *Conn) exhausted(s *side, err error) {
	defer c.link.running.Done()
	c.mu.Lock()
	s.spent = true
	if !c.over && c.err == nil && !errors.Is(err, io.EOF) {
		c.err = err
	}
	c.unlockAndTell()
}

// unlockAndTell unlocks c.mu, and notifies the tap if the connection has ended: its sockets are
// closed, and there will be no more messages. Bytes that toxics still delay are discarded.
func (c *Conn) unlockAndTell() {
	quiet := c.link.tap == nil || c.client.finished && c.server.finished // with a tap, both egresses have closed, so no goroutine shows messages any more
	tell := c.over && c.client.spent && c.server.spent && quiet && !c.closed
	c.closed = c.closed || tell
	c.mu.Unlock()
	if tell {
		c.link.forget(c)
	}
}

// read reads what the process has written.
func (s *side) read(p []byte) (int, error) {
	if len(s.ahead) == 0 {
		return s.socket.Read(p)
	}
	n := copy(p, s.ahead)
	s.ahead = s.ahead[n:]
	return n, nil
}

// Write implements io.Writer. It never fails: toxiproxy's writers return at the first error, and
// everything after that stays blocked before them forever. Bytes that can't be written are lost, as
// on a network; the end of the process shows in what is read from it.
func (s *side) Write(p []byte) (int, error) {
	if s.gone {
		return len(p), nil
	}
	c := s.conn
	if _, err := s.socket.Write(p); err != nil {
		c.mu.Lock()
		s.gone = true
		if s.spent && s.other.finished { // the other side has received the end and continues; nothing else would stop it
			c.endLocked(err, true)
		}
		c.mu.Unlock()
	}
	return len(p), nil
}

// Close implements io.Closer. Call it once, after the last Write.
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
			_ = socket.CloseWrite() // fails if the process has already gone
		}
	}
	c.unlockAndTell()
	return nil
}
