package external

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"sync"
)

// A forwarder listens on a loopback port and carries connections to a server that speaks TLS,
// because the gate must read plain text. A client that connects to the port must still log in. It
// is safe for concurrent use.
type forwarder struct {
	to       address
	listener net.Listener
	life     context.Context
	end      context.CancelFunc
	running  sync.WaitGroup

	mu    sync.Mutex
	conns map[net.Conn]bool // nil after close
}

func newForwarder(to address) (*forwarder, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("external: listening for %s: %w", to, err)
	}
	f := &forwarder{to: to, listener: listener, conns: map[net.Conn]bool{}}
	f.life, f.end = context.WithCancel(context.Background())
	f.running.Go(f.accept)
	return f, nil
}

func (f *forwarder) addr() string { return f.listener.Addr().String() }

// close closes all connections and returns when no goroutine runs any more.
func (f *forwarder) close() {
	f.end()
	f.listener.Close()
	f.mu.Lock()
	conns := f.conns
	f.conns = nil
	f.mu.Unlock()
	for c := range conns {
		abandon(c)
	}
	f.running.Wait()
}

// accept accepts connections until the listener closes or fails; after that, clients are refused.
func (f *forwarder) accept() {
	defer f.listener.Close()
	for {
		plain, err := f.listener.Accept()
		if err != nil {
			return
		}
		f.running.Go(func() { f.carry(plain) })
	}
}

// keep registers an open connection. It returns false if the forwarder is closed.
func (f *forwarder) keep(c net.Conn) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.conns == nil {
		return false
	}
	f.conns[c] = true
	return true
}

func (f *forwarder) drop(c net.Conn) {
	f.mu.Lock()
	delete(f.conns, c)
	f.mu.Unlock()
	abandon(c)
}

// carry carries one connection in both directions, until both sides have ended or one has failed.
func (f *forwarder) carry(plain net.Conn) {
	defer f.drop(plain)
	if !f.keep(plain) {
		return
	}
	ctx, cancel := context.WithTimeout(f.life, patience)
	defer cancel()
	dialer := tls.Dialer{Config: f.to.tls}
	secret, err := dialer.DialContext(ctx, "tcp", f.to.at)
	if err != nil {
		return // the client's connection is reset, as by a server that is down
	}
	defer f.drop(secret)
	if !f.keep(secret) {
		return
	}
	var ways sync.WaitGroup
	ways.Go(func() { pour(secret, plain) })
	ways.Go(func() { pour(plain, secret) })
	ways.Wait()
}

// pour copies the bytes of one side to the other, and then the end of the stream; an error closes
// both.
func pour(to, from net.Conn) {
	if _, err := io.Copy(to, from); err != nil {
		abandon(to)
		abandon(from)
		return
	}
	if half, ok := to.(interface{ CloseWrite() error }); ok {
		_ = half.CloseWrite() // if this fails, the other direction fails, too
	}
}

// abandon closes a connection without waiting; the other end sees a reset.
func abandon(c net.Conn) {
	under := c
	if secret, ok := c.(*tls.Conn); ok {
		under = secret.NetConn()
	}
	if tcp, ok := under.(*net.TCPConn); ok {
		_ = tcp.SetLinger(0)
	}
	_ = under.Close()
}
