package proxy

import (
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// An egress stands where one direction of a connection ends, and whatever a tap lets
// in goes on to the process behind it. Whoever has come through without toxics
// opens it himself; what toxiproxy writes to it, and what is decided later, is
// let in by a goroutine of its own.
type egress struct {
	conn *Conn
	to   *side

	arrived atomic.Int64  // how many bytes have come
	ending  atomic.Bool   // no more will
	wake    chan struct{} // holds a note that there may be something to do

	listing sync.Mutex // guards coming; nothing else is done while it is held
	coming  []*Message // what set out and isn't settled, oldest first

	opening sync.Mutex // held by whoever opens the door, guards what follows
	lost    bool       // a message was dropped
}

func newDoor(c *Conn, to *side) *egress {
	return &egress{conn: c, to: to, wake: make(chan struct{}, 1)}
}

// expect tells the door, and the tap, of a message that sets out. Its bytes
// must come after that.
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

// Write implements io.Writer. It never fails, and never waits: a toxic that
// can't get rid of what it has can't be removed either. Of the bytes it only
// counts how many they are: toxics lose none and keep their order.
func (d *egress) Write(p []byte) (int, error) {
	d.arrived.Add(int64(len(p)))
	d.note()
	return len(p), nil
}

// Close implements io.Closer. It must be called once, behind the last Write.
func (d *egress) Close() error {
	defer d.conn.link.running.Done()
	d.ending.Store(true)
	d.note()
	return nil
}

func (d *egress) note() {
	select {
	case d.wake <- struct{}{}:
	default: // a note is there already
	}
}

// attend opens the door whenever somebody says so, until nothing comes any more
// or the connection has ended.
func (d *egress) attend() {
	for over := false; !over; {
		select {
		case <-d.wake:
		case <-d.conn.done:
		}
		ending := d.ending.Load() // before the look at what there is
		d.open(func() {})
		over = d.conn.ended() || ending && d.first() == nil
	}
	_ = d.to.Close()
}

// open lets in what may go in, behind something else that is to be told to the
// tap in one go. The tap knows of the next message before this one
// is written: whoever decides by turns must not hear of an answer first.
func (d *egress) open(first func()) {
	d.opening.Lock()
	defer d.opening.Unlock()
	now, tap := time.Now(), d.conn.link.tap
	tap.Lock()
	first()
	in, reset := d.decide(now)
	tap.Unlock()
	if len(in) > 0 {
		_, _ = d.to.Write(in) // which never fails
	}
	if reset {
		d.conn.Reset()
	}
}

// decide shows the tap what arrived, and returns what may go in. Callers hold
// d.opening, and the tap's lock.
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
			in = slices.Clip(m.Bytes) // most often it is the only one
		} else if verdict == forwarded {
			in = append(in, m.Bytes...)
		}
		d.lost = d.lost || verdict == dropped
		reset = verdict == broken
		d.listing.Lock()
		d.coming = slices.Delete(d.coming, 0, 1) // keeps the room, which is for few
		d.listing.Unlock()
	}
	return in, reset
}
