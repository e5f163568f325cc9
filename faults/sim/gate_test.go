package sim_test

import (
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/lockfault/lockfault/checker"
	"github.com/lockfault/lockfault/faults"
	"github.com/lockfault/lockfault/faults/sim"
)

// gateKinds are the kinds of events about commands and the gate.
var gateKinds = []checker.Kind{
	checker.Request, checker.Reply, checker.Push, checker.Held, checker.Passed, checker.Dropped,
}

func on(way faults.Way, commands ...string) faults.Match {
	return faults.Match{Clients: []string{"A"}, Way: way, Commands: commands}
}

// TestGateOrders checks what happens to one request of A, SET lock A-value-1, under orders given
// before and after the request was sent.
func TestGateOrders(t *testing.T) {
	second := faults.Span{Abs: time.Second}
	for _, c := range []struct {
		name    string
		before  []faults.Fault
		after   []faults.Fault
		answer  string
		took    time.Duration // rounded to 100 ms
		events  string
		missing int // messages lost
	}{
		{"nothing", nil, nil, "OK", 0, `
			A > n1/0 SET lock A1
			A < n1 SET lock A1 = OK`, 0},
		{"hold a request", []faults.Fault{faults.Hold{Match: on(faults.Before, "SET")}}, []faults.Fault{faults.Pass{Clients: []string{"A"}}}, "OK", time.Second, `
			held A request SET lock A1
			passed A request SET lock A1
			A > n1/0 SET lock A1
			A < n1 SET lock A1 = OK`, 0},
		{"hold a reply", []faults.Fault{faults.Hold{Match: on(faults.After, "SET")}}, []faults.Fault{faults.Pass{Clients: []string{"A"}}}, "OK", time.Second, `
			A > n1/0 SET lock A1
			held A reply SET lock A1
			passed A reply SET lock A1
			A < n1 SET lock A1 = OK`, 0},
		{"pass somebody else", []faults.Fault{faults.Hold{Match: on(faults.Before, "SET")}}, []faults.Fault{faults.Pass{Clients: []string{"B"}}}, "i/o timeout", 3 * time.Second, `
			held A request SET lock A1`, 0},
		{"pass everybody", []faults.Fault{faults.Hold{Match: on(faults.Before, "SET")}}, []faults.Fault{faults.Pass{}}, "OK", time.Second, `
			held A request SET lock A1
			passed A request SET lock A1
			A > n1/0 SET lock A1
			A < n1 SET lock A1 = OK`, 0},
		{"delay a request", []faults.Fault{faults.Delay{Match: on(faults.Before, "SET"), By: second}}, nil, "OK", time.Second, `
			A > n1/0 SET lock A1
			A < n1 SET lock A1 = OK`, 0},
		{"delay both ways", []faults.Fault{faults.Delay{Match: on(faults.Before), By: second}, faults.Delay{Match: on(faults.After), By: second}}, nil, "OK", 2 * time.Second, `
			A > n1/0 SET lock A1
			A < n1 SET lock A1 = OK`, 0},
		{"drop a request", []faults.Fault{faults.Drop{Match: on(faults.Before, "SET")}}, nil, "i/o timeout", 3 * time.Second, `
			dropped A request SET lock A1`, 1},
		{"drop a reply", []faults.Fault{faults.Drop{Match: on(faults.After, "SET")}}, nil, "i/o timeout", 3 * time.Second, `
			A > n1/0 SET lock A1
			dropped A reply SET lock A1`, 1},
		{"reset at a request", []faults.Fault{faults.Reset{Match: on(faults.Before, "SET")}}, nil, "connection reset by peer", 0, `
			dropped A request SET lock A1`, 1},
		{"reset at a reply", []faults.Fault{faults.Reset{Match: on(faults.After, "SET")}}, nil, "connection reset by peer", 0, `
			A > n1/0 SET lock A1
			dropped A reply SET lock A1`, 1},
		{"of another command", []faults.Fault{faults.Drop{Match: on(faults.Before, "GET")}}, nil, "OK", 0, `
			A > n1/0 SET lock A1
			A < n1 SET lock A1 = OK`, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			play(t, sim.Config{Seed: 1}, func(s *stage) {
				a := s.client("A", "n1")
				s.command(a, "PING").wait()
				s.forget()
				s.apply(c.before...)
				sent := s.Now()
				set := s.command(a, "SET", "lock", "A-value-1")
				s.run(time.Second)
				s.apply(c.after...)
				set.wait()
				if !strings.HasSuffix(set.said(), c.answer) {
					t.Errorf("the client got %s; want %s", set.said(), c.answer)
				}
				if took := (set.ended - sent).Round(100 * time.Millisecond); took != c.took {
					t.Errorf("it took %v; want %v", took, c.took)
				}
				s.want(c.events, gateKinds...)
				if lost := s.Client("A").Lost; lost != c.missing {
					t.Errorf("%d messages lost; want %d", lost, c.missing)
				}
			})
		})
	}
}

