// Package proxy puts links between clients and servers, and breaks the links on command. A link
// listens on a loopback port and carries bytes to an upstream address. On the way, the bytes pass
// the toxics of an embedded toxiproxy (latency, bandwidth, timeout) if the link has any and, on a
// link with a Tap, a gate that shows each message to the Tap and holds, forwards or drops it. A
// [Protocol] finds the ends of messages; the default is RESP.
//
// The input is addresses and a Tap; the output is messages to the Tap and bytes to the servers. The
// package must not depend on worlds, scripts or clocks, and imports from this module only
// internal/resp.
//
// # Where the gate stands
//
//	client ── ingress ── toxics ── egress ──► server
//	client ◄── egress ── toxics ── ingress ── server
//
// The gate of a direction has two parts. The ingress reads from a process, finds the messages and
// shows them as sent. The egress writes to the other process: there messages arrive, and the tap
// decides on them. A message that is held, or lost in a partition, has therefore had its latency by
// then, and a server is known to have finished a request when it answers, not when that answer has
// crossed a slow link.
//
// The gate is not a toxic in toxiproxy's chain. A toxic that holds a message blocks the toxics
// before it, and toxiproxy must interrupt a neighbour, with a lock held, whenever a toxic is added
// or removed: a change of latency would hang for as long as a message is held. A toxic also sees
// neither its connection nor the other direction. The egress has both, and accepts what toxiproxy
// writes without making toxiproxy wait.
//
// # What toxiproxy is used for
//
// This package accepts and dials connections itself: toxiproxy's accept loop dials one connection
// at a time, exposes no connection that could be reset, and must give up its port to change the
// upstream. Each direction of each connection becomes a toxiproxy link when its link gets its first
// toxic; without toxics, one goroutine carries the bytes from the ingress to the egress.
package proxy

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"slices"
	"sync"

	"github.com/Shopify/toxiproxy/v2"
	"github.com/Shopify/toxiproxy/v2/stream"
	"github.com/rs/zerolog"
)

// ErrClosed reports that the link, or the set of links, is closed.
var ErrClosed = errors.New("proxy: closed")

// ErrReset reports that this package closed the connection: by Reset, Redirect, Close, or a toxic.
var ErrReset = errors.New("proxy: the connection was reset")

// Proxies is an embedded toxiproxy: any number of links in this process. Use New to make one. It is
// safe for concurrent use.
type Proxies struct {
	server *toxiproxy.ApiServer // never listens; supplies metrics and the logger to toxiproxy's links

	mu     sync.Mutex
	links  map[*Link]bool
	closed bool
}

// New returns an empty set of links. The links log to the writer, one JSON object per line; a nil
// writer disables logging.
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

// Open opens a link from a free port of the loopback interface to upstream, a host:port. The tap
// sees each connection's RESP messages. With a nil tap the bytes are not parsed and may be
// anything, as on a link between a primary and its replica. The name is for logs and errors.
func (p *Proxies) Open(name, upstream string, tap Tap) (*Link, error) {
	return p.open(Loopback, name, upstream, Auth{}, RESP{}, tap)
}

// OpenGuarded acts like Open for a link with one client, which must show a password.
func (p *Proxies) OpenGuarded(name, upstream string, guard Auth, tap Tap) (*Link, error) {
	return p.open(Loopback, name, upstream, guard, RESP{}, tap)
}

// OpenSpeaking acts like Open, with another protocol than RESP.
func (p *Proxies) OpenSpeaking(name, upstream string, protocol Protocol, tap Tap) (*Link, error) {
	return p.open(Loopback, name, upstream, Auth{}, protocol, tap)
}

// Loopback is the address that links listen on by default.
const Loopback = "127.0.0.1"

// OpenAt acts like Open, but listens on the given IP address of this machine, for peers that can't
// reach its loopback interface.
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

// Close closes all links, and returns after their connections have ended and their taps were
// notified. A Tap's method must not call Close. Another call does nothing.
func (p *Proxies) Close() error {
	p.mu.Lock()
	p.closed = true
	links := slices.Collect(maps.Keys(p.links))
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
