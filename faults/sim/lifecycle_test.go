package sim_test

import (
	"errors"
	"math"
	"net"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lockfault/lockfault/checker"
	"github.com/lockfault/lockfault/faults"
	"github.com/lockfault/lockfault/faults/sim"
)

func TestNothingIsRecordedBeforeBegin(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &stage{t: t}
		w, err := sim.New(sim.Config{Nodes: 1, Lock: faults.SingleKeyLock("lock"), TTL: ttl, Record: func(e checker.Event) { s.events = append(s.events, e) }})
		if err != nil {
			t.Fatal(err)
		}
		s.World = w
		a := s.client("A", "n1")
		s.command(a, "SET", "lock", "A-value-of-the-warm-up", "PX", 30000).want("OK")
		s.command(a, "DEL", "lock").want("1")
		s.apply(faults.PauseClient{Client: "A"})
		s.run(time.Minute)
		s.apply(faults.ResumeClient{Client: "A"}, faults.Drop{Match: on(faults.Before, "GET"), Times: 1})
		s.command(a, "GET", "lock").want("i/o timeout")
		s.apply(faults.Hold{Match: on(faults.Before, "GET")})
		late := s.command(a, "GET", "lock")
		s.apply(faults.PauseClient{Client: "B"})
		s.run(time.Second)
		s.want("")

		w.Begin()
		if now := w.Now(); now != 0 {
			t.Errorf("Now = %v", now)
		}
		if got := w.Client("A"); got != (faults.ClientState{Held: 1, UnderWay: 1}) {
			t.Errorf("A's state is %+v; want its counts to begin anew", got)
		}
		s.run(time.Second)
		if got := w.Client("B").PausedFor; got != time.Second {
			t.Errorf("B was paused for %v since Begin", got)
		}
		s.apply(faults.Pass{})
		late.want("redis: nil")
		s.command(a, "SET", "lock", "A-first-value").want("OK")
		s.want(`
			fault pass
			passed A request GET lock
			A > n1/0 GET lock
			A < n1 GET lock = (nil)
			A > n1/0 SET lock A1
			n1/0 A1 by command A
			A < n1 SET lock A1 = OK`)
		for _, e := range s.events {
			if e.Sent < 0 || e.Sent > e.Time {
				t.Errorf("%s happened at %v and set out at %v", line(e), e.Time, e.Sent)
			}
		}
		w.Close()
		a.Close()
	})
}

func TestDialErrors(t *testing.T) {
	play(t, sim.Config{Seed: 1}, func(s *stage) {
		if _, err := s.Dial(bg, "A", "n2"); err == nil || !strings.Contains(err.Error(), "no node n2") {
			t.Errorf("dialling n2 of one: %v", err)
		}
		s.apply(faults.CrashNode{Node: "n1"})
		refused := s.do(func() (any, error) { return s.Dial(bg, "A", "n1") })
		if refused.err == nil || !strings.Contains(refused.err.Error(), "refused") {
			t.Errorf("dialling a node that is down: %v", refused.err)
		}
	})
}

func TestApplyErrors(t *testing.T) {
	play(t, sim.Config{Seed: 1}, func(s *stage) {
		for _, c := range []struct {
			fault faults.Fault
			want  string
		}{
			{faults.Flush{Node: "n2"}, "no such node"},
			{faults.Failover{Node: "n1"}, "declare some in the script"},
			{faults.Split{Node: "n1", Clients: []string{"A"}}, "declare some in the script"},
			{faults.Join{Node: "n1"}, "not split"},
			{faults.NodeDrift{Node: "n1"}, "above 0"},
			{faults.NodeDrift{Node: "n1", Rate: math.NaN()}, "above 0"},
			{faults.NodeDrift{Node: "n1", Rate: math.Inf(1)}, "above 0"},
		} {
			if err := s.Apply(c.fault); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%s: %v; want %q", c.fault, err, c.want)
			}
		}
		// A fault that changes nothing has no effect.
		s.apply(
			faults.RestartNode{Node: "n1"}, faults.ResumeNode{Node: "n1"}, faults.Heal{}, faults.Pass{},
			faults.ResumeClient{Client: "A"}, faults.RestartClient{Client: "A"},
			faults.PauseClient{Client: "A"}, faults.PauseClient{Client: "A"}, faults.CrashClient{Client: "A"}, faults.CrashClient{Client: "A"},
			faults.PauseClient{Client: "A"}, faults.ResumeClient{Client: "A"},
		)
		s.want("pause A\ncrash A", checker.Pause, checker.Resume, checker.Crash, checker.Restart)
	})
}

