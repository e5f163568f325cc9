package proxy

import (
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// An egress is the end of one direction of a connection; it forwards to the process what a tap lets
// pass. Bytes that came without toxics are forwarded by the goroutine that carries them. Bytes that
// toxiproxy writes, and messages that are decided later, are forwarded by the egress's own
// goroutine.
type egress struct {
	conn *Conn
	to   *side

	arrived atomic.Int64  // number of bytes that have arrived
	ending  atomic.Bool   // no more bytes will arrive
	wake    chan struct{} // holds a token if there may be something to do

	listing sync.Mutex // guards coming; held for nothing else
	coming  []*Message // messages that were sent and are not settled, oldest first

	opening sync.Mutex // held while messages are forwarded; guards the field below
	lost    bool       // a message was dropped
}

func newDoor(c *Conn, to *side) *egress {
	return &egress{conn: c, to: to, wake: make(chan struct{}, 1)}
}

// expect announces a message that was sent to the egress and to the tap. Call it before the
// message's bytes are written.
func (d *egress) expect(m *Message) {
	d.listing.Lock()
	d.coming = append(d.coming, m)
	d.listing.Unlock()
	d.conn.link.tap.Sent(m)
}

func (d *egress) first() *Message {
	d.listing.Lock()
	defer d.listing.Unlock()
	if len(d.coming) == 0 {
		return nil
	}
	return d.coming[0]
}

// Write implements io.Writer. It never fails and never waits: a toxic that can't deliver its bytes
// can't be removed either. Write only counts the bytes, because toxics lose none and keep their
// order.
func (d *egress) Write(p []byte) (int, error) {
	d.arrived.Add(int64(len(p)))
	d.note()
	return len(p), nil
}

// Close implements io.Closer. Call it once, after the last Write.
func (d *egress) Close() error {
	defer d.conn.link.running.Done()
	d.ending.Store(true)
	d.note()
	return nil
}

func (d *egress) note() {
	select {
	case d.wake <- struct{}{}:
	default: // a token is there already
	}
}

// attend calls open at every note, until no more messages can come or the connection has ended.
func (d *egress) attend() {
	for over := false; !over; {
		select {
		case <-d.wake:
		case <-d.conn.done:
		}
		ending := d.ending.Load() // loaded before open looks at the messages
		d.open(func() {})
		over = d.conn.ended() || ending && d.first() == nil
	}
	_ = d.to.Close()
}

// open calls first, then forwards the messages that the tap lets pass, all under one hold of the
// tap's lock. The tap sees the next message before this one is written, so that a tap that decides
// by turns never sees a reply first.
func (d *egress) open(first func()) {
	d.opening.Lock()
	defer d.opening.Unlock()
	now, tap := time.Now(), d.conn.link.tap
	tap.Lock()
	first()
	in, reset := d.decide(now)
	tap.Unlock()
	if len(in) > 0 {
		_, _ = d.to.Write(in) // never fails
	}
	if reset {
		d.conn.Reset()
	}
}

// decide shows the tap the messages that arrived, and returns the bytes to forward. The caller
// holds d.opening and the tap's lock.
func (d *egress) decide(now time.Time) (in []byte, reset bool) {
	for !reset && !d.conn.ended() {
		m := d.first()
		if m == nil || m.end > d.arrived.Load() {
			break
		}
		if !m.shown {
			m.shown, m.Arrived = true, now
			if m.Lost = d.lost; m.Lost {
				m.verdict.Store(dropped)
			}
			d.conn.link.tap.Arrived(m)
		}
		m.verdict.CompareAndSwap(undecided, awaited)
		verdict := m.verdict.Load()
		if verdict == awaited {
			break
		}
		if verdict == forwarded && in == nil {
			in = slices.Clip(m.Bytes) // usually this is the only message
		} else if verdict == forwarded {
			in = append(in, m.Bytes...)
		}
		d.lost = d.lost || verdict == dropped
		reset = verdict == broken
		d.listing.Lock()
		d.coming = slices.Delete(d.coming, 0, 1) // keeps the capacity, which is small
		d.listing.Unlock()
	}
	return in, reset
}
