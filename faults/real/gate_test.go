package real_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/lockfault/lockfault/checker"
	"github.com/lockfault/lockfault/faults"
	"github.com/lockfault/lockfault/faults/real"
)

// Outside Run nothing passes, before the script begins and after.
func TestNothingMovesBetweenSteps(t *testing.T) {
	t.Parallel()
	s := newStage(t, real.Config{}, "client")
	dial := s.dial("A", "n1")
	logged := make(chan error, 1)
	go func() {
		conn, err := dial()
		if err == nil {
			err = conn.Close()
		}
		logged <- err
		s.Notify()
	}()
	time.Sleep(50 * time.Millisecond)
	if len(logged) > 0 {
		t.Fatalf("A logged in before the first Run: %v", <-logged)
	}
	s.await("A logs in", func() bool { return len(logged) > 0 })
	a := s.conn("A", "n1")
	for _, begun := range []bool{false, true} {
		if begun {
			s.Begin()
		}
		before := s.Client("A")
		a.say("SET lock A-value-1")
		time.Sleep(50 * time.Millisecond)
		if got := s.Client("A"); got != before || !a.silent() || len(s.events) > 0 {
			t.Fatalf("begun %v: A's state is %+v, and was %+v; told was %v", begun, got, before, s.events)
		}
		a.hear("+OK")
	}
}

// TestNothingMovesBehindWhatIsAwaited checks that nothing moves after the condition of Run becomes
// true, although only the goroutines that carry messages see that moment.
func TestNothingMovesBehindWhatIsAwaited(t *testing.T) {
	t.Parallel()
	const rounds, nodes = 100, 4
	s := newStage(t, real.Config{Nodes: nodes}, "client")
	a := s.conn("A", "n1")
	crowd := []*wire{a}
	for i := 1; i < nodes; i++ {
		crowd = append(crowd, s.conn("B", faults.NodeName(i)), s.conn("C", faults.NodeName(i)))
	}
	s.Begin()
	for _, w := range crowd {
		w.say(slices.Repeat([]string{"GET lock"}, rounds)...)
	}
	for i := range rounds {
		s.await(fmt.Sprintf("reply %d", i+1), func() bool { return s.Client("A").Replies > i })
		told := len(s.events)
		if i%10 == 0 {
			time.Sleep(2 * time.Millisecond) // in which others have time to go on
		}
		last := s.events[len(s.events)-1]
		if got := s.Client("A").Replies; got != i+1 || len(s.events) != told || last.Kind != checker.Reply || last.Client != "A" {
			t.Fatalf("after reply %d there are %d, and the last thing told is %+v", i+1, got, last)
		}
	}
}

// A reply that is known to the script has not been overtaken: an order that
// comes then catches the very next request.
func TestAnOrderCatchesTheNextRequest(t *testing.T) {
	t.Parallel()
	s := newStage(t, real.Config{}, "client")
	a := s.conn("A", "n1")
	s.Begin()
	for i := range 20 {
		a.say(fmt.Sprintf("SET lock A-value-%d", i), fmt.Sprintf("SET other %d", i), "GET other")
		s.await("a reply", func() bool { return s.Client("A").Replies == 3*i+1 })
		s.apply(faults.Hold{Match: faults.Match{Way: faults.Before, Commands: []string{"GET"}}})
		s.await("GET is held", func() bool { return s.Client("A").Held == 1 })
		s.apply(faults.Pass{})
		s.await("all replies", func() bool { return s.Client("A").Replies == 3*i+3 })
	}
}

// Whatever goroutine sees that the world can't go on, Run returns.
func TestRunEndsWithTheWorld(t *testing.T) {
	t.Parallel()
	s := newStage(t, real.Config{}, "client")
	a := s.conn("A", "n1")
	s.Begin()
	s.apply(faults.Hold{Match: faults.Match{Way: faults.After}}) // so that A doesn't hear, and notify
	a.say("NONSENSE")
	if s.Run(patience, func() bool { return false }) || s.Now() > patience/2 {
		t.Errorf("Run ended after %v", s.Now())
	}
	if err := s.Err(); err == nil || !strings.Contains(err.Error(), "NONSENSE") {
		t.Errorf("the world's error is %v", err)
	}
	s.broken = true
}

// A timer that a message sets while the script waits for something else isn't
// slept through.
func TestATimerSetByAMessage(t *testing.T) {
	t.Parallel()
	s := newStage(t, real.Config{}, "client")
	a := s.conn("A", "n1")
	s.Begin()
	s.apply(faults.Delay{Match: faults.Match{Way: faults.Before, Commands: []string{"GET"}}, By: faults.Span{Abs: 50 * time.Millisecond}})
	begun := time.Now()
	a.say("GET lock")
	if !s.Run(patience, func() bool { return s.Client("A").Replies == 1 }) || time.Since(begun) < 50*time.Millisecond {
		t.Errorf("it came after %v", time.Since(begun))
	}
}