func TestPausedClient(t *testing.T) {
	play(t, sim.Config{Seed: 1, Base: 100 * time.Millisecond}, func(s *stage) {
		a := s.dial("A", "n1")
		a.SetReadDeadline(time.Now().Add(time.Second))
		a.send("SET lock A-value-1")
		reading := a.receive(5)
		s.run(150 * time.Millisecond) // the request was executed, the reply is on its way
		s.apply(faults.PauseClient{Client: "A"})
		writing := s.begin(func() (any, error) { return a.Write([]byte("PING\r\n")) })
		reads := s.begin(func() (any, error) { return time.Until(s.ClientTime("A")), nil })
		dials := s.begin(func() (any, error) {
			conn, err := s.Dial(bg, "A", "n1")
			if err == nil {
				defer conn.Close()
			}
			return "connected", err
		})
		s.run(time.Minute)
		for name, work := range map[string]*task{"read": reading, "write": writing, "Wall": reads, "Dial": dials} {
			if work.done {
				t.Errorf("%s came back in a paused process: %s", name, work.said())
			}
		}
		if got := s.Client("A"); !got.Paused || got.PausedFor != time.Minute || got.UnderWay != 1 || got.Replies != 0 {
			t.Errorf("A's state is %+v; want its reply at the door", got)
		}
		s.want(`
			A > n1/0 SET lock A1
			pause A`, checker.Request, checker.Reply, checker.Pause)

		s.apply(faults.ResumeClient{Client: "A"})
		reading.wait()
		if !errors.Is(reading.err, os.ErrDeadlineExceeded) {
			t.Errorf("the read whose deadline had passed got %s", reading.said())
		}
		writing.want("6")
		reads.want("0s")
		dials.want("connected")
		s.run(time.Second)
		// The reply arrived, but no goroutine waits for it any more.
		s.want(`
			A > n1/0 SET lock A1
			A < n1 SET lock A1 = OK
			A > n1/0 PING
			A < n1 PING = PONG`, checker.Request, checker.Reply)
		if got := s.Client("A"); got.Paused || got.PausedFor != time.Minute || got.Replies != 2 {
			t.Errorf("A's state is %+v", got)
		}
	})
}

// TestPauseShorterThanTheDeadline checks that a reply that arrived during a pause is read if its
// deadline has not passed.
func TestPauseShorterThanTheDeadline(t *testing.T) {
	play(t, sim.Config{Seed: 1}, func(s *stage) {
		a := s.client("A", "n1")
		s.apply(faults.Hold{Match: on(faults.After, "GET")})
		get := s.command(a, "GET", "lock")
		s.run(100 * time.Millisecond)
		s.apply(faults.PauseClient{Client: "A"}, faults.Pass{})
		s.run(time.Second)
		if get.done {
			t.Error("a stopped process read")
		}
		s.apply(faults.ResumeClient{Client: "A"})
		get.want("redis: nil")
	})
}

