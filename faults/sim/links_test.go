package sim_test

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/lockfault/lockfault/checker"
	"github.com/lockfault/lockfault/faults"
	"github.com/lockfault/lockfault/faults/sim"
)

func TestLatencyAndJitter(t *testing.T) {
	for _, c := range []struct {
		name         string
		base, jitter time.Duration
		fault        faults.Fault
		low, high    time.Duration
		least        int // minimum number of different values among 200
	}{
		{"default", 0, 0, nil, 300 * time.Microsecond, 700 * time.Microsecond, 150},
		{"configured", 10 * time.Millisecond, time.Millisecond, nil, 9 * time.Millisecond, 11 * time.Millisecond, 150},
		{"without jitter", 10 * time.Millisecond, 0, nil, 10 * time.Millisecond, 10 * time.Millisecond, 1},
		{"a fault", 0, 0, faults.Latency{Base: faults.Span{TTLs: 0.1}, Jitter: faults.Span{Abs: time.Second}}, 2 * time.Second, 4 * time.Second, 150},
		{"a fault for others", 0, 0, faults.Latency{Clients: []string{"B"}, Base: faults.Span{TTLs: 0.1}}, 300 * time.Microsecond, 700 * time.Microsecond, 150},
		{"a fault for another node", 0, 0, faults.Latency{Nodes: []string{"n2"}, Base: faults.Span{TTLs: 0.1}}, 300 * time.Microsecond, 700 * time.Microsecond, 150},
		{"more jitter than latency", time.Millisecond, 5 * time.Millisecond, nil, 0, 6 * time.Millisecond, 100},
	} {
		t.Run(c.name, func(t *testing.T) {
			events := play(t, sim.Config{Nodes: 2, Seed: 7, Base: c.base, Jitter: c.jitter}, func(s *stage) {
				if c.fault != nil {
					s.apply(c.fault) // client A does not exist yet
				}
				a := s.dial("A", "n1")
				for range 100 {
					a.send("PING")
					a.receive(7).want("+PONG\r\n")
				}
			})
			different := map[time.Duration]bool{}
			for _, e := range events {
				if e.Kind != checker.Request && e.Kind != checker.Reply {
					continue
				}
				took := e.Time - e.Sent
				different[took] = true
				if took < c.low || took > c.high {
					t.Fatalf("%s took %v; want %v to %v", line(e), took, c.low, c.high)
				}
			}
			if len(different) < c.least {
				t.Errorf("%d different latencies; want at least %d", len(different), c.least)
			}
		})
	}
}

func TestPartition(t *testing.T) {
	play(t, sim.Config{Nodes: 2, Seed: 1}, func(s *stage) {
		a1, a2, b1 := s.client("A", "n1"), s.client("A", "n2"), s.client("B", "n1")
		s.command(a1, "PING").want("PONG")
		s.forget()
		s.apply(faults.Partition{Clients: []string{"A"}, Nodes: []string{"n1"}})
		sent := s.Now()
		lost := s.command(a1, "SET", "lock", "A-value-1").wait()
		if !errors.Is(lost.err, os.ErrDeadlineExceeded) || lost.ended-sent != 3*time.Second {
			t.Errorf("%v after %v; want go-redis's timeout of 3s", lost.err, lost.ended-sent)
		}
		s.command(a2, "SET", "lock", "A-value-2").want("OK")
		s.command(b1, "GET", "lock").want("redis: nil")
		// A new connection cannot be made either, and its attempt does not fail at once.
		sent = s.Now()
		if dial := s.command(a1, "GET", "lock").wait(); !strings.Contains(dial.said(), "deadline") || dial.ended-sent < time.Second {
			t.Errorf("%s after %v; want the dialler's timeout", dial.said(), dial.ended-sent)
		}
		s.apply(faults.Heal{})
		s.command(a1, "SET", "lock", "A-value-3").want("OK")
		s.want(`
			fault partition A from n1
			dropped A request SET lock A1
			n2/0 A2 by command A
			fault heal
			n1/0 A3 by command A`, checker.Fault, checker.Dropped, checker.State)
	})
}

