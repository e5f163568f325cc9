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

// acceptPause is how long a link waits after it could not accept a connection.
const acceptPause = 10 * time.Millisecond

// A Link carries connections from a port of the loopback interface to an
// upstream. Proxies.Open makes one. It is safe for concurrent use.
type Link struct {
	proxies  *Proxies
	name     string
	guard    Auth
	protocol Protocol
	tap      Tap
	listener net.Listener
	toxics   *toxiproxy.ToxicCollection
	ctx      context.Context // ends dialling
	cancel   context.CancelFunc
	running  sync.WaitGroup // the accept loop, meeting and dialling, fronts, doors, and toxiproxy's writers

	stopped atomic.Pointer[chan struct{}] // closed by Start; nil while bytes flow

	changing sync.Mutex // held while toxics change, which takes time

	mu       sync.Mutex // guards what follows
	upstream string
	epoch    int        // how often connections were closed: those being dialled notice
	waiting  []net.Conn // for what they say first, the oldest first
	accepted int        // connections of the client
	conns    map[*Conn]bool
	active   map[string]stream.Direction // the toxics, by name
	closed   bool
}

// Name returns the link's name.
func (l *Link) Name() string { return l.name }

// Addr returns the host:port that the link listens on. It stays the same until
// Close.
func (l *Link) Addr() string { return l.listener.Addr().String() }

// accept takes connections until the listener closes.
func (l *Link) accept() {
	defer l.running.Done()
	for {
		client, err := l.listener.Accept()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil {
			l.warn(fmt.Errorf("accept: %w", err))
			select { // out of file descriptors, perhaps: trying at once again would only burn time
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

// connect dials the upstream for a client and carries what they say. A client
// whose upstream doesn't answer is reset, and so is whoever isn't the client.
func (l *Link) connect(client net.Conn, upstream string, epoch int) {
	defer l.running.Done()
	ahead, ok := l.guard.meet(client)
	if !l.met(client) {
		return // it was closed meanwhile
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
	if l.epoch != epoch { // closed meanwhile, as all others
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

// wait notes a connection that hasn't said yet who it is, and returns where it
// leads to if it is the client's. False if the link is closed.
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

// met notes that a connection doesn't wait any more; false if it was closed.
func (l *Link) met(client net.Conn) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	i := slices.Index(l.waiting, client)
	if i >= 0 {
		l.waiting = slices.Delete(l.waiting, i, i+1)
	}
	return i >= 0
}

// forget lets go of a connection that has ended, and tells the tap.
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

// Redirect sends new connections to another upstream, a host:port, and resets
// those that there are.
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

// Reset closes all connections at once; both ends see them reset by their
// peer, and what was on its way is lost. It doesn't wait for the tap's Closed.
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

// Stop stalls the link: what is sent from now on waits, in both directions,
// until Start, and nothing is lost. On a stopped link it does nothing.
func (l *Link) Stop() {
	started := make(chan struct{})
	l.stopped.CompareAndSwap(nil, &started)
}

// Start ends a stall. On a link that isn't stopped it does nothing.
func (l *Link) Start() {
	if started := l.stopped.Swap(nil); started != nil {
		close(*started)
	}
}

// Close stops listening, resets all connections, and returns when they have
// ended and the tap was told. It must not be called by a Tap's method. Calling
// it again does nothing.
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
	l.clear() // what waits in a toxic would hold up the end
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
