package sim_test

import (
	"errors"
	"net"
	"os"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/lockfault/lockfault/checker"
	"github.com/lockfault/lockfault/faults"
	"github.com/lockfault/lockfault/faults/sim"
)

// TestCloseEndsTheRead checks that a client that closes its connection ends its own read, whether
// or not the world runs.
func TestCloseEndsTheRead(t *testing.T) {
	play(t, sim.Config{Seed: 1}, func(s *stage) {
		a := s.dial("A", "n1")
		end := a.receive(1)
		a.Close()
		synctest.Wait()
		if !end.done || !errors.Is(end.err, net.ErrClosed) {
			t.Errorf("the read: done %t, %v", end.done, end.err)
		}
	})
}

func TestRequestAndReply(t *testing.T) {
	events := play(t, sim.Config{Seed: 1}, func(s *stage) {
		a := s.client("A", "n1")
		s.command(a, "SET", "lock", "A-value-1", "NX", "PX", 30000).want("OK")
		s.command(a, "GET", "lock").want("A-value-1")
		s.command(a, "SET", "lock", "A-value-2", "NX").want("redis: nil")
		s.command(a, "PTTL", "lock").wait()
		s.command(a, "NONSENSE").want("ERR unknown command `NONSENSE`, with args beginning with: ")
	})
	for _, e := range events {
		if e.Kind == checker.Request && !between(e.Time-e.Sent, 300*time.Microsecond, 700*time.Microsecond) {
			t.Errorf("%s took %v one way", line(e), e.Time-e.Sent)
		}
	}
	want := strings.Join([]string{
		"A > n1/0 SET lock A1 NX PX 30000",
		"n1/0 A1 for 30s by command A",
		"A < n1 SET lock A1 NX PX 30000 = OK",
		"A > n1/0 GET lock",
		`A < n1 GET lock = "A1"`,
		"A > n1/0 SET lock A2 NX",
		"A < n1 SET lock A2 NX = (nil)",
	}, "\n")
	if got := lines(events); !strings.HasPrefix(got, want) {
		t.Errorf("got events\n%s\nwant them to begin with\n%s", got, want)
	}
}

func between(d, low, high time.Duration) bool { return d >= low && d <= high }

func TestConnKeepsItsOrder(t *testing.T) {
	play(t, sim.Config{Seed: 1, Base: 10 * time.Millisecond, Jitter: 10 * time.Millisecond}, func(s *stage) {
		c := s.dial("A", "n1")
		var want strings.Builder
		for i := range 200 {
			c.send("INCR n")
			s.run(time.Duration(i%7) * 100 * time.Microsecond)
			want.WriteString(":" + strconv.Itoa(i+1) + "\r\n")
		}
		c.receive(want.Len()).want(want.String())
	})
}

func TestPipelineAndTransaction(t *testing.T) {
	play(t, sim.Config{Seed: 1}, func(s *stage) {
		a := s.client("A", "n1")
		take := func() *task {
			return s.do(func() (any, error) {
				_, err := a.TxPipelined(bg, func(p redis.Pipeliner) error {
					p.Do(bg, "SETNX", "lock", "A-value-1")
					p.PExpire(bg, "lock", ttl)
					return nil
				})
				return nil, err
			}).want("<nil>")
		}
		take() // go-redis opens a new connection for its first pipeline
		s.command(a, "DEL", "lock").want("1")
		s.forget()
		before := s.Client("A")
		take()
		s.want(`
			A > n1/0 MULTI
			A > n1/0 SETNX lock A1
			A > n1/0 PEXPIRE lock 30000
			A > n1/0 EXEC
			n1/0 A1 for 30s by command A`, checker.Request, checker.State)
		after := s.Client("A")
		if trips, replies := after.RoundTrips-before.RoundTrips, after.Replies-before.Replies; trips != 1 || replies != 4 {
			t.Errorf("%d round trips and %d replies; want 1 and 4", trips, replies)
		}
	})
}

func TestScripts(t *testing.T) {
	play(t, sim.Config{Seed: 1}, func(s *stage) {
		a := s.client("A", "n1")
		script := redis.NewScript("if redis.call('get', KEYS[1]) == ARGV[1] then return redis.call('del', KEYS[1]) end return 0")
		run := func() *task {
			return s.do(func() (any, error) { return script.Run(bg, a, []string{"lock"}, "A-value-1").Result() })
		}
		s.command(a, "SET", "lock", "A-value-1").want("OK")
		run().want("1")
		run().want("0")
		s.want(`
			n1/0 A1 by command A
			n1/0 gone by command A`, checker.State)
		s.command(a, "EVALSHA", script.Hash(), 1, "lock", "x").want("0")
		s.apply(faults.ScriptFlush{Node: "n1"})
		s.command(a, "EVALSHA", script.Hash(), 1, "lock", "x").want("NOSCRIPT No matching script. Please use EVAL.")
		run().want("0") // go-redis loads it again
	})
}

