package proxy_test

import (
	"errors"
	"io"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/lockfault/lockfault/faults/real/proxy"
	"github.com/lockfault/lockfault/internal/resp"
)

func TestMessagesAreSeenAndPass(t *testing.T) {
	r := newRig(t)
	c := r.dial(t)
	c.ask("SET lock A")
	c.ask("GET lock")
	want := []string{"> SET lock A", "< SET lock A", "> GET lock", "< GET lock"}
	if got := r.tap.messages(); !slices.Equal(got, want) {
		t.Errorf("the tap saw %q; want %q", got, want)
	}
	c.Close()
	if err := r.tap.endings(1)[0].Err(); err != nil {
		t.Errorf("the connection ended by %v; want in order", err)
	}
}

func TestAPipelineIsSeenOneByOne(t *testing.T) {
	r := newRig(t)
	r.tap.hold(is(">", "SET"))
	c := r.dial(t)
	c.send("GET 1", "SET 2", "GET 3")
	held := r.tap.waits()
	c.want("GET 1")
	c.wantSilence()
	held.Forward()
	c.want("SET 2", "GET 3")
}

func TestARequestIsPutTogether(t *testing.T) {
	r := newRig(t)
	c := r.dial(t)
	c.write("*2\r\n$3\r\nGE")
	other := r.dial(t)
	other.ask("PING") // gives the first piece time to arrive alone
	c.write("T\r\n$4\r\nlock\r\n\r\nPI")
	c.want("GET lock")
	c.write("NG now\r\n")
	c.want("PING now")
	want := []string{"> PING", "< PING", "> GET lock", "< GET lock", "> PING now", "< PING now"} // no empty line
	if got := r.tap.messages(); !slices.Equal(got, want) {
		t.Errorf("the tap saw %q; want %q", got, want)
	}
}

func TestAHeldMessageBlocksItsDirectionOnly(t *testing.T) {
	r := newRig(t)
	r.tap.hold(is("<", "SLOW"))
	c, other := r.dial(t), r.dial(t)
	c.send("SLOW")
	reply := r.tap.waits()
	c.send("SET lock A") // requests go on
	eventually(t, "the second request there", func() bool { return slices.Contains(r.server.requests(), "SET lock A") })
	other.ask("PING")
	c.wantSilence()
	reply.Forward()
	reply.Drop() // too late
	c.want("SLOW", "SET lock A")
}

func TestADropLosesWhatFollows(t *testing.T) {
	for _, way := range []string{">", "<"} {
		t.Run(way, func(t *testing.T) {
			r := newRig(t)
			r.tap.drop(is(way, "DROP"))
			c := r.dial(t)
			c.ask("PING")
			c.send("DROP", "GET 1")
			c.wantSilence()
			eventually(t, "the lost message seen", func() bool {
				return slices.Contains(r.tap.messages(), way+" GET 1 (lost)")
			})
			wantAsked := []string{"PING"}
			if way == "<" {
				wantAsked = []string{"PING", "DROP", "GET 1"}
			}
			if got := r.server.requests(); !slices.Equal(got, wantAsked) {
				t.Errorf("the server was asked %q; want %q", got, wantAsked)
			}
			if got := r.server.endings(); got != 0 {
				t.Errorf("the server saw %d connections end; want none", got)
			}
			c.Close() // which the server does learn
			r.tap.endings(1)
			eventually(t, "the end at the server", func() bool { return r.server.endings() == 1 })
		})
	}
}

func TestWhatAClientWroteArrivesAfterItLeft(t *testing.T) {
	for name, leave := range map[string]func(*client){
		"closed": func(c *client) { c.Close() },
		"killed": func(c *client) { c.SetLinger(0); c.Close() },
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t)
			r.tap.hold(is(">", "SET"))
			c := r.dial(t)
			c.ask("PING")
			c.send("SET lock A", "GET lock")
			held := r.tap.waits()
			leave(c)
			if got := r.server.endings(); got != 0 {
				t.Errorf("the server saw %d connections end while a request was held", got)
			}
			held.Forward()
			eventually(t, "both requests there", func() bool {
				return slices.Equal(r.server.requests(), []string{"PING", "SET lock A", "GET lock"})
			})
			r.tap.endings(1)
		})
	}
}

func TestWhatAServerWroteArrivesAfterItLeft(t *testing.T) {
	r := newRig(t)
	r.tap.hold(is("<", "SET"))
	c := r.dial(t)
	c.send("SET lock A", "GET lock")
	held := r.tap.waits()
	eventually(t, "both requests there", func() bool { return len(r.server.requests()) == 2 })
	r.server.hangUp()
	c.wantSilence()
	held.Forward()
	c.want("SET lock A", "GET lock")
	c.wantEnd()
	c.Close()
	r.tap.endings(1)
}

