package proxy_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/lockfault/lockfault/faults/real/proxy"
)

func TestRedirect(t *testing.T) {
	r := newRig(t)
	second := startServer(t)
	c := r.dial(t)
	c.ask("PING")
	addr := r.link.Addr()
	if err := r.link.Redirect(second.addr()); err != nil {
		t.Fatal(err)
	}
	c.wantReset()
	if r.link.Addr() != addr {
		t.Errorf("the link moved from %s to %s", addr, r.link.Addr())
	}
	r.dial(t).ask("GET lock")
	if got := second.requests(); !slices.Equal(got, []string{"GET lock"}) {
		t.Errorf("the new upstream was asked %q", got)
	}
	if got := r.server.requests(); !slices.Equal(got, []string{"PING"}) {
		t.Errorf("the old upstream was asked %q", got)
	}
	if err := r.link.Redirect("nowhere"); err == nil || !strings.Contains(err.Error(), "host:port") {
		t.Errorf("Redirect to nowhere: %v; want it to ask for host:port", err)
	}
}

func TestAnUpstreamThatRefuses(t *testing.T) {
	r := newRig(t)
	r.server.listener.Close()
	conn, err := net.Dial("tcp", r.link.Addr())
	if err == nil {
		defer conn.Close()
		conn.SetDeadline(time.Now().Add(patience))
		_, err = conn.Read(make([]byte, 1))
	}
	if !errors.Is(err, syscall.ECONNRESET) {
		t.Errorf("the client got %v; want a reset", err)
	}
	if got := r.tap.messages(); len(got) > 0 {
		t.Errorf("the tap saw %q", got)
	}
}

func TestResetOfALink(t *testing.T) {
	r := newRig(t)
	clients := []*client{r.dial(t), r.dial(t), r.dial(t)}
	for _, c := range clients {
		c.ask("PING")
	}
	r.link.Reset()
	for _, c := range clients {
		c.wantReset()
	}
	for _, c := range r.tap.endings(len(clients)) {
		if !errors.Is(c.Err(), proxy.ErrReset) {
			t.Errorf("connection %d ended by %v; want ErrReset", c.ID(), c.Err())
		}
	}
	r.dial(t).ask("PING")
}

func TestStopAndStart(t *testing.T) {
	for name, tapped := range map[string]bool{"with a tap": true, "without": false} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t)
			link := r.link
			if !tapped {
				link = r.open(t, r.server.addr(), nil)
			}
			c := dial(t, link.Addr())
			c.ask("PING")
			link.Stop()
			link.Stop()
			c.send("SET lock A", "GET lock")
			late := dial(t, link.Addr())
			late.send("GET 2")
			c.wantSilence()
			if got := r.server.requests(); !slices.Equal(got, []string{"PING"}) {
				t.Errorf("the server was asked %q while the link was stopped", got)
			}
			link.Start()
			link.Start()
			c.want("SET lock A", "GET lock")
			late.want("GET 2")

			link.Stop()
			c.send("SET lock B")
			link.Reset()
			c.wantReset()
		})
	}
}

func TestWithoutATapAnythingPasses(t *testing.T) {
	noneLeft(t)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	go func() {
		if conn, err := listener.Accept(); err == nil {
			io.Copy(conn, conn)
			conn.Close()
		}
	}()
	l, err := newProxies(t).Open("replication", listener.Addr().String(), nil)
	if err != nil {
		t.Fatal(err)
	}
	c := dial(t, l.Addr())
	want := bytes.Repeat([]byte("*1\r\n:neither RESP nor text\x00\xff"), 10_000)
	go func() {
		c.Write(want)
		c.CloseWrite()
	}()
	got, err := io.ReadAll(c.in) // to the end, that is through a half-closed connection
	if err != nil || !bytes.Equal(got, want) {
		t.Errorf("got %d bytes back, %v; want the %d that were sent", len(got), err, len(want))
	}
}