func TestPartitionCutsRepliesToo(t *testing.T) {
	play(t, sim.Config{Seed: 1}, func(s *stage) {
		a := s.dial("A", "n1")
		s.apply(faults.Hold{Match: on(faults.After)})
		a.send("SET lock A-value-1")
		s.run(time.Second)
		s.apply(faults.Partition{}, faults.Pass{Clients: []string{"A"}})
		reading := a.receive(1)
		s.run(time.Second)
		s.want(`
			A > n1/0 SET lock A1
			held A reply SET lock A1
			passed A reply SET lock A1
			dropped A reply SET lock A1`, gateKinds...)
		// The connection is unusable; its ends detect this when they can communicate again.
		if reading.done {
			t.Errorf("the client heard of it: %s", reading.said())
		}
		s.apply(faults.Heal{})
		reading.want("read: connection reset by peer")
	})
}

func TestHealSparesWhatLostNothing(t *testing.T) {
	play(t, sim.Config{Seed: 1}, func(s *stage) {
		a := s.dial("A", "n1")
		s.apply(faults.Partition{})
		s.run(time.Hour)
		s.apply(faults.Heal{})
		a.send("PING")
		a.receive(7).want("+PONG\r\n")
	})
}

// TestPartitionOfEverybody checks that an empty list of clients means all, including future
// clients.
func TestPartitionOfEverybody(t *testing.T) {
	play(t, sim.Config{Nodes: 2, Seed: 1}, func(s *stage) {
		s.apply(faults.Partition{Nodes: []string{"n2"}})
		s.command(s.client("A", "n1"), "PING").want("PONG")
		a2 := s.client("A", "n2")
		if got := s.command(a2, "PING").wait().said(); !strings.Contains(got, "deadline") {
			t.Errorf("PING over a cut link: %s", got)
		}
		s.apply(faults.Heal{Nodes: []string{"n2"}})
		s.command(a2, "PING").want("PONG")
		s.command(s.client("B", "n2"), "PING").want("PONG")
	})
}

// TestPartitionOfASubscriber checks that the connection of a subscriber ends if it missed a
// message.
func TestPartitionOfASubscriber(t *testing.T) {
	play(t, sim.Config{Seed: 1}, func(s *stage) {
		a := s.dial("A", "n1")
		a.send("SUBSCRIBE ch")
		s.run(time.Second)
		s.apply(faults.Partition{Clients: []string{"A"}})
		s.command(s.client("B", "n1"), "PUBLISH", "ch", "free").want("1")
		s.run(time.Second)
		s.apply(faults.Heal{})
		a.receive(1000).want("read: connection reset by peer")
	})
}

// moments returns the times at which requests and replies arrived, one per line.
func (s *stage) moments() string {
	var all []string
	for _, e := range s.events {
		if e.Kind == checker.Request || e.Kind == checker.Reply {
			command, _, _ := strings.Cut(e.Command, " ")
			all = append(all, fmt.Sprint(e.Kind, " ", command, " ", e.Time.Round(time.Microsecond)))
		}
	}
	return strings.Join(all, "\n")
}

func (s *stage) wantMoments(want ...string) {
	s.t.Helper()
	if got := s.moments(); got != strings.Join(want, "\n") {
		s.t.Errorf("got\n%s\nwant\n%s", got, strings.Join(want, "\n"))
	}
}

func rate(text string) faults.Rate {
	r, err := faults.ParseRate(text)
	if err != nil {
		panic(err)
	}
	return r
}