func TestAClientThatGoesOnAfterItsServerLeftIsReset(t *testing.T) {
	r := newRig(t)
	c := r.dial(t)
	c.ask("PING")
	r.server.hangUp()
	c.wantEnd()
	eventually(t, "a write refused", func() bool {
		_, err := c.Write(request("PING"))
		return err != nil
	})
	r.tap.endings(1)
}

func TestResetClosesBothEnds(t *testing.T) {
	r := newRig(t)
	r.tap.hold(is(">", "SET"))
	c := r.dial(t)
	c.ask("PING")
	c.send("SET lock A")
	held := r.tap.waits()
	held.Conn.Reset()
	c.wantReset()
	eventually(t, "the end at the server", func() bool { return r.server.endings() == 1 })
	if err := r.tap.endings(1)[0].Err(); !errors.Is(err, proxy.ErrReset) {
		t.Errorf("the connection ended by %v; want ErrReset", err)
	}
	held.Forward() // nobody is there
	if got := r.server.requests(); !slices.Equal(got, []string{"PING"}) {
		t.Errorf("the server was asked %q", got)
	}
}

// What was forwarded before a message that resets its connection still gets there.
func TestAResetBehindARequest(t *testing.T) {
	for range 20 {
		r := newRig(t)
		l := r.open(t, r.server.addr(), decider(func(m *proxy.Message) {
			if m.Request && m.Words[0] == "RESET" {
				m.Reset()
				return
			}
			m.Forward()
		}))
		c := dial(t, l.Addr())
		c.send("SET lock A", "RESET", "GET lock")
		eventually(t, "the request there", func() bool { return slices.Equal(r.server.requests(), []string{"SET lock A"}) })
		eventually(t, "the end at the server", func() bool { return r.server.endings() == 1 })
	}
}

// The tap knows what comes next before the receiver has what came before, which
// it may answer.
func TestTheNextIsSeenFirst(t *testing.T) {
	r := newRig(t)
	r.tap.hold(is(">", ""))
	c := r.dial(t)
	for range 100 {
		c.send("GET 1", "GET 2")
		r.tap.waits().Forward()
		c.want("GET 1")
		r.tap.mu.Lock()
		next := len(r.tap.held)
		r.tap.mu.Unlock()
		if next == 0 {
			t.Fatal("the answer was there before the next request was seen")
		}
		r.tap.waits().Forward()
		c.want("GET 2")
	}
}

// decider is a tap that calls a function for each message.
type decider func(*proxy.Message)

func (decider) Lock()                      {}
func (decider) Unlock()                    {}
func (decider) Opened(*proxy.Conn)         {}
func (decider) Between()                   {}
func (decider) Sent(*proxy.Message)        {}
func (d decider) Arrived(m *proxy.Message) { d(m) }
func (decider) Closed(*proxy.Conn)         {}

func TestTheFirstDecisionCounts(t *testing.T) {
	r := newRig(t)
	l := r.open(t, r.server.addr(), decider(func(m *proxy.Message) {
		m.Forward()
		m.Drop()
	}))
	dial(t, l.Addr()).ask("PING")
}

func TestNothingIsSeenBehindAReset(t *testing.T) {
	r := newRig(t)
	var seen atomic.Int32
	l := r.open(t, r.server.addr(), decider(func(m *proxy.Message) {
		seen.Add(1)
		m.Conn.Reset()
		m.Forward()
	}))
	c := dial(t, l.Addr())
	c.send("GET 1", "GET 2")
	c.wantReset()
	must(t, l.Close())
	if got := seen.Load(); got != 1 {
		t.Errorf("the tap saw %d messages; want 1", got)
	}
}

func TestWhatIsNotRESPIsRefused(t *testing.T) {
	for name, bytes := range map[string]string{
		"a count": "*x\r\n", "a number": "*1\r\n:3\r\n", "an array": "*1\r\n$3\r\nGET\r\n*99999999\r\n",
		"an endless line": strings.Repeat("x", 64<<10+1), "an endless word": "*1\r\n$99999999\r\n" + strings.Repeat("x", 16<<20),
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t)
			c := r.dial(t)
			if _, err := io.WriteString(c, bytes); err == nil {
				_, err = c.in.ReadByte()
				if !errors.Is(err, syscall.ECONNRESET) {
					t.Errorf("the client got %v; want a reset", err)
				}
			}
			if err := r.tap.endings(1)[0].Err(); !errors.Is(err, resp.ErrProtocol) {
				t.Errorf("the connection ended by %v; want ErrProtocol", err)
			}
		})
	}
}

func TestAServerThatSpeaksNoRESPIsRefused(t *testing.T) {
	r := newRig(t)
	r.dial(t).ask("PING")
	r.server.say("HTTP/1.1 400 Bad Request\r\n")
	err := r.tap.endings(1)[0].Err()
	if !errors.Is(err, resp.ErrProtocol) || !strings.Contains(err.Error(), "the server") {
		t.Errorf("the connection ended by %v; want ErrProtocol, and who it was", err)
	}
}