// TestGateKeepsTheOrderOfAConnection checks that messages behind a held or delayed message on its
// connection wait. Otherwise a pipeline would be executed, and its replies returned, in the wrong
// order.
func TestGateKeepsTheOrderOfAConnection(t *testing.T) {
	second := faults.Span{Abs: time.Second}
	for _, c := range []struct {
		name  string
		order faults.Fault
		free  bool // the case needs a pass
		took  time.Duration
	}{
		{"hold a request", faults.Hold{Match: on(faults.Before, "SET")}, true, 2 * time.Second},
		{"hold a reply", faults.Hold{Match: on(faults.After, "SET")}, true, 2 * time.Second},
		{"delay a request", faults.Delay{Match: on(faults.Before, "SET"), By: second}, false, time.Second},
		{"delay a reply", faults.Delay{Match: on(faults.After, "SET"), By: second}, false, time.Second},
		{"delay each request", faults.Delay{Match: on(faults.Before), By: second}, false, time.Second},
		{"delay each reply", faults.Delay{Match: on(faults.After), By: second}, false, time.Second},
	} {
		t.Run(c.name, func(t *testing.T) {
			play(t, sim.Config{Seed: 1}, func(s *stage) {
				a := s.dial("A", "n1")
				s.apply(c.order)
				a.send("INCR n", "SET lock A-value-1", "GET lock", "INCR n")
				read := a.receive(len(":1\r\n+OK\r\n$9\r\nA-value-1\r\n:2\r\n"))
				s.run(2 * time.Second)
				if c.free {
					if read.done {
						t.Error("all came though a message was held")
					}
					s.apply(faults.Pass{Clients: []string{"A"}})
				}
				read.want(":1\r\n+OK\r\n$9\r\nA-value-1\r\n:2\r\n")
				if took := read.ended.Round(100 * time.Millisecond); took != c.took {
					t.Errorf("it took %v; want %v", took, c.took)
				}
			})
		})
	}
}

func TestPassOnceTakesTheOneHeldLongest(t *testing.T) {
	play(t, sim.Config{Seed: 1}, func(s *stage) {
		s.apply(faults.Hold{Match: faults.Match{Way: faults.Before}})
		a, b := s.dial("A", "n1"), s.dial("B", "n1")
		for i, c := range []*wire{b, a, b} {
			c.send("SETNX lock value-number-" + string(rune('1'+i)))
			s.run(10 * time.Millisecond)
		}
		// The second request of B waits behind the first and has not reached the gate.
		if a, b := s.Client("A").Held, s.Client("B").Held; a != 1 || b != 1 {
			t.Errorf("held %d of A and %d of B; want 1 each", a, b)
		}
		if way := s.Client("B").UnderWay; way != 2 {
			t.Errorf("%d messages of B are under way; want 2", way)
		}
		s.forget()
		s.apply(faults.Pass{Clients: []string{"A", "B"}, Once: true})
		s.want(`
			fault pass A B once
			passed B request SETNX lock B1
			B > n1/0 SETNX lock B1
			n1/0 B1 by command B
			held B request SETNX lock B2`)
		s.forget()
		s.apply(faults.Pass{Clients: []string{"A", "B"}})
		s.run(10 * time.Millisecond)
		s.want(`
			passed A request SETNX lock A1
			A > n1/0 SETNX lock A1
			passed B request SETNX lock B2
			B > n1/0 SETNX lock B2`, checker.Passed, checker.Request)
	})
}

