package real_test

import (
	"testing"
	"time"

	"github.com/lockfault/lockfault/checker"
	"github.com/lockfault/lockfault/faults"
	"github.com/lockfault/lockfault/faults/real"
)

// Before the script begins messages pass without the goroutine that plays it.
func TestAjarGate(t *testing.T) {
	t.Parallel()
	s := newStage(t, real.Config{}, "client")
	dial := s.dial("A", "n1")
	logged := make(chan error, 1)
	go func() {
		conn, err := dial()
		if err == nil {
			t.Cleanup(func() { conn.Close() })
		}
		logged <- err
	}()
	select { // nobody calls Run meanwhile
	case err := <-logged:
		if err != nil {
			t.Fatal(err)
		}
	case <-time.After(patience):
		t.Fatal("there is no answer without Run")
	}
	if got := s.Client("A"); got.UnderWay != 0 {
		t.Errorf("A's state is %+v; want nothing under way", got)
	}
}

// What is unanswered when the gate is shut is known then: replies are told from
// those to the requests that follow, one by one.
func TestGateShutsBetweenRequestAndReply(t *testing.T) {
	for _, c := range []struct {
		name string
		shut func(*stage)
	}{
		{"by Begin", func(*stage) {}},
		{"by a fault", func(s *stage) { s.apply(faults.Clear{}); s.forget() }},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s := newStage(t, real.Config{}, "client")
			a, b := s.conn("A", "n1"), s.conn("B", "n1")
			a.say("BLPOP list 0", "GET lock", "SUBSCRIBE x y")
			for begun := time.Now(); s.Client("A").UnderWay < 3; s.run(time.Millisecond) { // nobody tells
				if time.Since(begun) > patience {
					t.Fatalf("A's state is %+v; want 3 requests under way", s.Client("A"))
				}
			}
			c.shut(s)
			s.Begin()
			a.say("PING")
			s.apply(faults.Hold{Match: faults.Match{Way: faults.After, Commands: []string{"GET"}}})
			b.ask("RPUSH list 1", ":1")
			a.hear("*2 $4 list $1 1")
			s.forget()
			s.await("a reply to GET is held", func() bool { return s.Client("A").Held == 1 })
			s.apply(faults.Pass{})
			a.hear("$-1 *3 $9 subscribe $1 x :1 *3 $9 subscribe $1 y :2 *2 $4 pong $0 ")
			s.want(`
				A < n1 GET lock = (nil)
				A < n1 SUBSCRIBE x y = ["subscribe" "x" (integer) 1]
				A < n1 SUBSCRIBE x y = ["subscribe" "y" (integer) 2]
				A < n1 PING = ["pong" "\"\""]`, checker.Reply)
			if got := s.Client("A"); got.UnderWay != 0 || got.Replies != 5 {
				t.Errorf("A's state is %+v; want 5 replies and nothing under way", got)
			}
		})
	}
}
