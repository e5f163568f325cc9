package proxy_test

import (
	"bytes"
	"fmt"
	"io"
	"net"
	"sync"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/lockfault/lockfault/faults/real/proxy"
)

// word may contain what RESP is made of.
var word = rapid.StringOfN(rapid.RuneFrom([]rune("ab*$:+-\r\n 0123")), 0, 40, -1)

// frame is any value that a server may send.
func frame(depth int) *rapid.Generator[string] {
	return rapid.Custom(func(t *rapid.T) string {
		kinds := []string{"+OK\r\n", "-ERR no\r\n", ":42\r\n", "$-1\r\n", "*-1\r\n", "_\r\n", "#t\r\n", ",1.5\r\n", "bulk"}
		if depth > 0 {
			kinds = append(kinds, "*", "~", ">", "%")
		}
		kind := rapid.SampledFrom(kinds).Draw(t, "kind")
		switch kind {
		case "bulk":
			text := word.Draw(t, "text")
			return fmt.Sprintf("$%d\r\n%s\r\n", len(text), text)
		case "*", "~", ">", "%":
			n := rapid.IntRange(0, 3).Draw(t, "n")
			out := fmt.Sprintf("%s%d\r\n", kind, n)
			if kind == "%" {
				n *= 2
			}
			for range n {
				out += frame(depth-1).Draw(t, "value")
			}
			return out
		}
		return kind
	})
}

// write writes the frames in chunks of any size.
func write(t *rapid.T, conn io.Writer, frames []string) {
	rest := []byte{}
	for _, f := range frames {
		rest = append(rest, f...)
	}
	for len(rest) > 0 {
		n := rapid.IntRange(1, len(rest)).Draw(t, "chunk")
		if _, err := conn.Write(rest[:n]); err != nil {
			t.Fatalf("write: %v", err)
		}
		rest = rest[n:]
	}
}

// collector holds messages by their number in their direction, and hands them out.
type collector struct {
	free
	mu    sync.Mutex
	got   map[bool][]string
	holds map[bool][]bool
	held  chan *proxy.Message
	ended chan error
}

func (c *collector) Opened(*proxy.Conn) {}
func (c *collector) Between()           {}

func (c *collector) Sent(*proxy.Message) {}

func (c *collector) Arrived(m *proxy.Message) {
	c.mu.Lock()
	defer c.mu.Unlock()
	n := len(c.got[m.Request])
	c.got[m.Request] = append(c.got[m.Request], string(m.Bytes))
	if n < len(c.holds[m.Request]) && c.holds[m.Request][n] {
		c.held <- m
		return
	}
	m.Forward()
}

func (c *collector) Closed(conn *proxy.Conn) { c.ended <- conn.Err() }

// Whatever the chunks, messages arrive as they were sent and in order, and the
// tap sees each of them once, whether it forwards at once or later.
func TestMessagesArriveIntact(t *testing.T) {
	noneLeft(t)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	defer listener.Close()
	proxies := newProxies(t)
	rapid.Check(t, func(t *rapid.T) {
		c := &collector{
			got: map[bool][]string{}, holds: map[bool][]bool{}, held: make(chan *proxy.Message, 2), ended: make(chan error, 1),
		}
		link, err := proxies.Open("A-n1", listener.Addr().String(), c)
		if err != nil {
			t.Fatal(err)
		}
		defer link.Close()
		sent := map[bool][]string{
			true: rapid.SliceOfN(rapid.Custom(func(t *rapid.T) string {
				return string(request(rapid.SliceOfN(word, 1, 4).Draw(t, "words")...))
			}), 0, 8).Draw(t, "requests"),
			false: rapid.SliceOfN(frame(2), 0, 8).Draw(t, "replies"),
		}
		for _, way := range []bool{true, false} {
			c.holds[way] = rapid.SliceOfN(rapid.Bool(), len(sent[way]), len(sent[way])).Draw(t, "holds")
		}

		client, err := net.Dial("tcp", link.Addr())
		if err != nil {
			t.Fatal(err)
		}
		defer client.Close()
		server, err := listener.Accept()
		if err != nil {
			t.Fatal(err)
		}
		defer server.Close()
		stop := make(chan struct{})
		var forwarder sync.WaitGroup
		forwarder.Go(func() {
			for {
				select {
				case m := <-c.held:
					m.Forward()
				case <-stop:
					return
				}
			}
		})
		defer forwarder.Wait()
		defer close(stop)

		write(t, client, sent[true])
		write(t, server, sent[false])
		for way, conn := range map[bool]net.Conn{true: server, false: client} {
			want := []byte{}
			for _, f := range sent[way] {
				want = append(want, f...)
			}
			got := make([]byte, len(want))
			conn.SetReadDeadline(time.Now().Add(patience))
			if n, err := io.ReadFull(conn, got); err != nil || !bytes.Equal(got, want) {
				t.Fatalf("requests %v: got %q, %v; want %q", way, got[:n], err, want)
			}
		}
		client.Close()
		if rest, err := io.ReadAll(server); err != nil || len(rest) > 0 {
			t.Fatalf("behind the requests came %q, %v", rest, err)
		}
		server.Close()
		if err := <-c.ended; err != nil {
			t.Fatalf("the connection ended by %v", err)
		}
		c.mu.Lock()
		defer c.mu.Unlock()
		for _, way := range []bool{true, false} {
			if fmt.Sprintf("%q", c.got[way]) != fmt.Sprintf("%q", sent[way]) {
				t.Fatalf("requests %v: the tap saw %q; want %q", way, c.got[way], sent[way])
			}
		}
	})
}
