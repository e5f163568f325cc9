package proxy_test

import (
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/lockfault/lockfault/faults/real/proxy"
)

// asks asks and returns how long the answer took.
func (c *client) asks(line string) time.Duration {
	c.t.Helper()
	began := time.Now()
	c.ask(line)
	return time.Since(began)
}

func TestLatency(t *testing.T) {
	r := newRig(t)
	c := r.dial(t) // before, and after
	c.ask("PING")
	const base = 30 * time.Millisecond
	must(t, r.link.Slow(proxy.Both, later(base)))
	for _, c := range []*client{c, r.dial(t)} {
		if took := c.asks("GET lock"); took < 2*base {
			t.Errorf("a round trip took %s; want %s at least", took, 2*base)
		}
	}
	must(t, r.link.Slow(proxy.Both, later(time.Hour)))
	c.send("SET lock A", "GET lock")
	eventually(t, "the delayed requests sent", func() bool { return slices.Contains(r.tap.sending(), "> GET lock") })
	if seen := r.tap.messages(); slices.Contains(seen, "> SET lock A") {
		t.Errorf("the tap saw %q: the request is still on its way", seen)
	}
	must(t, r.link.Slow(proxy.Both, nil)) // lets go of what is delayed
	c.want("SET lock A", "GET lock")
}

// A message is seen to set out when its sender wrote it, and to arrive when it
// has come through.
func TestWhenMessagesSetOutAndArrive(t *testing.T) {
	r := newRig(t)
	const base = 50 * time.Millisecond
	must(t, r.link.Slow(proxy.Both, later(base)))
	r.tap.hold(func(*proxy.Message) bool { return true })
	c := r.dial(t)
	for _, m := range []func(){func() { c.send("GET 1", "GET 2") }, func() {}} {
		m()
		held := r.tap.waits()
		if took := time.Since(held.SetOut); took < base {
			t.Errorf("%s arrived %s after it set out; want %s at least", describe(held), took, base)
		}
		held.Forward()
	}
}

// TestLatencyOfAPipeline checks that a pipeline takes no longer than a single request.
func TestLatencyOfAPipeline(t *testing.T) {
	r := newRig(t)
	const base = 100 * time.Millisecond
	must(t, r.link.Slow(proxy.Both, later(base)))
	c := r.dial(t)
	began := time.Now()
	var lines []string
	for i := range 50 {
		line := fmt.Sprintf("GET %d", i)
		c.send(line)
		lines = append(lines, line)
	}
	c.want(lines...)
	if took := time.Since(began); took > 50*base {
		t.Errorf("50 requests took %s, one after the other", took)
	}
}

func TestLatencyOneWay(t *testing.T) {
	r := newRig(t)
	must(t, r.link.Slow(proxy.Down, later(time.Hour)))
	c := r.dial(t)
	c.send("GET lock")
	eventually(t, "the request there", func() bool { return len(r.server.requests()) == 1 })
	c.wantSilence()
	must(t, r.link.Slow(proxy.Down, nil))
	c.want("GET lock")
}

// TestLatencyWhileHeld checks that latency can change while a message is held, because a held
// message blocks no toxic.
func TestLatencyWhileHeld(t *testing.T) {
	r := newRig(t)
	r.tap.hold(is(">", "SET"))
	c := r.dial(t)
	c.send("SET lock A", "GET lock")
	held := r.tap.waits()
	for i := range 5 {
		must(t, r.link.Slow(proxy.Both, later(time.Duration(i%2)*time.Millisecond)))
		c.send("GET 1") // waits behind it
	}
	held.Forward()
	c.want("SET lock A", "GET lock", "GET 1", "GET 1", "GET 1", "GET 1", "GET 1")
}

// Toxics come and go on a live connection and lose nothing.
func TestToxicsComeAndGo(t *testing.T) {
	r := newRig(t)
	c := r.dial(t)
	const requests = 300
	done := make(chan error, 1)
	go func() {
		random := rand.New(rand.NewPCG(1, 2))
		var errs []error
		for range 100 {
			way := proxy.Way(random.IntN(3))
			pace := []func(proxy.Way) proxy.DelayFunc{nil, later(time.Millisecond), narrow(100_000)}[random.IntN(3)]
			errs = append(errs, r.link.Slow(way, pace))
		}
		done <- errors.Join(append(errs, r.link.Slow(proxy.Both, nil))...)
	}()
	sent, received := 0, 0
	for received < requests {
		for sent < requests && sent-received < 20 {
			c.send(fmt.Sprintf("GET %d", sent))
			sent++
		}
		c.want(fmt.Sprintf("GET %d", received))
		received++
	}
	must(t, <-done)
	c.ask("PING")
}

func TestBandwidth(t *testing.T) {
	r := newRig(t)
	c := r.dial(t)
	c.ask("PING")
	line := "ECHO " + strings.Repeat("x", 200)
	bytes := float64(len(request(strings.Fields(line)...)))
	must(t, r.link.Slow(proxy.Both, narrow(4*bytes)))
	for _, c := range []*client{c, r.dial(t)} {
		if took := c.asks(line); took < time.Second/2 {
			t.Errorf("a round trip took %s; want a quarter of a second each way", took)
		}
	}
	must(t, r.link.Slow(proxy.Up, nil))
	must(t, r.link.Slow(proxy.Down, narrow(0.001)))
	c.send("GET 1", "GET 2")
	eventually(t, "the requests there", func() bool { return slices.Contains(r.server.requests(), "GET 2") })
	c.wantSilence()
	must(t, r.link.Slow(proxy.Down, nil)) // lets go of what is on its way
	c.want("GET 1", "GET 2")
}