// TestBandwidth checks arrival times on a limited line. PING is 14 bytes long and PONG 7, GET k 20
// and its reply here 100.
func TestBandwidth(t *testing.T) {
	pings := []string{"request PING 2.01s", "reply PING 3.02s"}
	for _, c := range []struct {
		name  string
		fault faults.Bandwidth
		send  []string
		want  []string
	}{
		{"one", faults.Bandwidth{Rate: rate("7B/s")}, []string{"PING"}, pings},
		{"per TTL", faults.Bandwidth{Rate: rate("210B/ttl")}, []string{"PING"}, pings},
		{"this link", faults.Bandwidth{Clients: []string{"A"}, Nodes: []string{"n1"}, Rate: rate("7B/s")}, []string{"PING"}, pings},
		{"other clients", faults.Bandwidth{Clients: []string{"B"}, Rate: rate("7B/s")}, []string{"PING"}, []string{"request PING 10ms", "reply PING 20ms"}},
		{"other nodes", faults.Bandwidth{Nodes: []string{"n2"}, Rate: rate("7B/s")}, []string{"PING"}, []string{"request PING 10ms", "reply PING 20ms"}},
		{"unlimited", faults.Bandwidth{}, []string{"PING"}, []string{"request PING 10ms", "reply PING 20ms"}},
		{"a pipeline", faults.Bandwidth{Rate: rate("7B/s")}, []string{"PING", "PING"}, []string{
			"request PING 2.01s", "reply PING 3.02s", "request PING 4.01s", "reply PING 5.02s"}},
		{"long replies", faults.Bandwidth{Rate: rate("10B/s")}, []string{"GET k", "GET k", "GET k"}, []string{
			"request GET 2.01s", "request GET 4.01s", "request GET 6.01s", "reply GET 12.02s", "reply GET 22.02s", "reply GET 32.02s"}},
		{"hardly any", faults.Bandwidth{Rate: faults.Rate{Bytes: 1, Per: faults.Span{TTLs: 1e6}}}, []string{"PING", "PING"}, nil},
	} {
		for _, known := range []bool{true, false} {
			t.Run(fmt.Sprintf("%s, known %t", c.name, known), func(t *testing.T) {
				play(t, sim.Config{Nodes: 2, Seed: 1, Base: 10 * time.Millisecond}, func(s *stage) {
					s.dial("B", "n1").send("SET k " + strings.Repeat("x", 93))
					var a *wire
					if known {
						a = s.dial("A", "n1")
					}
					s.run(time.Second)
					s.Begin()
					s.forget()
					s.apply(c.fault)
					if !known {
						a = s.dial("A", "n1")
					}
					a.send(c.send...)
					s.run(time.Hour)
					s.wantMoments(c.want...)
				})
			})
		}
	}
}

// TestBandwidthIsThatOfAConnection checks that each connection has a separate line.
func TestBandwidthIsThatOfAConnection(t *testing.T) {
	play(t, sim.Config{Seed: 1, Base: 10 * time.Millisecond}, func(s *stage) {
		s.apply(faults.Bandwidth{Rate: rate("7B/s")})
		s.dial("A", "n1").send("PING")
		s.dial("A", "n1").send("PING")
		s.run(time.Minute)
		s.wantMoments("request PING 2.01s", "request PING 2.01s", "reply PING 3.02s", "reply PING 3.02s")
	})
}

// TestBandwidthIsNotSaved checks that an idle line does not accumulate bandwidth. It also checks
// that data that a client wrote before it hung up arrives before the server detects the close.
func TestBandwidthIsNotSaved(t *testing.T) {
	play(t, sim.Config{Seed: 1, Base: 10 * time.Millisecond}, func(s *stage) {
		s.apply(faults.Bandwidth{Rate: rate("7B/s")})
		a := s.dial("A", "n1")
		for range 2 {
			s.run(10 * time.Second)
			a.send("PING")
		}
		a.Close()
		s.run(time.Minute)
		s.wantMoments("request PING 12.01s", "reply PING 13.02s", "request PING 22.01s")
	})
}

