package sim_test

import (
	"errors"
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
		least        int // different values of 200
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
					s.apply(c.fault) // A is not known yet
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
		// A new connection finds nobody either, and is in no hurry to say so.
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
		// The connection is of no use any more; its ends find out when they
		// can talk again.
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

// An empty list of clients means all, those included who come later.
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

// A subscriber can't have missed a message and yet be on the same connection.
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
