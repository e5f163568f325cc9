package sim_test

import (
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/lockfault/lockfault/checker"
	"github.com/lockfault/lockfault/faults"
	"github.com/lockfault/lockfault/faults/sim"
)

// subscribe subscribes a client to ch and waits for the confirmation.
func (s *stage) subscribe(c *redis.Client) (sub *redis.PubSub) {
	s.t.Helper()
	s.do(func() (any, error) {
		sub = c.Subscribe(bg, "ch")
		return sub.Receive(bg)
	}).want("subscribe: ch")
	s.closers = append(s.closers, sub)
	return sub
}

func TestPubSub(t *testing.T) {
	play(t, sim.Config{Seed: 1}, func(s *stage) {
		a, b := s.client("A", "n1"), s.client("B", "n1")
		sub := s.subscribe(a)
		s.command(b, "PUBLISH", "other", "x").want("0")
		s.forget()
		heard := s.begin(func() (any, error) { return sub.ReceiveMessage(bg) })
		s.command(b, "PUBLISH", "ch", "free").want("1")
		heard.want("Message<ch: free>")
		s.want(`
			B > n1/0 PUBLISH ch free
			B < n1 PUBLISH ch free = (integer) 1
			A < n1 ["message" "ch" "free"]`)
		published, pushed := s.events[0], s.events[len(s.events)-1]
		if pushed.Sent != published.Time {
			t.Errorf("published at %v, the message set out at %v", published.Time, pushed.Sent)
		}
	})
}

func TestSubscribersHearInOneOrder(t *testing.T) {
	play(t, sim.Config{Seed: 1}, func(s *stage) {
		a := s.dial("A", "n1")
		a.send("SUBSCRIBE ch", "PSUBSCRIBE *")
		b := s.dial("B", "n1")
		s.run(time.Second)
		s.forget()
		b.send("PUBLISH ch 1", "PUBLISH ch 2")
		s.run(time.Second)
		// Redis sends messages of channels before those of patterns.
		s.want(`
			A < n1 ["message" "ch" "1"]
			A < n1 ["pmessage" "*" "ch" "1"]
			A < n1 ["message" "ch" "2"]
			A < n1 ["pmessage" "*" "ch" "2"]`, checker.Push)
	})
}

func TestGateOfMessages(t *testing.T) {
	for _, c := range []struct {
		name   string
		order  faults.Fault
		pass   bool
		events string
	}{
		{"drop", faults.Drop{Match: on(faults.Messages), Times: 1}, false, `
			dropped A push
			A < n1 ["message" "ch" "2"]`}, // a server drops pushes individually
		{"hold", faults.Hold{Match: on(faults.Messages)}, true, `
			held A push
			passed A push
			A < n1 ["message" "ch" "1"]
			A < n1 ["message" "ch" "2"]`},
		{"delay", faults.Delay{Match: on(faults.Messages), By: faults.Span{Abs: time.Second}}, false, `
			A < n1 ["message" "ch" "1"]
			A < n1 ["message" "ch" "2"]`},
		{"replies are no messages", faults.Drop{Match: on(faults.After)}, false, `
			A < n1 ["message" "ch" "1"]
			A < n1 ["message" "ch" "2"]`},
	} {
		t.Run(c.name, func(t *testing.T) {
			play(t, sim.Config{Seed: 1}, func(s *stage) {
				a := s.dial("A", "n1")
				a.send("SUBSCRIBE ch")
				s.run(time.Second)
				s.apply(c.order)
				s.forget()
				b := s.dial("B", "n1")
				b.send("PUBLISH ch 1")
				s.run(time.Second)
				b.send("PUBLISH ch 2")
				s.run(time.Second)
				if c.pass {
					s.apply(faults.Pass{Clients: []string{"A"}})
				}
				s.run(time.Second)
				s.want(c.events, checker.Push, checker.Held, checker.Passed, checker.Dropped)
			})
		})
	}
}

func TestSubscriptionEndsWithItsConnection(t *testing.T) {
	play(t, sim.Config{Seed: 1}, func(s *stage) {
		a, b := s.dial("A", "n1"), s.client("B", "n1")
		a.send("SUBSCRIBE ch")
		a.receive(len("*3\r\n$9\r\nsubscribe\r\n$2\r\nch\r\n:1\r\n")).wait()
		s.command(b, "PUBLISH", "ch", "x").want("1")
		a.Close()
		s.run(time.Second)
		s.command(b, "PUBLISH", "ch", "x").want("0")
		c := s.dial("C", "n1")
		c.send("SUBSCRIBE ch")
		s.run(time.Second)
		s.apply(faults.CrashNode{Node: "n1"}, faults.RestartNode{Node: "n1"})
		s.command(b, "PUBLISH", "ch", "x").want("0")
	})
}

// TestPausedSubscriberDoesNotStopTime checks that writes to a subscription do not block during a
// pause. go-redis pings its subscriptions with a mutex locked: if the ping blocked, closing the
// subscription would wait for the mutex, and virtual time would stop.
func TestPausedSubscriberDoesNotStopTime(t *testing.T) {
	for _, f := range []faults.Fault{faults.PauseClient{Client: "A"}, faults.CrashClient{Client: "A"}} {
		t.Run(f.String(), func(t *testing.T) {
			play(t, sim.Config{Seed: 1}, func(s *stage) {
				sub := s.subscribe(s.client("A", "n1"))
				sub.Channel() // starts go-redis's health checks, every 3s
				s.run(time.Second)
				s.apply(f)
				s.forget()
				s.run(10 * time.Second)
				s.begin(func() (any, error) { return nil, sub.Close() }).want("<nil>")
				s.want("")
			})
		})
	}
}

func TestPingsOfAPausedSubscriberArriveLater(t *testing.T) {
	play(t, sim.Config{Seed: 1}, func(s *stage) {
		sub := s.subscribe(s.client("A", "n1"))
		sub.Channel()
		s.apply(faults.PauseClient{Client: "A"})
		s.run(10 * time.Second)
		s.forget()
		s.apply(faults.ResumeClient{Client: "A"})
		s.run(100 * time.Millisecond)
		s.want(`
			A > n1/0 PING
			A > n1/0 PING
			A > n1/0 PING`, checker.Request)
	})
}