// TestReadAfterTheDeadline checks that a read that begins after its deadline fails even if data is
// available, as in package net.
func TestReadAfterTheDeadline(t *testing.T) {
	play(t, sim.Config{Seed: 1}, func(s *stage) {
		a := s.dial("A", "n1")
		a.SetReadDeadline(time.Now().Add(time.Second))
		a.send("PING")
		s.run(100 * time.Millisecond)
		s.apply(faults.PauseClient{Client: "A"})
		s.run(time.Minute)
		s.apply(faults.ResumeClient{Client: "A"})
		a.receive(7).want("i/o timeout")
		a.SetReadDeadline(time.Time{})
		a.receive(7).want("+PONG\r\n")
	})
}

func TestDialTimesOutOnlyInARunningClient(t *testing.T) {
	for _, c := range []struct {
		fault faults.Fault
		ends  bool
	}{
		{faults.PauseClient{Client: "A"}, true},
		{faults.CrashClient{Client: "A"}, false},
	} {
		t.Run(c.fault.String(), func(t *testing.T) {
			play(t, sim.Config{Seed: 1}, func(s *stage) {
				s.apply(faults.Partition{})
				a := s.client("A", "n1")
				ping := s.command(a, "PING")
				s.apply(c.fault)
				s.run(time.Hour)
				if ping.done {
					t.Errorf("came back: %s", ping.said())
				}
				if c.ends {
					s.apply(faults.ResumeClient{Client: "A"})
					ping.wait()
				}
			})
		})
	}
}

func TestCrashedClient(t *testing.T) {
	play(t, sim.Config{Seed: 1}, func(s *stage) {
		a := s.dial("A", "n1")
		a.send("SET lock A-value-1")
		reading := a.receive(5)
		s.apply(faults.CrashClient{Client: "A"})
		dialling := s.begin(func() (any, error) { return s.Dial(bg, "A", "n1") })
		s.run(time.Minute)
		// The written request is executed, and its reply has no receiver.
		s.want(`
			crash A
			A > n1/0 SET lock A1
			n1/0 A1 by command A`)
		s.apply(faults.RestartClient{Client: "A"})
		s.run(time.Minute)
		if reading.done || dialling.done {
			t.Errorf("the dead process goes on: %s, %s", reading.said(), dialling.said())
		}
		if got := s.Client("A"); got.Crashed || got.Replies != 0 {
			t.Errorf("A's state is %+v", got)
		}
		s.command(s.client("A", "n1"), "GET", "lock").want("A-value-1")
		s.Close()
		synctest.Wait()
		if !errors.Is(reading.err, net.ErrClosed) || !errors.Is(dialling.err, net.ErrClosed) {
			t.Errorf("after Close: %v, %v", reading.err, dialling.err)
		}
	})
}

func TestCrashWhilePaused(t *testing.T) {
	play(t, sim.Config{Seed: 1}, func(s *stage) {
		a := s.dial("A", "n1")
		a.send("PING")
		s.apply(faults.PauseClient{Client: "A"})
		s.run(time.Minute)
		s.apply(faults.CrashClient{Client: "A"})
		s.run(time.Minute)
		s.want("pause A\nA > n1/0 PING\ncrash A")
		if got := s.Client("A"); !got.Crashed || got.Paused || got.PausedFor != time.Minute {
			t.Errorf("A's state is %+v", got)
		}
	})
}

func TestClientClock(t *testing.T) {
	play(t, sim.Config{Seed: 1}, func(s *stage) {
		s.apply(faults.ClientClock{Client: "A", By: faults.Span{TTLs: 2}}, faults.ClientClock{Client: "A", By: faults.Span{Abs: -time.Second}})
		if got := time.Until(s.ClientTime("A")); got != 59*time.Second {
			t.Errorf("A's clock is ahead by %v; want 59s", got)
		}
		if got := time.Until(s.ClientTime("B")); got != 0 {
			t.Errorf("B's clock is ahead by %v", got)
		}
		s.apply(faults.CrashClient{Client: "A"}, faults.RestartClient{Client: "A"})
		if got := time.Until(s.ClientTime("A")); got != 59*time.Second {
			t.Errorf("A's clock is ahead by %v after a restart; want 59s: it is its machine's", got)
		}
	})
}

