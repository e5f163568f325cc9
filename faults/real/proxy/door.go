package proxy

import (
	"sync"
	"sync/atomic"
)

// A door stands where one direction of a connection ends: toxiproxy writes to
// it what came through the toxics, and whatever a tap lets in goes on to the
// process behind it. Writing to it doesn't wait for that: a toxic that can't
// get rid of what it has can't be removed either.
type door struct {
	conn *Conn
	to   *side

	arrived atomic.Int64  // how many bytes have come
	ending  atomic.Bool   // no more will
	wake    chan struct{} // holds a note that there may be something to do

	listing sync.Mutex // guards coming; nothing else is done while it is held
	coming  []*Message // what set out and isn't settled, oldest first

	opening sync.Mutex // held by whoever opens the door, guards what follows
	lost    bool       // a message was dropped
	shut    bool       // for good
}

func newDoor(c *Conn, to *side) *door {
	return &door{conn: c, to: to, wake: make(chan struct{}, 1)}
}

// expect tells the door, and the tap, of a message that sets out. Its bytes
// must come after that.
func (d *door) expect(m *Message) {
	d.listing.Lock()
	d.coming = append(d.coming, m)
	d.listing.Unlock()
	d.conn.link.tap.Sent(m)
}

func (d *door) first() *Message {
	d.listing.Lock()
	defer d.listing.Unlock()
	if len(d.coming) == 0 {
		return nil
	}
	return d.coming[0]
}

// list returns what nothing was decided about.
func (d *door) list() (list []*Message) {
	d.listing.Lock()
	defer d.listing.Unlock()
	for _, m := range d.coming {
		if m.verdict.Load() == undecided {
			list = append(list, m)
		}
	}
	return list
}

// Write implements io.Writer for toxiproxy. It never fails. Of the bytes it
// only counts how many they are: toxics lose none and keep their order.
func (d *door) Write(p []byte) (int, error) {
	d.arrived.Add(int64(len(p)))
	if d.opening.TryLock() {
		d.open()
		d.opening.Unlock()
	} else {
		d.note() // to whoever is at it
	}
	return len(p), nil
}

// Close implements io.Closer for toxiproxy, which calls it once, behind the
// last Write.
func (d *door) Close() error {
	defer d.conn.link.running.Done()
	d.ending.Store(true)
	d.note()
	return nil
}

func (d *door) note() {
	select {
	case d.wake <- struct{}{}:
	default: // a note is there already
	}
}

// attend opens the door whenever somebody says so, until nothing comes any more
// or the connection has ended.
func (d *door) attend() {
	for over := false; !over; {
		select {
		case <-d.wake:
		case <-d.conn.done:
		}
		d.opening.Lock()
		ending := d.ending.Load() // before the look at what there is
		d.open()
		over = d.conn.ended() || ending && d.first() == nil
		d.shut = over
		d.opening.Unlock()
	}
	_ = d.to.Close()
}

// open lets in what may go in. The tap knows of the next message before this one
// is written: whoever decides by turns must not hear of an answer first. Callers
// hold d.opening.
func (d *door) open() {
	var in []byte
	reset := false
	for !reset && !d.shut && !d.conn.ended() {
		m := d.first()
		if m == nil || m.end > d.arrived.Load() {
			break
		}
		if !m.shown {
			m.shown = true
			if m.Lost = d.lost; m.Lost {
				m.verdict.Store(dropped)
			}
			d.conn.link.tap.Arrived(m)
		}
		verdict := m.verdict.Load()
		if verdict == undecided {
			break
		}
		if verdict == forwarded {
			in = append(in, m.Bytes...)
		}
		d.lost = d.lost || verdict == dropped
		reset = verdict == broken
		d.listing.Lock()
		d.coming[0] = nil
		d.coming = d.coming[1:]
		d.listing.Unlock()
	}
	if len(in) > 0 {
		_, _ = d.to.Write(in) // which never fails
	}
	if reset {
		d.conn.Reset()
	}
}
