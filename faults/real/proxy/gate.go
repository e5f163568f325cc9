package proxy

import (
	"bytes"
	"fmt"
	"io"
	"net"
	"slices"

	"github.com/lockfault/lockfault/internal/resp"
)

// maxMessage is the longest message, in bytes, that a gate takes. Locks need
// none near it; without a limit a sender of garbage would fill the memory.
const maxMessage = 16 << 20

// maxInline is the same for a request that isn't an array; it is Redis's own
// limit.
const maxInline = 64 << 10

// readSize is how much room there is for what a socket has, in bytes.
const readSize = 4096

// A gate stands at the beginning of one direction of a connection: it reads
// from a socket, and toxiproxy reads from it what was forwarded. Only the
// goroutine that reads may touch it, but for wake.
type gate struct {
	conn    *Conn
	from    *side
	request bool

	buf    []byte        // read from the socket and not yet handed on
	passed int           // how many bytes at the head of buf may go on
	shown  *Message      // what the tap has seen last, until it is settled; follows the passed bytes
	lost   bool          // a message was dropped
	err    error         // why there is nothing more to read
	wake   chan struct{} // holds a note that a message was decided
}

// newGate returns the gate of the direction that comes from a side.
func newGate(c *Conn, from *side, request bool) *gate {
	return &gate{conn: c, from: from, request: request, wake: make(chan struct{}, 1)}
}

// Read implements io.Reader. It blocks while the message in front is held, or
// the link is stopped. What was forwarded before is handed out first. Every end
// reads as io.EOF: the connection knows more.
func (g *gate) Read(p []byte) (int, error) {
	n := g.read(p)
	if n == 0 {
		g.conn.exhausted(g.from, g.err)
		return 0, io.EOF
	}
	return n, nil
}

// read returns 0 at the end.
func (g *gate) read(p []byte) int {
	if g.conn.link.tap == nil {
		n := g.receive(p)
		if n > 0 && !g.conn.flow() {
			return 0
		}
		return n
	}
	for {
		g.advance()
		if g.passed > 0 {
			break
		}
		switch {
		case g.shown != nil:
			select {
			case <-g.wake:
			case <-g.conn.done:
				return 0
			}
		case g.err != nil || !g.fill():
			return 0
		}
	}
	if !g.conn.flow() {
		return 0
	}
	n := copy(p, g.buf[:g.passed])
	g.cut(0, n)
	g.passed -= n
	return n
}

// fill reads more from the socket; false at its end.
func (g *gate) fill() bool {
	g.buf = slices.Grow(g.buf, readSize)
	n := g.receive(g.buf[len(g.buf):cap(g.buf)])
	g.buf = g.buf[:len(g.buf)+n]
	return n > 0
}

// receive reads from the socket. It returns 0 when there is no more, and says
// in g.err why.
func (g *gate) receive(p []byte) int {
	if g.from.socket == nil { // nobody is behind the partition
		<-g.conn.done
		g.err = net.ErrClosed
		return 0
	}
	for {
		n, err := g.from.socket.Read(p)
		if n > 0 {
			return n // an error comes again
		}
		if err != nil {
			g.err = err
			return 0
		}
	}
}

// advance settles the message in front and shows the following ones, up to one
// that has to wait or that isn't complete.
func (g *gate) advance() {
	for !g.conn.ended() && g.settle() {
		rest := g.buf[g.passed:]
		words, n, err := g.parse(rest)
		if err != nil {
			g.refuse(err)
			return
		}
		if n == 0 {
			return
		}
		if g.request && len(words) == 0 { // an empty line asks for nothing
			g.pass(n, !g.lost)
			continue
		}
		g.shown = &Message{
			Conn: g.conn, Request: g.request, Words: words, Bytes: bytes.Clone(rest[:n]), More: len(rest) > n, Lost: g.lost, gate: g,
		}
		if g.lost {
			g.shown.verdict.Store(dropped)
		}
		g.conn.link.tap.Message(g.shown)
	}
}

func (g *gate) parse(b []byte) (words []string, n int, err error) {
	limit := maxMessage
	if g.request {
		words, n, err = resp.Command(b)
		if len(b) > 0 && b[0] != '*' {
			limit = maxInline
		}
	} else {
		n, err = resp.Frame(b)
	}
	if err == nil && (n > limit || n == 0 && len(b) > limit) {
		err = fmt.Errorf("%w: a message of more than %d bytes", resp.ErrProtocol, limit)
	}
	return words, n, err
}

// settle does what was decided about the message shown; false if nothing was.
func (g *gate) settle() bool {
	if g.shown == nil {
		return true
	}
	verdict := g.shown.verdict.Load()
	switch verdict {
	case undecided:
		return false
	case dropped:
		g.lost = true
	}
	n := len(g.shown.Bytes)
	g.shown = nil
	g.pass(n, !g.lost && verdict != skipped)
	return true
}

// pass lets the next n bytes go on, or takes them out.
func (g *gate) pass(n int, on bool) {
	if on {
		g.passed += n
		return
	}
	g.cut(g.passed, n)
}

// cut takes n bytes out of the buffer.
func (g *gate) cut(at, n int) { g.buf = slices.Delete(g.buf, at, at+n) }

// refuse ends the connection because what it carries is not RESP.
func (g *gate) refuse(why error) {
	sender := "the server"
	if g.request {
		sender = "the client"
	}
	g.err = fmt.Errorf("proxy: link %s, connection %d: %s sent what is not RESP (a link without a tap carries anything): %w",
		g.conn.link.name, g.conn.id, sender, why)
	g.buf, g.passed = nil, 0
	g.conn.link.warn(g.err)
	g.conn.end(g.err, true)
}
