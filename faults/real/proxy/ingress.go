package proxy

import (
	"bytes"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/Shopify/toxiproxy/v2/stream"
)

// chunk is how much is read at a time, in bytes.
const chunk = 16 << 10

// An ingress stands where one direction of a connection begins: it reads what a
// process writes and hands that on, to the other end or, once there was a
// toxic, to toxiproxy. Where somebody looks it finds the messages in it and tells
// the door at the other end what is going to arrive there. Only the goroutine that
// carries may touch what no lock guards.
type ingress struct {
	conn *Conn
	from *side
	way  stream.Direction
	door *egress        // nil where nobody looks
	to   io.WriteCloser // the other end: the door, or the process behind it

	buf    []byte // what was read of a message that isn't complete
	end    int64  // where the last complete one ended
	number int    // how many requests it found
	err    error  // why there is nothing more to read

	mu   sync.Mutex     // guards what follows
	into io.WriteCloser // where toxiproxy reads; nil where it isn't needed yet
	over bool
}

// divert has all that is read from now on pass the link's toxics. What was read
// before is there already, or about to be put there by the goroutine that
// carries, which puts the next thing somewhere only when it has done so: nothing
// is lost or overtaken. There is no way back, for then what toxics delay would have to be waited
// for.
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

// diverted returns where toxiproxy reads, if it does.
func (f *ingress) diverted() io.WriteCloser {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.into
}

// carry hands on what the process writes until that ends, and then the end. It
// blocks while the link is stopped.
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
	_ = to.Close() // which never fails
}

// hand hands on what was read; false if that is impossible.
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
	_, _ = into.Write(read) // which never fails
	return true
}

// find finds the messages that are complete by now; false if it isn't what is spoken.
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
			if len(f.buf) == 0 || len(rest) < len(f.buf) { // else it is all there already
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

// parse reads the first message in b, and how many bytes it takes: 0 while it is incomplete. What asks for nothing, as an empty
// line, is none.
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

// refuse ends the connection because what it carries is not what is spoken there.
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