// TestHeldRequestOutlivesItsConnection checks that a held request is executed after a pass even if
// its client gave up and closed the connection meanwhile.
func TestHeldRequestOutlivesItsConnection(t *testing.T) {
	play(t, sim.Config{Seed: 1}, func(s *stage) {
		a := s.client("A", "n1")
		s.command(a, "PING").wait()
		s.apply(faults.Hold{Match: on(faults.Before, "SET")})
		s.command(a, "SET", "lock", "A-value-1").want("i/o timeout")
		s.command(a, "GET", "lock").want("redis: nil") // over another connection
		s.run(time.Minute)
		if held := s.Client("A").Held; held != 1 {
			t.Fatalf("%d messages are held; want 1", held)
		}
		s.forget()
		s.apply(faults.Pass{Clients: []string{"A"}})
		s.run(time.Minute)
		s.want(`
			fault pass A
			passed A request SET lock A1
			A > n1/0 SET lock A1
			n1/0 A1 by command A`)
		s.command(a, "GET", "lock").want("A-value-1")
	})
}

// TestDelayedRequestOutlivesItsConnection checks the same for a delayed request.
func TestDelayedRequestOutlivesItsConnection(t *testing.T) {
	play(t, sim.Config{Seed: 1}, func(s *stage) {
		a := s.dial("A", "n1")
		s.apply(faults.Delay{Match: on(faults.Before), By: faults.Span{TTLs: 1}})
		a.send("SET lock A-value-1", "PEXPIRE lock 1000")
		a.Close()
		s.run(ttl + time.Millisecond)
		s.want(`
			A > n1/0 SET lock A1
			n1/0 A1 by command A
			A > n1/0 PEXPIRE lock 1000
			n1/0 A1 for 1s by command A`, checker.Request, checker.State, checker.Reply)
	})
}

func TestDropLosesTheRestOfTheConnection(t *testing.T) {
	play(t, sim.Config{Seed: 1}, func(s *stage) {
		a := s.dial("A", "n1")
		s.apply(faults.Drop{Match: on(faults.Before, "SET"), Times: 1})
		a.send("INCR n", "SET lock A-value-1", "INCR n")
		a.receive(4).want(":1\r\n")
		s.run(time.Second)
		a.send("INCR n")
		s.run(time.Second)
		s.want(`
			A > n1/0 INCR n
			dropped A request SET lock A1
			dropped A request INCR n
			dropped A request INCR n`, checker.Request, checker.Dropped)
		// A new connection is not affected.
		b := s.dial("A", "n1")
		b.send("SET lock A-value-2")
		b.receive(5).want("+OK\r\n")
	})
}

func TestClearEndsDelaysButNotHolds(t *testing.T) {
	play(t, sim.Config{Seed: 1}, func(s *stage) {
		s.apply(
			faults.Hold{Match: on(faults.Before, "GET")},
			faults.Delay{Match: on(faults.Before, "SET"), By: faults.Span{Abs: time.Hour}},
			faults.Clear{},
		)
		a := s.client("A", "n1")
		s.command(a, "SET", "lock", "A-value-1").want("OK")
		get := s.command(a, "GET", "lock")
		s.run(time.Second)
		if get.done || s.Client("A").Held != 1 {
			t.Error("clear ended a hold")
		}
	})
}

func TestHandshakeIsNotAnyCommand(t *testing.T) {
	play(t, sim.Config{Seed: 1}, func(s *stage) {
		s.apply(faults.Hold{Match: on(faults.Before), Times: 1})
		a := s.client("A", "n1")
		get := s.command(a, "GET", "lock")
		s.run(time.Second)
		s.want("held A request GET lock", checker.Held)
		s.apply(faults.Pass{Clients: []string{"A"}})
		get.want("redis: nil")
	})
}

// TestRetryOfTheClientLibrary checks that the gate and the history have both the request without a
// reply and the client library's retry.
func TestRetryOfTheClientLibrary(t *testing.T) {
	play(t, sim.Config{Seed: 1}, func(s *stage) {
		a := s.client("A", "n1", func(o *redis.Options) { o.MaxRetries = 3 })
		s.apply(faults.Drop{Match: on(faults.After, "SET"), Times: 1})
		s.command(a, "SET", "lock", "A-value-1", "NX").want("redis: nil")
		s.want(`
			A > n1/0 SET lock A1 NX
			n1/0 A1 by command A
			dropped A reply SET lock A1 NX
			A > n1/0 SET lock A1 NX
			A < n1 SET lock A1 NX = (nil)`, append(gateKinds, checker.State)...)
	})
}