// Messages on a narrow line stand in line.
func TestBandwidthOfAPipeline(t *testing.T) {
	r := newRig(t)
	c := r.dial(t)
	c.ask("PING")
	must(t, r.link.Slow(proxy.Both, narrow(1000)))
	began := time.Now()
	bytes := 0
	for i := range 10 {
		c.send(fmt.Sprintf("GET %d", i))
		bytes += len(request("GET", "0"))
	}
	for i := range 10 {
		c.want(fmt.Sprintf("GET %d", i))
	}
	if took, want := time.Since(began), time.Duration(bytes)*time.Millisecond; took < want {
		t.Errorf("%d bytes took %s; want %s at least", bytes, took, want)
	}
}

func TestTimeout(t *testing.T) {
	r := newRig(t)
	for name, link := range map[string]*proxy.Link{"with a tap": r.link, "without": r.open(t, r.server.addr(), nil)} {
		t.Run(name, func(t *testing.T) {
			old := dial(t, link.Addr())
			old.ask("PING")
			const after = 100 * time.Millisecond
			began := time.Now()
			must(t, link.Timeout(after))
			for _, c := range []*client{old, dial(t, link.Addr())} {
				_, _ = c.Write(request("GET", "lost")) // may be too late
				if b, err := c.in.ReadByte(); err == nil {
					t.Errorf("the client read %q", b)
				}
			}
			if took := time.Since(began); took < after {
				t.Errorf("the connections closed after %s; want %s", took, after)
			}
			must(t, link.Timeout(time.Hour))
			c := dial(t, link.Addr())
			c.send("GET lost")
			c.wantSilence()
			must(t, link.Timeout(0)) // closes it: it has lost something
			if b, err := c.in.ReadByte(); err == nil {
				t.Errorf("the client read %q", b)
			}
			dial(t, link.Addr()).ask("PING")
			if slices.Contains(r.server.requests(), "GET lost") {
				t.Error("a request passed that should have been lost")
			}
		})
	}
	if err := r.link.Timeout(-1); err == nil {
		t.Error("a negative timeout is accepted")
	}
}

func TestCloseOfAConnection(t *testing.T) {
	r := newRig(t)
	r.tap.hold(is(">", "SET"))
	c := r.dial(t)
	c.ask("PING")
	c.send("SET lock A")
	r.tap.waits().Conn.Close()
	if b, err := c.in.ReadByte(); err != io.EOF {
		t.Errorf("the client read %q, %v; want the end", b, err)
	}
	if err := r.tap.endings(1)[0].Err(); !errors.Is(err, proxy.ErrReset) {
		t.Errorf("the connection ended by %v; want ErrReset", err)
	}
}

// A connection passes toxiproxy once its link had a toxic, and no sooner.
func TestToxicsAreThereWhenAskedFor(t *testing.T) { // alone: it looks at all goroutines
	for name, tapped := range map[string]bool{"with a tap": true, "without": false} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t)
			link := r.link
			if !tapped {
				link = r.open(t, r.server.addr(), nil)
			}
			there := func() int {
				stacks := make([]byte, 4<<20)
				return strings.Count(string(stacks[:runtime.Stack(stacks, true)]), "(*ToxicLink).read(")
			}
			idle, busy := dial(t, link.Addr()), dial(t, link.Addr())
			idle.ask("PING")
			busy.ask("PING")
			if n := there(); n > 0 {
				t.Errorf("toxiproxy carries %d streams that nothing slows down", n)
			}
			must(t, link.Slow(proxy.Down, later(time.Millisecond)))
			eventually(t, "the streams to two clients there", func() bool { return there() == 2 })
			must(t, link.Slow(proxy.Both, narrow(1<<40)))
			eventually(t, "all four streams there", func() bool { return there() == 4 })
			busy.ask("PING")
			must(t, link.Slow(proxy.Down, nil))
			link.Restore()
			late := dial(t, link.Addr())
			late.ask("PING")
			idle.ask("PING")
			if n := there(); n != 4 {
				t.Errorf("toxiproxy carries %d streams; want the four that it had", n)
			}
		})
	}
}

// What is sent while toxics come into the way of a connection arrives, all of it
// and in order, and what is sent once they are there is delayed.
func TestToxicsComeIntoTheWay(t *testing.T) {
	for name, tapped := range map[string]bool{"with a tap": true, "without": false} {
		t.Run(name, func(t *testing.T) {
			for range 30 {
				r := newRig(t)
				link := r.link
				if !tapped {
					link = r.open(t, r.server.addr(), nil)
				}
				c := dial(t, link.Addr())
				c.ask("PING")
				const base, requests = 20 * time.Millisecond, 200
				added := make(chan error, 1)
				go func() { added <- link.Slow(proxy.Both, later(base)) }()
				var want []string
				for i := range requests {
					want = append(want, fmt.Sprintf("GET %d", i))
					c.send(want[i])
				}
				must(t, <-added)
				c.want(want...)
				if took := c.asks("PING"); took < 2*base {
					t.Errorf("a round trip took %s; want %s at least", took, 2*base)
				}
				must(t, link.Close())
			}
		})
	}
}

// A timeout reaches a connection on which nothing is said.
func TestTimeoutOfAnIdleConnection(t *testing.T) {
	r := newRig(t)
	for name, link := range map[string]*proxy.Link{"with a tap": r.link, "without": r.open(t, r.server.addr(), nil)} {
		t.Run(name, func(t *testing.T) {
			c := dial(t, link.Addr())
			c.ask("PING")
			must(t, link.Timeout(20*time.Millisecond))
			if b, err := c.in.ReadByte(); err == nil {
				t.Errorf("the client read %q", b)
			}
		})
	}
}
