package proxy_test

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"runtime"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/lockfault/lockfault/faults/real/proxy"
	"github.com/lockfault/lockfault/internal/resp"
)

// patience is how long a test waits for what must happen. It is no measure of
// anything: on a busy machine it may take as long as that.
const patience = 3 * time.Minute

// eventually waits until a condition holds.
func eventually(t testing.TB, what string, holds func() bool) {
	t.Helper()
	for deadline := time.Now().Add(patience); !holds(); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("after %s: not %s", patience, what)
		}
	}
}

// noneLeft fails a test that leaves goroutines behind, once all that it
// cleaned up has run.
func noneLeft(t *testing.T) {
	t.Helper()
	before := runtime.NumGoroutine()
	t.Cleanup(func() {
		deadline := time.Now().Add(patience)
		for runtime.NumGoroutine() > before {
			if time.Now().After(deadline) {
				stacks := make([]byte, 1<<20)
				t.Errorf("%d goroutines before, %d after:\n%s", before, runtime.NumGoroutine(), stacks[:runtime.Stack(stacks, true)])
				return
			}
			time.Sleep(time.Millisecond)
		}
	})
}

// server is a Redis of the tests: it answers each request with an array of its
// words and keeps what it was asked.
type server struct {
	listener net.Listener

	mu    sync.Mutex
	conns []*net.TCPConn
	asked []string
	ended int // connections that the client's side has ended
	wg    sync.WaitGroup
}

func startServer(t testing.TB) *server {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := &server{listener: listener}
	s.wg.Go(func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			s.mu.Lock()
			s.conns = append(s.conns, conn.(*net.TCPConn))
			s.mu.Unlock()
			s.wg.Go(func() { s.serve(conn) })
		}
	})
	t.Cleanup(func() {
		listener.Close()
		s.hangUp()
		s.wg.Wait()
	})
	return s
}

func (s *server) addr() string { return s.listener.Addr().String() }

func (s *server) serve(conn net.Conn) {
	defer conn.Close()
	var buf []byte
	chunk := make([]byte, 4096)
	for {
		n, err := conn.Read(chunk)
		buf = append(buf, chunk[:n]...)
		for {
			words, used, err := resp.Command(buf)
			if used == 0 || err != nil {
				break
			}
			buf = buf[used:]
			if len(words) == 0 {
				continue
			}
			s.mu.Lock()
			s.asked = append(s.asked, strings.Join(words, " "))
			s.mu.Unlock()
			if _, err := conn.Write(request(words...)); err != nil {
				break
			}
		}
		if err != nil {
			s.mu.Lock()
			s.ended++
			s.mu.Unlock()
			return
		}
	}
}

// hangUp closes the server's end of all connections.
func (s *server) hangUp() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, conn := range s.conns {
		conn.Close()
	}
	s.conns = nil
}

// say writes something unasked on all connections.
func (s *server) say(bytes string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, conn := range s.conns {
		_, _ = io.WriteString(conn, bytes)
	}
}

func (s *server) requests() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.asked)
}

func (s *server) endings() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.ended
}

// request returns a request in RESP.
func request(words ...string) []byte {
	b := fmt.Appendf(nil, "*%d\r\n", len(words))
	for _, word := range words {
		b = fmt.Appendf(b, "$%d\r\n%s\r\n", len(word), word)
	}
	return b
}

// client is one end of a connection.
type client struct {
	t testing.TB
	*net.TCPConn
	in *bufio.Reader
}

func dial(t testing.TB, addr string) *client {
	t.Helper()
	conn, err := net.DialTimeout("tcp", addr, patience)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	conn.SetDeadline(time.Now().Add(patience))
	return &client{t: t, TCPConn: conn.(*net.TCPConn), in: bufio.NewReader(conn)}
}

// send writes requests, given as words that a space separates.
func (c *client) send(lines ...string) {
	c.t.Helper()
	var b []byte
	for _, line := range lines {
		b = append(b, request(strings.Fields(line)...)...)
	}
	c.write(string(b))
}

func (c *client) write(bytes string) {
	c.t.Helper()
	if _, err := io.WriteString(c, bytes); err != nil {
		c.t.Fatal(err)
	}
}

// want reads replies and compares them.
func (c *client) want(lines ...string) {
	c.t.Helper()
	for _, line := range lines {
		want := request(strings.Fields(line)...)
		got := make([]byte, len(want))
		if n, err := io.ReadFull(c.in, got); err != nil || string(got) != string(want) {
			c.t.Fatalf("the client got %q, %v; want %q", got[:n], err, want)
		}
	}
}

func (c *client) ask(line string) {
	c.t.Helper()
	c.send(line)
	c.want(line)
}

// wantEnd reads the end of the connection.
func (c *client) wantEnd() {
	c.t.Helper()
	if b, err := c.in.ReadByte(); err != io.EOF {
		c.t.Fatalf("the client read %q, %v; want the end", b, err)
	}
}

// wantReset reads a reset.
func (c *client) wantReset() {
	c.t.Helper()
	if b, err := c.in.ReadByte(); !errors.Is(err, syscall.ECONNRESET) {
		c.t.Fatalf("the client read %q, %v; want a reset", b, err)
	}
}

// wantSilence fails if anything comes. It can't fail where nothing does: the
// deadline is over already.
func (c *client) wantSilence() {
	c.t.Helper()
	c.SetReadDeadline(time.Now().Add(20 * time.Millisecond))
	if b, err := c.in.ReadByte(); !errors.Is(err, os.ErrDeadlineExceeded) {
		c.t.Fatalf("the client read %q, %v; want nothing", b, err)
	}
	c.SetReadDeadline(time.Now().Add(patience))
}

