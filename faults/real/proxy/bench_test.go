package proxy_test

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net"
	"os/exec"
	"sync"
	"testing"

	"github.com/Shopify/toxiproxy/v2"
	"github.com/rs/zerolog"

	"github.com/lockfault/lockfault/faults/real/proxy"
)

// forwarder is a tap that forwards everything at once.
type forwarder struct{ free }

func (forwarder) Opened(*proxy.Conn)       {}
func (forwarder) Between()                 {}
func (forwarder) Sent(*proxy.Message)      {}
func (forwarder) Arrived(m *proxy.Message) { m.Forward() }
func (forwarder) Closed(*proxy.Conn)       {}

// BenchmarkPath measures round trips of a small SET: directly to the server, through plain
// toxiproxy, through a link without a tap, through a link with a tap, and through a link with a tap
// and toxics with almost no effect.
func BenchmarkPath(b *testing.B) {
	servers := map[string]func(testing.TB) string{"echo": startEcho}
	if path, err := exec.LookPath("redis-server"); err == nil {
		servers["redis"] = func(t testing.TB) string { return startRedis(t, path) }
	}
	for _, name := range []string{"echo", "redis"} {
		start := servers[name]
		if start == nil {
			continue
		}
		for _, conns := range []int{1, 8} {
			b.Run(fmt.Sprintf("server=%s/conns=%d", name, conns), func(b *testing.B) {
				upstream := start(b)
				for _, via := range []struct {
					name string
					open func(testing.TB, string) string
				}{
					{"direct", func(_ testing.TB, upstream string) string { return upstream }},
					{"toxiproxy", openToxiproxy},
					{"link", func(t testing.TB, upstream string) string { return openLink(t, upstream, nil).Addr() }},
					{"gate", func(t testing.TB, upstream string) string { return openLink(t, upstream, forwarder{}).Addr() }},
					{"toxics", func(t testing.TB, upstream string) string {
						l := openLink(t, upstream, forwarder{})
						must(t, l.Slow(proxy.Both, narrow(1<<50)))
						return l.Addr()
					}},
				} {
					b.Run("via="+via.name, func(b *testing.B) { pingPong(b, via.open(b, upstream), conns) })
				}
			})
		}
	}
}

// pingPong shares b.N round trips among connections.
func pingPong(b *testing.B, addr string, conns int) {
	question := request("SET", "lock", "0123456789") // 40 bytes
	if len(question) != 40 {
		b.Fatalf("the request has %d bytes", len(question))
	}
	const answer = "+OK\r\n"
	clients := make([]net.Conn, conns)
	for i := range clients {
		conn, err := net.Dial("tcp", addr)
		if err != nil {
			b.Fatal(err)
		}
		defer conn.Close()
		clients[i] = conn
	}
	b.ReportAllocs()
	b.ResetTimer()
	var all sync.WaitGroup
	for i, conn := range clients {
		n := b.N / conns
		if i < b.N%conns {
			n++
		}
		all.Go(func() {
			got := make([]byte, len(answer))
			for range n {
				if _, err := conn.Write(question); err != nil {
					b.Error(err)
					return
				}
				if _, err := io.ReadFull(conn, got); err != nil || string(got) != answer {
					b.Errorf("got %q, %v", got, err)
					return
				}
			}
		})
	}
	all.Wait()
}

func openToxiproxy(t testing.TB, upstream string) string {
	server := toxiproxy.NewServer(toxiproxy.NewMetricsContainer(nil), zerolog.Nop())
	p := toxiproxy.NewProxy(server, "bench", "127.0.0.1:0", upstream)
	must(t, p.Start())
	t.Cleanup(p.Stop)
	return p.Listen
}

func openLink(t testing.TB, upstream string, tap proxy.Tap) *proxy.Link {
	l, err := newProxies(t).Open("bench", upstream, tap)
	must(t, err)
	return l
}

// startEcho starts a server that answers OK to each 40 bytes.
func startEcho(t testing.TB) string {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	t.Cleanup(func() { listener.Close() })
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			go func() {
				defer conn.Close()
				in := make([]byte, 40)
				for {
					if _, err := io.ReadFull(conn, in); err != nil {
						return
					}
					if _, err := io.WriteString(conn, "+OK\r\n"); err != nil {
						return
					}
				}
			}()
		}
	}()
	return listener.Addr().String()
}

// startRedis starts a real server on a free port.
func startRedis(t testing.TB, path string) string {
	free, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	addr := free.Addr().String()
	free.Close()
	_, port, err := net.SplitHostPort(addr)
	must(t, err)
	command := exec.Command(path, "--port", port, "--bind", "127.0.0.1", "--save", "", "--appendonly", "no", "--dir", t.TempDir())
	out, err := command.StdoutPipe()
	must(t, err)
	must(t, command.Start())
	t.Cleanup(func() {
		_ = command.Process.Kill()
		_ = command.Wait()
	})
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		if bytes.Contains(lines.Bytes(), []byte("Ready to accept connections")) {
			go io.Copy(io.Discard, out)
			return addr
		}
	}
	t.Fatal("redis-server did not start: is its port taken?")
	return ""
}