// TestScriptsMayNotCall checks the errors for commands that scripts may not call, which are those of
// Redis 7.0.
func TestScriptsMayNotCall(t *testing.T) {
	play(t, sim.Config{Seed: 1}, func(s *stage) {
		a := s.client("A", "n1")
		for call, want := range map[string]string{
			"'blpop','a',0": "This Redis command is not allowed from script", "'fcall','f',0": "This Redis command is not allowed from script",
			"'save'": "This Redis command is not allowed from script", "'client','id'": "This Redis command is not allowed from script",
			"'client'": "Wrong number of args calling Redis command from script", "'no.such'": "Unknown Redis command called from script",
		} {
			s.command(a, "EVAL", "return redis.pcall("+call+")", 0).want("ERR " + want)
		}
	})
}

func TestReadDeadline(t *testing.T) {
	play(t, sim.Config{Seed: 1, Base: 50 * time.Millisecond, Jitter: time.Nanosecond}, func(s *stage) {
		c := s.dial("A", "n1")
		c.SetReadDeadline(time.Now().Add(80 * time.Millisecond))
		c.send("PING")
		if late := c.receive(7).wait(); !errors.Is(late.err, os.ErrDeadlineExceeded) || late.ended != 80*time.Millisecond {
			t.Errorf("%v at %v; want a timeout at 80ms", late.err, late.ended)
		}
		var e net.Error
		if err := c.receive(7).wait().err; !errors.As(err, &e) || !e.Timeout() {
			t.Errorf("again: %v; want another timeout", err)
		}
		// The connection is still usable.
		c.SetReadDeadline(time.Now().Add(time.Second))
		c.receive(7).want("+PONG\r\n")
		waiting := c.receive(7)
		c.SetReadDeadline(time.Now().Add(time.Minute))
		s.run(30 * time.Second)
		c.SetReadDeadline(time.Now()) // wakes a read that already waits
		if waiting.wait(); !errors.Is(waiting.err, os.ErrDeadlineExceeded) || waiting.ended > 31*time.Second {
			t.Errorf("%v at %v; want a timeout at once", waiting.err, waiting.ended)
		}
	})
}

func TestWrittenBeforeCloseArrives(t *testing.T) {
	play(t, sim.Config{Seed: 1}, func(s *stage) {
		c := s.dial("A", "n1")
		c.send("SET lock A-value-1", "SET lock A-value-2")
		c.Close()
		s.run(time.Second)
		s.want(`
			n1/0 A1 by command A
			n1/0 A2 by command A`, checker.State, checker.Reply)
	})
}

func TestClosedConn(t *testing.T) {
	play(t, sim.Config{Seed: 1}, func(s *stage) {
		c := s.dial("A", "n1")
		reading := c.receive(1)
		c.Close()
		if reading.wait(); !errors.Is(reading.err, net.ErrClosed) {
			t.Errorf("who was reading got %v", reading.err)
		}
		if _, err := c.Write([]byte("PING\r\n")); !errors.Is(err, net.ErrClosed) {
			t.Errorf("Write = %v", err)
		}
		if _, err := c.Conn.(syscall.Conn).SyscallConn(); err == nil {
			t.Error("SyscallConn of a closed connection says that it is alive")
		}
	})
}

func TestProtocolErrorEndsTheConn(t *testing.T) {
	play(t, sim.Config{Seed: 1}, func(s *stage) {
		c := s.dial("A", "n1")
		if _, err := c.Write([]byte("*1\r\n:1\r\n")); err == nil {
			t.Error("Write took a request that is none")
		}
		if _, err := c.Write([]byte("PING\r\n")); err == nil {
			t.Error("the connection is still there")
		}
	})
}

func TestPartialWrites(t *testing.T) {
	play(t, sim.Config{Seed: 1}, func(s *stage) {
		c := s.dial("A", "n1")
		for _, b := range []byte("*2\r\n$4\r\nECHO\r\n$2\r\nhi\r\nPING\r\n") {
			if n, err := c.Write([]byte{b}); n != 1 || err != nil {
				t.Fatalf("Write = %d, %v", n, err)
			}
		}
		c.receive(15).want("$2\r\nhi\r\n+PONG\r\n")
	})
}

// TestMiniredisDoesAsRedis checks behavior of miniredis on which locks depend against Redis 7.0.15.
// TTL differs and is not checked: Redis rounds to the nearest second and miniredis down.
func TestMiniredisDoesAsRedis(t *testing.T) {
	play(t, sim.Config{Seed: 1}, func(s *stage) {
		a := s.client("A", "n1")
		for _, c := range []struct{ command, want string }{
			{"SET lock one PX 1000", "OK"},
			{"GETSET lock two", "one"},
			{"PTTL lock", "-1"}, // GETSET ends the TTL
			{"PEXPIRE lock 1000", "1"},
			{"SET lock three", "OK"},
			{"PTTL lock", "-1"}, // so does SET
			{"SET lock four NX GET", "three"},
			{"SET lock five XX PX 5000", "OK"},
			{"SET lock six KEEPTTL", "OK"},
			{"PEXPIRE lock 0", "1"},
			{"EXISTS lock", "0"},
			{"HINCRBY lock field 1", "1"},
			{"GET lock", "WRONGTYPE Operation against a key holding the wrong kind of value"},
			{"HINCRBY lock field -1", "0"},
			{"DEL lock", "1"},
			{"PTTL lock", "-2"},
		} {
			var words []any
			for _, word := range strings.Fields(c.command) {
				words = append(words, word)
			}
			if got := s.command(a, words...).wait().said(); got != c.want {
				t.Errorf("%s: %s; want %s", c.command, got, c.want)
			}
		}
	})
}
