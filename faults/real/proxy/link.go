package proxy

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/Shopify/toxiproxy/v2"
	"github.com/Shopify/toxiproxy/v2/stream"
)

// acceptPause is how long a link waits after it failed to accept a connection.
const acceptPause = 10 * time.Millisecond

// A Link carries connections from a port, of the loopback interface unless OpenAt chose another
// address, to an upstream. Proxies.Open makes a Link. It is safe for concurrent use.
type Link struct {
	proxies  *Proxies
	name     string
	guard    Auth
	protocol Protocol
	tap      Tap
	listener net.Listener
	toxics   *toxiproxy.ToxicCollection
	ctx      context.Context // cancels dialling
	cancel   context.CancelFunc
	running  sync.WaitGroup // the accept loop, logins and dialling, ingresses, egresses, and toxiproxy's writers

	stopped atomic.Pointer[chan struct{}] // closed by Start; nil while bytes flow

	changing sync.Mutex // held while toxics change, which takes time

	mu       sync.Mutex // guards the fields below
	upstream string
	epoch    int        // how often all connections were closed; a dial in progress compares it
	waiting  []net.Conn // connections without a login yet, the oldest first
	accepted int        // number of client connections so far
	conns    map[*Conn]bool
	active   map[string]stream.Direction // the toxics, by name
	closed   bool
}

// Name returns the link's name.
func (l *Link) Name() string { return l.name }

// Addr returns the host:port that the link listens on. The address stays the same until Close.
func (l *Link) Addr() string { return l.listener.Addr().String() }

// accept accepts connections until the listener closes.
func (l *Link) accept() {
	defer l.running.Done()
	for {
		client, err := l.listener.Accept()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil {
			l.warn(fmt.Errorf("accept: %w", err))
			select { // the process may be out of file descriptors: an immediate retry would only waste time
			case <-l.ctx.Done():
			case <-time.After(acceptPause):
			}
			continue
		}
		if upstream, epoch, ok := l.wait(client); ok {
			l.running.Add(1)
			go l.connect(client, upstream, epoch)
		}
	}
}

// connect waits for the client's login, dials the upstream and starts to carry bytes. If the
// upstream refuses the connection, the client is reset; a connection with a wrong login is closed
// in order.
func (l *Link) connect(client net.Conn, upstream string, epoch int) {
	defer l.running.Done()
	ahead, ok := l.guard.meet(client)
	if !l.met(client) {
		return // the connection was closed meanwhile
	}
	if !ok {
		closeSocket(client, false)
		return
	}
	var dialer net.Dialer
	server, err := dialer.DialContext(l.ctx, "tcp", upstream)
	if err != nil {
		l.warn(fmt.Errorf("connect to the upstream: %w", err))
		closeSocket(client, true)
		return
	}
	l.mu.Lock()
	if l.epoch != epoch { // all connections were closed meanwhile
		l.mu.Unlock()
		closeSocket(client, true)
		closeSocket(server, true)
		return
	}
	c := newConn(l, client, ahead, server)
	l.conns[c] = true
	l.mu.Unlock()
	if l.tap != nil {
		l.tap.Lock()
		l.tap.Opened(c)
		l.tap.Unlock()
	}
	c.start()
}

// wait records a connection that has no login yet, and returns the upstream for it. It returns
// false if the link is closed.
func (l *Link) wait(client net.Conn) (upstream string, epoch int, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		closeSocket(client, true)
		return "", 0, false
	}
	if len(l.waiting) == maxStrangers && l.guard.Asks != "" {
		closeSocket(l.waiting[0], true)
		l.waiting = slices.Delete(l.waiting, 0, 1)
	}
	l.waiting = append(l.waiting, client)
	return l.upstream, l.epoch, true
}

// met records that a connection no longer waits for its login. It returns false if the connection
// was closed.
func (l *Link) met(client net.Conn) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	i := slices.Index(l.waiting, client)
	if i >= 0 {
		l.waiting = slices.Delete(l.waiting, i, i+1)
	}
	return i >= 0
}

// forget removes a connection that has ended, and notifies the tap.
func (l *Link) forget(c *Conn) {
	l.mu.Lock()
	delete(l.conns, c)
	l.mu.Unlock()
	if l.tap != nil {
		l.tap.Lock()
		l.tap.Closed(c)
		l.tap.Unlock()
	}
}

// Redirect sends new connections to another upstream, a host:port, and resets the existing
// connections.
func (l *Link) Redirect(upstream string) error {
	if err := checkAddress(upstream); err != nil {
		return fmt.Errorf("proxy: redirect link %s: %w", l.name, err)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return fmt.Errorf("redirect link %s: %w", l.name, ErrClosed)
	}
	l.upstream = upstream
	l.resetLocked()
	return nil
}

// Reset closes all connections at once. Both ends see a reset by the peer, and bytes in transit are
// lost. Reset does not wait for the tap's Closed.
func (l *Link) Reset() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.resetLocked()
}

func (l *Link) resetLocked() {
	l.epoch++
	for _, client := range l.waiting {
		closeSocket(client, true)
	}
	l.waiting = nil
	for c := range l.conns {
		c.end(ErrReset, true)
	}
}

// Stop stalls the link: bytes sent from now on wait in both directions until Start, and nothing is
// lost. On a stopped link Stop does nothing.
func (l *Link) Stop() {
	started := make(chan struct{})
	l.stopped.CompareAndSwap(nil, &started)
}

// Start ends a stall. On a link that isn't stopped Start does nothing.
func (l *Link) Start() {
	if started := l.stopped.Swap(nil); started != nil {
		close(*started)
	}
}

// Close stops listening, resets all connections, and returns after they have ended and the tap was
// notified. A Tap's method must not call Close. Another call does nothing.
func (l *Link) Close() error {
	l.mu.Lock()
	var err error
	if !l.closed {
		l.closed = true
		l.cancel()
		err = l.listener.Close()
		l.resetLocked()
	}
	l.mu.Unlock()
	l.clear() // bytes that wait in a toxic would delay the end
	l.running.Wait()
	l.proxies.forget(l)
	if err != nil {
		return fmt.Errorf("proxy: close link %s: %w", l.name, err)
	}
	return nil
}

func (l *Link) warn(err error) {
	l.proxies.server.Logger.Warn().Str("link", l.name).Err(err).Send()
}