// TestChangeOfALink checks that messages on a link that changes arrive at once and in order, and
// that those on other links do not.
func TestChangeOfALink(t *testing.T) {
	seconds := func(n time.Duration) faults.Span { return faults.Span{Abs: n * time.Second} }
	for _, c := range []struct {
		name        string
		first, then faults.Fault
		want        []string
	}{
		{"latency", faults.Latency{Base: seconds(10)}, faults.Latency{Clients: []string{"A"}, Nodes: []string{"n1"}, Base: seconds(1)}, []string{
			"request PING 3.5s", "request GET 3.5s", "request TIME 3.5s", "reply PING 4.5s",
			"request ECHO 4.5s", "reply GET 4.5s", "reply TIME 4.5s", "reply ECHO 5.5s"}},
		{"latency, of others", faults.Latency{Base: seconds(10)}, faults.Latency{Clients: []string{"B"}, Base: seconds(1)}, []string{
			"request PING 10s", "request GET 10s", "request TIME 10s", "request ECHO 13.5s",
			"reply PING 20s", "reply GET 20s", "reply TIME 20s", "reply ECHO 23.5s"}},
		{"latency, of another node", faults.Latency{Base: seconds(10)}, faults.Latency{Nodes: []string{"n2"}, Base: seconds(1)}, []string{
			"request PING 10s", "request GET 10s", "request TIME 10s", "request ECHO 13.5s",
			"reply PING 20s", "reply GET 20s", "reply TIME 20s", "reply ECHO 23.5s"}},
		{"bandwidth", faults.Bandwidth{Rate: rate("7B/s")}, faults.Bandwidth{}, []string{
			"request PING 2.01s", "reply PING 3.02s", "request GET 3.5s", "request TIME 3.5s", "reply GET 3.51s",
			"request ECHO 3.51s", "reply TIME 3.51s", "reply ECHO 3.52s"}},
		{"bandwidth, by latency", faults.Bandwidth{Rate: rate("7B/s")}, faults.Latency{Base: seconds(1)}, []string{
			"request PING 2.01s", "reply PING 3.02s", "request GET 3.5s", "request TIME 3.5s", "reply GET 5.214286s",
			"request ECHO 7.5s", "reply TIME 9.642857s", "reply ECHO 10.642857s"}},
		{"a reply", faults.Bandwidth{Rate: rate("14B/s")}, faults.Bandwidth{}, []string{
			"request PING 1.01s", "reply PING 1.52s", "request GET 2.438571s", "reply GET 2.805714s", "request TIME 3.438571s", "reply TIME 3.5s",
			"request ECHO 3.51s", "reply ECHO 3.52s"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			play(t, sim.Config{Nodes: 2, Seed: 1, Base: 10 * time.Millisecond}, func(s *stage) {
				a := s.dial("A", "n1")
				s.apply(c.first)
				a.send("PING", "GET k", "TIME")
				s.run(3500 * time.Millisecond)
				s.apply(c.then)
				a.send("ECHO x") // the line is idle
				s.run(time.Minute)
				s.wantMoments(c.want...)
			})
		})
	}
}

// TestTimeout checks a timeout of 5 s on A's link to n1 that starts after 1 s. Of three
// connections, the first loses a message, the second is idle, and the third is opened in the third
// second.
func TestTimeout(t *testing.T) {
	timeout := faults.Timeout{Clients: []string{"A"}, Nodes: []string{"n1"}, After: faults.Span{Abs: 5 * time.Second}}
	for _, c := range []struct {
		name string
		at   time.Duration
		then faults.Fault
		want [3]string // how and when the three connections end
	}{
		{"and no end", time.Hour, faults.Clear{}, [3]string{"EOF at 6s", "EOF at 6s", "EOF at 8s"}},
		{"healed before", 4 * time.Second, faults.Heal{}, [3]string{"read: connection reset by peer at 4s", "nothing yet", "nothing yet"}},
		{"healed for others", 4 * time.Second, faults.Heal{Clients: []string{"B"}}, [3]string{"EOF at 6s", "EOF at 6s", "EOF at 8s"}},
		{"healed after some", 7 * time.Second, faults.Heal{}, [3]string{"EOF at 6s", "EOF at 6s", "nothing yet"}},
		{"anew", 4 * time.Second, timeout, [3]string{"EOF at 9s", "EOF at 9s", "EOF at 9s"}},
		{"a partition instead", 4 * time.Second, faults.Partition{Clients: []string{"A"}}, [3]string{"nothing yet", "nothing yet", "nothing yet"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			play(t, sim.Config{Nodes: 2, Seed: 1}, func(s *stage) {
				loser, idle, other, b := s.dial("A", "n1"), s.dial("A", "n1"), s.dial("A", "n2"), s.dial("B", "n1")
				s.run(time.Second)
				s.apply(timeout)
				s.run(time.Second)
				loser.send("SET lock A-value-1")
				other.send("SET lock A-value-2")
				b.send("GET lock")
				s.run(time.Second)
				late := s.dial("A", "n1")
				var ends []*task
				for _, conn := range []*wire{loser, idle, late} {
					ends = append(ends, conn.receive(1))
				}
				s.run(c.at - s.Now())
				s.apply(c.then)
				s.run(time.Hour)
				for i, end := range ends {
					got := end.said()
					if end.done {
						got += fmt.Sprint(" at ", end.ended.Truncate(time.Millisecond))
					}
					if got != c.want[i] {
						t.Errorf("connection %d: %s; want %s", i+1, got, c.want[i])
					}
				}
				s.want(`
					dropped A request SET lock A1
					n2/0 A2 by command A`, checker.Dropped, checker.State)
				if c.want[2] == "nothing yet" && c.then.String() == "heal" {
					late.send("PING")
					s.run(time.Second)
					ends[2].want("+")
				}
			})
		})
	}
}

