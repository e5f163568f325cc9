// Package proxy puts links between clients and servers that can be
// broken on purpose. A link listens on a loopback port and carries what comes
// in to an upstream address, through the toxics of an embedded toxiproxy if it
// has any (latency, bandwidth and the like) and, where somebody wants to look, through
// a gate that shows each message to a Tap and lets it wait, pass, or be
// lost. A [Protocol] says where messages end; it is RESP unless another is given.
//
// Addresses and a Tap come in; messages go to the Tap, bytes to the servers.
// The package knows nothing of worlds, scripts and clocks, and imports of this
// module only internal/resp.
//
// # Where the gate stands
//
//	client ── front ── toxics ── door ──► server
//	client ◄── door ── toxics ── front ── server
//
// The gate of a direction has two parts. At its front, where a process is read,
// messages are found and seen to set out; at its door, where the other is written to,
// they arrive, and the tap decides on them. So a message that is held, or lost
// in a partition, has had its latency by then, and a server is known to be done
// with a request when it answers, not when that answer has crossed a slow link.
//
// The gate is not a toxic in toxiproxy's chain. A toxic that waits with a
// message in its hands blocks those before it, and toxiproxy must interrupt a
// neighbour, with a lock taken, whenever a toxic is added or removed: to change
// a latency would hang for as long as a message is held. A toxic also sees
// neither its connection nor the other direction. The door knows both, and
// takes what toxiproxy writes without making it wait.
//
// # What toxiproxy is used for
//
// Connections are accepted and dialled here, for toxiproxy's own accept loop
// dials one by one, hands out no connection that could be reset, and must give
// up its port to change the upstream. Each direction of each connection becomes
// a toxiproxy link when its link has a toxic for the first time; what nothing
// slows down goes from the front to the door in one goroutine.
package proxy

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"

	"github.com/Shopify/toxiproxy/v2"
	"github.com/Shopify/toxiproxy/v2/stream"
	"github.com/rs/zerolog"
)

// ErrClosed says that the link, or all of them, was closed before.
var ErrClosed = errors.New("proxy: closed")

// ErrReset is why a connection ended that was closed from here: by Reset,
// Redirect, Close, or a toxic.
var ErrReset = errors.New("proxy: the connection was reset")

// Proxies is an embedded toxiproxy: any number of links in this process. Use
// New to make one. It is safe for concurrent use.
type Proxies struct {
	server *toxiproxy.ApiServer // never listens; toxiproxy's links ask it for their metrics and logger

	mu     sync.Mutex
	links  map[*Link]bool
	closed bool
}

// New returns an empty set of links. They log to the writer, one JSON object a
// line; nil silences them.
func New(logs io.Writer) *Proxies {
	registerToxics()
	logger := zerolog.Nop()
	if logs != nil {
		logger = zerolog.New(zerolog.SyncWriter(logs)).With().Timestamp().Logger().Level(zerolog.InfoLevel)
	}
	return &Proxies{
		server: toxiproxy.NewServer(toxiproxy.NewMetricsContainer(nil), logger),
		links:  map[*Link]bool{},
	}
}

// Open opens a link from a free port of the loopback interface to upstream, a
// host:port. Each connection's messages, of RESP, are shown to the tap; with nil nobody
// looks and the bytes may be anything, which is what a link between a primary
// and its replica wants. The name is for logs and errors.
func (p *Proxies) Open(name, upstream string, tap Tap) (*Link, error) {
	return p.open(Loopback, name, upstream, Auth{}, RESP{}, tap)
}

// OpenGuarded is Open with a tap for one client, who is asked for a password.
func (p *Proxies) OpenGuarded(name, upstream string, guard Auth, tap Tap) (*Link, error) {
	return p.open(Loopback, name, upstream, guard, RESP{}, tap)
}

// OpenSpeaking is Open with what is spoken there instead of RESP.
func (p *Proxies) OpenSpeaking(name, upstream string, protocol Protocol, tap Tap) (*Link, error) {
	return p.open(Loopback, name, upstream, Auth{}, protocol, tap)
}

// Loopback is where links listen unless they are told otherwise.
const Loopback = "127.0.0.1"

// OpenAt is Open with the IP address of this machine to listen at, for those
// who can't reach its loopback interface.
func (p *Proxies) OpenAt(ip, name, upstream string, tap Tap) (*Link, error) {
	return p.open(ip, name, upstream, Auth{}, RESP{}, tap)
}

func (p *Proxies) open(ip, name, upstream string, guard Auth, protocol Protocol, tap Tap) (*Link, error) {
	if err := checkAddress(upstream); err != nil {
		return nil, fmt.Errorf("proxy: open link %s: %w", name, err)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return nil, fmt.Errorf("open link %s: %w", name, ErrClosed)
	}
	listener, err := net.Listen("tcp", net.JoinHostPort(ip, "0"))
	if err != nil {
		return nil, fmt.Errorf("proxy: open link %s: %w", name, err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	l := &Link{
		proxies:  p,
		name:     name,
		guard:    guard,
		protocol: protocol,
		tap:      tap,
		listener: listener,
		toxics:   toxiproxy.NewProxy(p.server, name, listener.Addr().String(), upstream).Toxics,
		ctx:      ctx,
		cancel:   cancel,
		upstream: upstream,
		conns:    map[*Conn]bool{},
		active:   map[string]stream.Direction{},
	}
	p.links[l] = true
	l.running.Add(1)
	go l.accept()
	return l, nil
}

// Close closes all links and returns when their connections have ended and
// their taps were told. It must not be called by a Tap's method. Calling it
// again does nothing.
func (p *Proxies) Close() error {
	p.mu.Lock()
	p.closed = true
	links := make([]*Link, 0, len(p.links))
	for l := range p.links {
		links = append(links, l)
	}
	p.mu.Unlock()
	var errs []error
	for _, l := range links {
		errs = append(errs, l.Close())
	}
	return errors.Join(errs...)
}

func (p *Proxies) forget(l *Link) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.links, l)
}

func checkAddress(upstream string) error {
	if _, _, err := net.SplitHostPort(upstream); err != nil {
		return fmt.Errorf("the upstream must be host:port: %w", err)
	}
	return nil
}
