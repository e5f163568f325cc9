package sim_test

import (
	"sync/atomic"
	"testing"
	"time"

	"github.com/lockfault/lockfault/checker"
	"github.com/lockfault/lockfault/faults"
	"github.com/lockfault/lockfault/faults/sim"
)

// TestReadersWakeOneByOne checks that several readers of one client whose data arrives at one
// instant continue 1 ns apart, in the order of their last requests, whichever connected first.
// Readers with equal requests cannot be distinguished and continue together. No reader continues at
// the round time of the script.
func TestReadersWakeOneByOne(t *testing.T) {
	second := faults.Span{Abs: time.Second}
	for _, c := range []struct {
		name        string
		first, then faults.Fault // 1 s apart
	}{
		{"deadline", faults.Clear{}, faults.Clear{}},
		{"crash", faults.Clear{}, faults.CrashNode{Node: "n1"}},
		{"heal", faults.Partition{Clients: []string{"A"}}, faults.Heal{}},
		{"timeout", faults.Timeout{After: second}, faults.Clear{}},
		{"resume", faults.PauseClient{Client: "A"}, faults.ResumeClient{Client: "A"}},
		{"replies", faults.PauseNode{Node: "n1"}, faults.ResumeNode{Node: "n1"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			for _, order := range [][]string{{"GET a", "GET b", "GET b", "GET c"}, {"GET c", "GET b", "GET a", "GET b"}} {
				play(t, sim.Config{Seed: 1}, func(s *stage) {
					ends := map[string][]*task{}
					for _, request := range order {
						a := s.dial("A", "n1")
						_ = a.SetReadDeadline(time.Now().Add(1500 * time.Millisecond))
						a.send(request)
						ends[request] = append(ends[request], a.receive(1))
					}
					if c.name != "replies" {
						s.apply(faults.Hold{Match: on(faults.Before)})
					}
					s.apply(c.first)
					if c.name == "resume" {
						s.run(time.Second)
					}
					s.run(time.Second)
					s.apply(c.then)
					s.run(time.Second)
					first := ends["GET a"][0].ended
					if c.name != "deadline" && first%time.Millisecond == 0 || ends["GET b"][0].ended != first+1 || ends["GET b"][1].ended != first+1 || ends["GET c"][0].ended != first+2 {
						t.Errorf("%v: they ended at %v, %v and %v, %v", order, first, ends["GET b"][0].ended, ends["GET b"][1].ended, ends["GET c"][0].ended)
					}
				})
			}
		})
	}
}

// TestReadersOfTwoNodes checks that readers of different nodes are distinguished too.
func TestReadersOfTwoNodes(t *testing.T) {
	play(t, sim.Config{Nodes: 2, Seed: 1}, func(s *stage) {
		var ends []*task
		for _, node := range []string{"n2", "n1"} {
			a := s.dial("A", node)
			_ = a.SetReadDeadline(time.Now().Add(time.Second))
			a.send("BLPOP queue 0")
			ends = append(ends, a.receive(1))
		}
		s.run(time.Minute)
		if ends[1].ended != time.Second || ends[0].ended != time.Second+1 {
			t.Errorf("n1's ended at %v, n2's at %v", ends[1].ended, ends[0].ended)
		}
	})
}

// TestRefusalTakesTime checks that a server that is down refuses soon after the round time of the
// script.
func TestRefusalTakesTime(t *testing.T) {
	play(t, sim.Config{Seed: 1}, func(s *stage) {
		s.apply(faults.CrashNode{Node: "n1"})
		refused := s.do(func() (any, error) { return s.Dial(bg, "A", "n1") })
		if refused.err == nil || refused.ended <= 0 || refused.ended > time.Microsecond {
			t.Errorf("at %v: %s", refused.ended, refused.said())
		}
	})
}

// TestReadersOfAPausedClient checks that no reader of a paused client continues during the pause,
// and that none stays blocked when the world closes meanwhile.
func TestReadersOfAPausedClient(t *testing.T) {
	play(t, sim.Config{Seed: 1}, func(s *stage) {
		one, two := s.dial("A", "n1"), s.dial("A", "n1")
		ends := []*task{one.receive(1), two.receive(1)}
		s.apply(faults.CrashNode{Node: "n1"}, faults.PauseClient{Client: "A"})
		s.run(time.Second)
		for _, end := range ends {
			if end.done {
				t.Errorf("it was told at %v: %s", end.ended, end.said())
			}
		}
		s.want("pause A", checker.Pause)
	})
}

// TestTimersEndBeforeARun checks that a client's timer that ends together with a run takes effect
// before the script's next step.
func TestTimersEndBeforeARun(t *testing.T) {
	for range 50 {
		play(t, sim.Config{Seed: 1}, func(s *stage) {
			var woken atomic.Int32
			for range 5 {
				go func() {
					time.Sleep(time.Second)
					woken.Add(1)
				}()
			}
			s.run(time.Second)
			if n := woken.Load(); n != 5 {
				t.Fatalf("%d of 5 timers have ended", n)
			}
		})
	}
}