// TestTimeoutOfEverybody checks that settings for all clients apply to a new client, and that a
// timeout replaces a partition.
func TestTimeoutOfEverybody(t *testing.T) {
	play(t, sim.Config{Seed: 1}, func(s *stage) {
		a := s.dial("A", "n1")
		s.apply(faults.Partition{}, faults.Timeout{After: faults.Span{Abs: time.Second}})
		b := s.dial("B", "n1")
		for _, end := range []*task{a.receive(1), b.receive(1)} {
			// Slightly after the full second, at which timers of the client may end.
			if end.want("EOF"); end.ended <= time.Second || end.ended > time.Second+time.Microsecond {
				t.Errorf("it ended at %v", end.ended)
			}
		}
		s.apply(faults.Heal{})
		c := s.client("B", "n1")
		s.command(c, "PING").want("PONG")
	})
}

// TestTimeoutEndsTheServersEnd checks that the server's work for a connection ends with it, that a
// subscription misses the messages published meanwhile, and that replies are lost too.
func TestTimeoutEndsTheServersEnd(t *testing.T) {
	play(t, sim.Config{Seed: 1}, func(s *stage) {
		waiting, hearing, asking, b := s.dial("A", "n1"), s.dial("A", "n1"), s.dial("A", "n1"), s.client("B", "n1")
		waiting.send("BLPOP queue 0")
		hearing.send("SUBSCRIBE ch")
		hearing.receive(len("*3\r\n$9\r\nsubscribe\r\n$2\r\nch\r\n:1\r\n")).wait()
		s.apply(faults.Hold{Match: on(faults.After, "SET")})
		asking.send("SET lock A-value-1")
		s.run(time.Second)
		s.apply(faults.Timeout{Clients: []string{"A"}, After: faults.Span{Abs: time.Second}}, faults.Pass{Clients: []string{"A"}})
		s.command(b, "PUBLISH", "ch", "free").want("1")
		for _, conn := range []*wire{waiting, hearing, asking} {
			conn.receive(1).want("EOF")
		}
		s.command(b, "RPUSH", "queue", "x").want("1")
		s.command(b, "LLEN", "queue").want("1")
		s.command(b, "PUBLISH", "ch", "free").want("0")
	})
}

// TestTimeoutOfAPausedClient checks that a paused process finds its connection closed when it
// resumes.
func TestTimeoutOfAPausedClient(t *testing.T) {
	play(t, sim.Config{Seed: 1}, func(s *stage) {
		end := s.dial("A", "n1").receive(1)
		s.apply(faults.PauseClient{Client: "A"}, faults.Timeout{Clients: []string{"A"}, After: faults.Span{Abs: time.Second}})
		s.run(time.Minute)
		if end.done {
			t.Errorf("a stopped process was told: %s", end.said())
		}
		s.apply(faults.ResumeClient{Client: "A"})
		end.want("EOF")
	})
}

// TestTimeoutOfANodeThatIsDown checks that a server that is down refuses connections over a link
// with a timeout too.
func TestTimeoutOfANodeThatIsDown(t *testing.T) {
	play(t, sim.Config{Seed: 1}, func(s *stage) {
		s.apply(faults.Timeout{After: faults.Span{Abs: time.Second}}, faults.CrashNode{Node: "n1"})
		refused := s.do(func() (any, error) { return s.Dial(bg, "A", "n1") })
		if refused.err == nil || !strings.Contains(refused.err.Error(), "refused") {
			t.Errorf("got %s", refused.said())
		}
	})
}
