package proxy

import (
	"bytes"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/Shopify/toxiproxy/v2/stream"
)

// chunk is the size of a read, in bytes.
const chunk = 16 << 10

// An ingress is the beginning of one direction of a connection: it reads what a process writes and
// passes it on. The bytes go to the other end or, after the link got its first toxic, to toxiproxy.
// On a link with a tap the ingress also finds the messages and announces them to the egress at the
// other end. Fields that no lock guards belong to the goroutine that runs carry.
type ingress struct {
	conn *Conn
	from *side
	way  stream.Direction
	door *egress        // nil if the link has no tap
	to   io.WriteCloser // the other end: the egress, or the socket of the process

	buf    []byte // the bytes of an incomplete message
	end    int64  // where the last complete message ended
	number int    // how many requests were found
	err    error  // why there is nothing more to read

	mu   sync.Mutex     // guards the fields below
	into io.WriteCloser // where toxiproxy reads; nil until it is needed
	over bool
}

// divert sends everything that is read from now on through the link's toxics. Bytes that were read
// earlier are already at the other end, or the goroutine that runs carry is about to put them there
// before it handles the next ones, so nothing is lost or overtaken. A diverted direction stays
// diverted: a way back would have to wait for the bytes that toxics delay.
func (f *ingress) divert() {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.into != nil || f.over {
		return
	}
	out, in := io.Pipe()
	f.into = in
	l := f.conn.link
	l.toxics.StartLink(l.proxies.server, fmt.Sprintf("%d %s", f.conn.id, f.way), out, f.to, f.way)
}

// diverted returns the pipe that toxiproxy reads, or nil if the direction isn't diverted.
func (f *ingress) diverted() io.WriteCloser {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.into
}

// carry passes on what the process writes until the end of the stream, and then that end. It blocks
// while the link is stopped.
func (f *ingress) carry() {
	read := make([]byte, chunk)
	for {
		n, err := f.from.read(read)
		if n == 0 {
			f.err = err
			break
		}
		if !f.hand(read[:n]) {
			break
		}
	}
	f.conn.exhausted(f.from, f.err)
	f.mu.Lock()
	f.over = true
	to := f.into
	f.mu.Unlock()
	if to == nil {
		to = f.to
	}
	_ = to.Close() // never fails
}

// hand passes on the bytes that were read. It returns false if that is impossible.
func (f *ingress) hand(read []byte) bool {
	now, into, found, stopped := time.Now(), f.diverted(), true, f.conn.link.stopped.Load() != nil
	switch {
	case f.door == nil:
	case into != nil:
		f.conn.link.tap.Lock()
		found = f.find(read, now)
		f.conn.link.tap.Unlock()
	default:
		f.door.open(func() {
			if found = f.find(read, now); !found || stopped {
				return
			}
			f.door.arrived.Add(int64(len(read))) // at once
			if f.way == stream.Upstream {
				f.conn.link.tap.Between()
			}
		})
		if !stopped {
			return found
		}
	}
	if !found || stopped && !f.conn.flow() {
		return false
	}
	if into == nil {
		into = f.to
	}
	_, _ = into.Write(read) // never fails
	return true
}

// find finds the messages that are complete by now. It returns false if the bytes violate the
// protocol.
func (f *ingress) find(read []byte, now time.Time) bool {
	rest := read
	if len(f.buf) > 0 {
		f.buf = append(f.buf, read...)
		rest = f.buf
	}
	for {
		m, n, err := f.parse(rest)
		if err != nil {
			f.refuse(err)
			return false
		}
		if n == 0 {
			if len(f.buf) == 0 || len(rest) < len(f.buf) { // otherwise f.buf already holds all of it
				f.buf = append(f.buf[:0], rest...)
			}
			return true
		}
		f.end += int64(n)
		if m != nil {
			m.Conn, m.Request, m.More, m.SetOut, m.door, m.end = f.conn, f.way == stream.Upstream, len(rest) > n, now, f.door, f.end
			if login := f.conn.link.guard.translate(m.Words); login != nil {
				m.Words, m.Bytes = login, encode(login)
			} else {
				m.Bytes = bytes.Clone(rest[:n])
			}
			f.door.expect(m)
		}
		rest = rest[n:]
	}
}

// parse reads the first message in b and returns the number of bytes it takes, 0 while the message
// is incomplete. The message is nil if it asks for nothing, such as an empty line.
func (f *ingress) parse(b []byte) (m *Message, n int, err error) {
	if f.way == stream.Downstream {
		says, n, err := f.conn.talk.Reply(b)
		if n == 0 || err != nil {
			return nil, n, err
		}
		return &Message{Parts: says.Parts, Answers: says.Answers, Overtakes: says.Overtakes, Quiet: says.Quiet, GivesUp: says.GivesUp}, n, nil
	}
	asks, n, err := f.conn.talk.Request(b)
	if n == 0 || err != nil {
		return nil, n, err
	}
	f.number++
	if len(asks.Words) == 0 && !asks.Quiet {
		return nil, n, nil
	}
	return &Message{
		Words: asks.Words, Parts: asks.Parts, Number: f.number, Silent: asks.Silent, Opens: asks.Opens, Reads: asks.Reads, Within: asks.Within, Quiet: asks.Quiet, GivesUp: asks.GivesUp,
	}, n, nil
}

// refuse ends the connection because its bytes violate the link's protocol.
func (f *ingress) refuse(why error) {
	sender := "the server"
	if f.way == stream.Upstream {
		sender = "the client"
	}
	f.err = fmt.Errorf("proxy: link %s, connection %d: %s sent what is not %v (a link without a tap carries anything): %w",
		f.conn.link.name, f.conn.id, sender, f.conn.link.protocol, why)
	f.buf = nil
	f.conn.link.warn(f.err)
	f.conn.end(f.err, true)
}
