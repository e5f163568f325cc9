package real

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/lockfault/lockfault/faults/real/proxy"
	"github.com/lockfault/lockfault/internal/resp"
)

// An ajar gate is one before Begin and before the first fault: it has no
// orders, nobody records and nobody counts, so that a message need not go
// through the goroutine that plays the script, which isn't even told. It passes
// at once, and all that is kept is which requests are unanswered: once the gate
// is shut, which is for good, the script's goroutine decides on everything that
// comes from then on, and must know what the replies answer. The zero value is
// ajar. Safe for concurrent use.
type ajar struct {
	isShut atomic.Bool // set under mu
	mu     sync.Mutex
	asked  map[*proxy.Conn]*asked
}

// asked are the unanswered requests of a connection, oldest first.
type asked struct {
	wire *wire
	list []*message
}

// pass lets a message pass if the gate is ajar, and reports whether it is.
func (a *ajar) pass(on *wire, m *proxy.Message) bool {
	if a.isShut.Load() {
		return false
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.isShut.Load() {
		return false
	}
	so := a.asked[m.Conn]
	if so == nil {
		so = &asked{wire: on}
		if a.asked == nil {
			a.asked = map[*proxy.Conn]*asked{}
		}
		a.asked[m.Conn] = so
	}
	switch {
	case m.Request:
		r := &message{Message: m, entered: time.Now()}
		r.asks()
		so.list = append(so.list, r)
	case !resp.IsPush(m.Bytes) && len(so.list) > 0:
		if so.list[0].replies--; so.list[0].replies <= 0 {
			so.list = so.list[1:]
		}
	}
	m.Forward()
	return true
}

// closed forgets a connection.
func (a *ajar) closed(c *proxy.Conn) {
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.asked, c)
}

// underWay counts a client's unanswered requests.
func (a *ajar) underWay(client string) (n int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, so := range a.asked {
		if so.wire.client == client {
			n += len(so.list)
		}
	}
	return n
}

// shut has the script's goroutine decide on every message from now on. What is
// unanswered it takes over before it sees the next one.
func (w *World) shut() {
	a := &w.ajar
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.isShut.Load() {
		return
	}
	for proxied, so := range a.asked {
		if len(so.list) > 0 {
			w.inbox.put(func() { w.adopt(proxied, so) })
		}
	}
	a.asked = nil
	a.isShut.Store(true) // behind what is put in: whatever comes from now on is put in after it
}

// adopt takes over requests that passed before the gate was shut.
func (w *World) adopt(proxied *proxy.Conn, so *asked) {
	c := so.wire.conns[proxied]
	if c == nil || c.gone {
		return
	}
	for i, m := range so.list {
		m.conn, m.text = c, w.ledger.Command(c.wire.client, m.words)
		if i > 0 {
			so.list[i-1].then = m
		}
	}
	c.awaited, c.unanswered = so.list[0], len(so.list)
	if c.server.busy == nil && !blocks(c.awaited.words) {
		c.server.busy = c.awaited
	}
	for _, p := range proxied.Coming() {
		w.setOut(c, p)
	}
}