func TestNodeCrashAndRestart(t *testing.T) {
	for _, c := range []struct {
		name   string
		down   time.Duration
		empty  bool
		events string
		value  string
	}{
		{"with its data", time.Second, false, `
			fault n1 crash
			fault n1 restart`, "A-value-1"},
		{"empty", time.Second, true, `
			fault n1 crash
			fault n1 restart empty
			n1/0 gone by restart`, "redis: nil"},
		{"expiry dates pass on", 2 * ttl, false, `
			fault n1 crash
			fault n1 restart
			n1/0 gone by expiry`, "redis: nil"},
	} {
		t.Run(c.name, func(t *testing.T) {
			play(t, sim.Config{Seed: 1}, func(s *stage) {
				a := s.client("A", "n1")
				s.command(a, "SET", "lock", "A-value-1", "PX", 30000).want("OK")
				sha := s.command(a, "SCRIPT", "LOAD", "return 1").wait().said()
				s.command(a, "EVALSHA", sha, 0).want("1")
				idle := s.dial("A", "n1").receive(1)
				s.forget()
				s.apply(faults.CrashNode{Node: "n1"})
				idle.want("read: connection reset by peer")
				if got := s.command(a, "GET", "lock").wait().said(); !strings.Contains(got, "refused") {
					t.Errorf("a node that is down: %s", got)
				}
				s.run(c.down)
				s.apply(faults.RestartNode{Node: "n1", Empty: c.empty})
				s.want(c.events, checker.Fault, checker.State)
				s.command(a, "GET", "lock").want(c.value)
				s.command(a, "EVALSHA", sha, 0).want("NOSCRIPT No matching script. Please use EVAL.")
			})
		})
	}
}

func TestNodePause(t *testing.T) {
	play(t, sim.Config{Seed: 1}, func(s *stage) {
		a, b := s.dial("A", "n1"), s.dial("B", "n1")
		s.apply(faults.PauseNode{Node: "n1"})
		a.send("SET lock A-value-1 PX 30000", "GET lock")
		s.run(time.Second)
		b.send("SETNX lock B-value-1")
		a.Close() // the client gave up; the kernel still sends the written data
		s.run(time.Second)
		s.want("fault n1 pause")
		if way := s.Client("B").UnderWay; way != 1 {
			t.Errorf("%d messages of B are under way; want 1", way)
		}
		s.apply(faults.ResumeNode{Node: "n1"})
		s.run(time.Second)
		s.want(`
			fault n1 pause
			fault n1 resume
			A > n1/0 SET lock A1 PX 30000
			n1/0 A1 for 30s by command A
			A > n1/0 GET lock
			B > n1/0 SETNX lock B1
			B < n1 SETNX lock B1 = (integer) 0`)
	})
}

// TestExpiryDuringANodePause checks that a key's lifetime continues while its node is paused.
func TestExpiryDuringANodePause(t *testing.T) {
	play(t, sim.Config{Seed: 1}, func(s *stage) {
		a := s.client("A", "n1")
		s.command(a, "SET", "lock", "A-value-1", "PX", 30000).want("OK")
		s.apply(faults.PauseNode{Node: "n1"})
		s.run(2 * ttl)
		s.apply(faults.ResumeNode{Node: "n1"})
		s.command(a, "GET", "lock").want("redis: nil")
	})
}