func TestCloseEndsAll(t *testing.T) {
	r := newRig(t)
	r.tap.hold(is(">", "HELD"))
	crowd := func() (clients []*client) {
		for i := range 8 {
			c := r.dial(t)
			c.ask(fmt.Sprintf("GET %d", i))
			c.send("HELD")
			clients = append(clients, c)
		}
		for range clients {
			r.tap.waits()
		}
		return clients
	}
	reset := crowd()
	must(t, r.link.Slow(proxy.Both, later(1<<40))) // 18 minutes
	for _, c := range reset {
		c.send("GET slow")
	}
	r.link.Reset() // ends them although something is held and something on its way
	r.tap.endings(len(reset))
	must(t, r.link.Slow(proxy.Both, nil))
	closed := crowd()
	must(t, r.link.Slow(proxy.Both, later(1<<40)))
	late := r.dial(t)
	late.send("GET late")
	mute := r.open(t, r.server.addr(), r.tap)
	must(t, mute.Timeout(time.Hour))
	lost := dial(t, mute.Addr())
	lost.send("GET lost")
	stopped := r.open(t, r.server.addr(), nil)
	stopped.Stop()
	waiting := dial(t, stopped.Addr())
	waiting.send("GET stopped")
	eventually(t, "all requests sent", func() bool {
		seen := r.tap.sending()
		return slices.Contains(seen, "> GET lost") && slices.Contains(seen, "> GET late")
	})

	must(t, r.proxies.Close())
	if got, want := r.tap.ended(), len(reset)+len(closed)+2; got != want {
		t.Errorf("Close returned when %d connections had closed; want %d", got, want)
	}
	for _, c := range append(closed, late, lost, waiting) {
		c.wantReset()
	}
	if _, err := net.Dial("tcp", r.link.Addr()); err == nil {
		t.Error("a closed link still listens")
	}
	must(t, r.proxies.Close())
	must(t, r.link.Close())
	if err := r.link.Redirect("127.0.0.1:1"); !errors.Is(err, proxy.ErrClosed) {
		t.Errorf("Redirect on a closed link: %v; want ErrClosed", err)
	}
	if _, err := r.proxies.Open("late", r.server.addr(), nil); !errors.Is(err, proxy.ErrClosed) {
		t.Errorf("Open after Close: %v; want ErrClosed", err)
	}
}

func TestOpenWantsAnAddress(t *testing.T) {
	if _, err := newProxies(t).Open("A-n1", "localhost", nil); err == nil || !strings.Contains(err.Error(), "host:port") {
		t.Errorf("Open: %v; want it to ask for host:port", err)
	}
}

// Toxiproxy has global registries, of toxics and of metrics.
func TestManyLinks(t *testing.T) {
	r := newRig(t)
	second := newProxies(t)
	var all sync.WaitGroup
	for i := range 100 {
		p := []*proxy.Proxies{r.proxies, second}[i%2]
		l, err := p.Open("same name", r.server.addr(), r.tap)
		if err != nil {
			t.Fatal(err)
		}
		c := dial(t, l.Addr())
		all.Go(func() {
			for range 10 {
				if _, err := c.Write(request("PING")); err != nil {
					t.Error(err)
					return
				}
				if _, err := io.ReadFull(c.in, make([]byte, len(request("PING")))); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	all.Wait()
	if got := len(r.server.requests()); got != 1000 {
		t.Errorf("the server was asked %d times; want 1000", got)
	}
}

// locked is a buffer for several goroutines.
type locked struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (l *locked) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.Write(p)
}

func (l *locked) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.String()
}

func TestLogs(t *testing.T) {
	noneLeft(t)
	var logs locked
	p := proxy.New(&logs)
	defer p.Close()
	s := startServer(t)
	tap := newTap(t)
	l, err := p.Open("A-n1", s.addr(), tap)
	if err != nil {
		t.Fatal(err)
	}
	c := dial(t, l.Addr())
	c.ask("PING")
	c.write("*x\r\n")
	tap.endings(1)
	if got := logs.String(); !strings.Contains(got, `"link":"A-n1"`) || !strings.Contains(got, "not RESP") {
		t.Errorf("the log says %q", got)
	}
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