// free is the lock of a tap that permits concurrent calls.
type free struct{}

func (free) Lock()   {}
func (free) Unlock() {}

// tap records what it sees, forwards everything except what it should hold or drop, and fails its
// test if a connection's calls come in a wrong order.
type tap struct {
	free
	t testing.TB

	mu     sync.Mutex
	holds  func(*proxy.Message) bool
	drops  func(*proxy.Message) bool
	held   []*proxy.Message
	sent   []string
	seen   []string
	coming map[*proxy.Message]bool
	states map[*proxy.Conn]string
	closed []*proxy.Conn
}

func newTap(t testing.TB) *tap {
	none := func(*proxy.Message) bool { return false }
	return &tap{t: t, holds: none, drops: none, coming: map[*proxy.Message]bool{}, states: map[*proxy.Conn]string{}}
}

// is returns a condition: a request, or a reply, whose first word is as given.
func is(way, first string) func(*proxy.Message) bool {
	return func(m *proxy.Message) bool { return strings.HasPrefix(describe(m), way+" "+first) }
}

func describe(m *proxy.Message) string {
	words, _, err := resp.Command(m.Bytes) // a reply of the test server reads as one
	text := strings.Join(words, " ")
	if err != nil {
		text = string(m.Bytes)
	}
	if m.Lost {
		text += " (lost)"
	}
	if m.Request {
		return "> " + text
	}
	return "< " + text
}

func (p *tap) Between() {}

func (p *tap) Opened(c *proxy.Conn) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.states[c] != "" {
		p.t.Errorf("connection %d opened when it was %s", c.ID(), p.states[c])
	}
	p.states[c] = "open"
}

func (p *tap) Sent(m *proxy.Message) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.states[m.Conn] != "open" {
		p.t.Errorf("a message set out on connection %d when it was %q", m.Conn.ID(), p.states[m.Conn])
	}
	p.sent = append(p.sent, describe(m))
	p.coming[m] = true
}

func (p *tap) Arrived(m *proxy.Message) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.states[m.Conn] != "open" {
		p.t.Errorf("a message on connection %d when it was %q", m.Conn.ID(), p.states[m.Conn])
	}
	if !p.coming[m] {
		p.t.Errorf("%s arrived, and had not set out", describe(m))
	}
	delete(p.coming, m)
	p.seen = append(p.seen, describe(m))
	switch {
	case m.Lost:
	case p.holds(m):
		p.held = append(p.held, m)
	case p.drops(m):
		m.Drop()
	default:
		m.Forward()
	}
}

func (p *tap) Closed(c *proxy.Conn) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.states[c] != "open" {
		p.t.Errorf("connection %d closed when it was %q", c.ID(), p.states[c])
	}
	p.states[c] = "closed"
	p.closed = append(p.closed, c)
}

// ended returns how many of them have closed.
func (p *tap) ended() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.closed)
}

func (p *tap) hold(which func(*proxy.Message) bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.holds = which
}

func (p *tap) drop(which func(*proxy.Message) bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.drops = which
}

func (p *tap) messages() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.seen)
}

// sending returns what has set out.
func (p *tap) sending() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.sent)
}

// waits returns the message that is held next.
func (p *tap) waits() *proxy.Message {
	p.t.Helper()
	var m *proxy.Message
	eventually(p.t, "a message held", func() bool {
		p.mu.Lock()
		defer p.mu.Unlock()
		if len(p.held) == 0 {
			return false
		}
		m, p.held = p.held[0], p.held[1:]
		return true
	})
	return m
}

// endings waits until so many connections have closed and returns them.
func (p *tap) endings(n int) []*proxy.Conn {
	p.t.Helper()
	var closed []*proxy.Conn
	eventually(p.t, fmt.Sprintf("%d connections closed", n), func() bool {
		p.mu.Lock()
		defer p.mu.Unlock()
		closed = slices.Clone(p.closed)
		return len(closed) >= n
	})
	if len(closed) != n {
		p.t.Fatalf("%d connections closed; want %d", len(closed), n)
	}
	return closed
}

// rig is a server, a link to it, and a tap on that.
type rig struct {
	server  *server
	tap     *tap
	proxies *proxy.Proxies
	link    *proxy.Link
}

func newRig(t *testing.T) *rig {
	t.Helper()
	noneLeft(t)
	r := &rig{server: startServer(t), tap: newTap(t), proxies: newProxies(t)}
	r.link = r.open(t, r.server.addr(), r.tap)
	return r
}

func newProxies(t testing.TB) *proxy.Proxies {
	p := proxy.New(nil)
	t.Cleanup(func() {
		if err := p.Close(); err != nil {
			t.Error(err)
		}
	})
	return p
}

func (r *rig) open(t testing.TB, upstream string, tap proxy.Tap) *proxy.Link {
	t.Helper()
	l, err := r.proxies.Open("A-n1", upstream, tap)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func (r *rig) dial(t testing.TB) *client {
	t.Helper()
	return dial(t, r.link.Addr())
}

// later makes paces by which everything takes that long.
func later(by time.Duration) func(proxy.Way) proxy.DelayFunc {
	return func(proxy.Way) proxy.DelayFunc {
		return func(written time.Time, _ int) time.Time { return written.Add(by) }
	}
}

// narrow makes paces by which so many bytes pass in a second.
func narrow(perSecond float64) func(proxy.Way) proxy.DelayFunc {
	return func(proxy.Way) proxy.DelayFunc {
		var free time.Time
		return func(written time.Time, size int) time.Time {
			if free.Before(written) {
				free = written
			}
			free = free.Add(time.Duration(float64(size) / perSecond * float64(time.Second)))
			return free
		}
	}
}