func TestOperators(t *testing.T) {
	for _, c := range []struct {
		fault faults.Fault
		want  string
		other string // remaining lifetime of another key
	}{
		{faults.Flush{Node: "n1"}, "n1/0 gone by flush", "redis: nil"},
		{faults.Evict{Node: "n1"}, "n1/0 gone by eviction", "x"},
		{faults.ScriptFlush{Node: "n1"}, "", "x"},
		{faults.Flush{Node: "quorum"}, "n1/0 gone by flush", "redis: nil"},
	} {
		t.Run(c.fault.String(), func(t *testing.T) {
			play(t, sim.Config{Seed: 1}, func(s *stage) {
				a := s.client("A", "n1")
				s.command(a, "SET", "lock", "A-value-1").want("OK")
				s.command(a, "SET", "other", "x").want("OK")
				s.forget()
				s.apply(c.fault)
				s.want(c.want, checker.State)
				s.command(a, "GET", "other").want(c.other)
			})
		})
	}
}

func TestClose(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, err := sim.New(sim.Config{Nodes: 2, Replicas: 1, Lock: faults.SingleKeyLock("lock"), TTL: ttl})
		if err != nil {
			t.Fatal(err)
		}
		s := &stage{t: t, World: w}
		w.Begin()
		subscribed, blocked, held, paused, crashed := s.dial("A", "n1"), s.dial("A", "n2"), s.dial("B", "n1"), s.dial("C", "n1"), s.dial("D", "n1")
		s.apply(faults.Hold{Match: faults.Match{Clients: []string{"B"}, Way: faults.Before}}, faults.Replication{Node: "n2", Mode: faults.ReplicationStop})
		subscribed.send("SUBSCRIBE ch")
		blocked.send("BLPOP queue 0")
		held.send("PING")
		s.run(time.Second)
		s.apply(faults.PauseClient{Client: "C"}, faults.CrashClient{Client: "D"}, faults.RestartClient{Client: "D"},
			faults.Partition{Clients: []string{"E"}}, faults.PauseNode{Node: "n1"})
		work := []*task{
			subscribed.receive(1000), blocked.receive(1000), held.receive(1000), paused.receive(1000), crashed.receive(1000),
			s.begin(func() (any, error) { return s.Dial(bg, "C", "n1") }),
			s.begin(func() (any, error) { return s.Dial(bg, "E", "n1") }),
			s.begin(func() (any, error) { return crashed.Write([]byte("PING\r\n")) }),
		}
		wall := s.begin(func() (any, error) { return s.ClientTime("C"), nil })
		s.run(time.Second)
		for i, w := range work {
			if w.done {
				t.Errorf("%d. was not blocked: %s", i, w.said())
			}
		}
		for range 2 {
			if err := w.Close(); err != nil {
				t.Errorf("Close: %v", err)
			}
		}
		synctest.Wait()
		for i, w := range work {
			if !w.done || !errors.Is(w.err, net.ErrClosed) {
				t.Errorf("%d. after Close: %s", i, w.said())
			}
		}
		if !wall.done {
			t.Error("Wall still blocks")
		}
		for _, name := range []string{"A", "D", "new"} {
			if _, err := w.Dial(bg, name, "n1"); !errors.Is(err, net.ErrClosed) {
				t.Errorf("Dial of %s after Close: %v", name, err)
			}
		}
		if err := w.Apply(faults.RestartClient{Client: "A"}); !errors.Is(err, net.ErrClosed) {
			t.Errorf("Apply after Close: %v", err)
		}
	})
}

func TestRun(t *testing.T) {
	play(t, sim.Config{Seed: 1}, func(s *stage) {
		if s.Run(time.Minute, func() bool { return s.Now() >= time.Minute+1 }) || s.Now() != time.Minute {
			t.Errorf("Run ended at %v; want its limit", s.Now())
		}
		if !s.Run(0, func() bool { return true }) || s.Now() != time.Minute {
			t.Error("Run(0) doesn't ask")
		}
		asked := 0
		go func() {
			time.Sleep(time.Second)
			s.Notify()
		}()
		s.Run(time.Hour, func() bool { asked++; return s.Now() == time.Minute+time.Second })
		if s.Now() != time.Minute+time.Second {
			t.Errorf("Run ended at %v, after %d looks; want it to be woken", s.Now(), asked)
		}
	})
}
