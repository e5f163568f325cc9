package real_test

import (
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/lockfault/lockfault/checker"
	"github.com/lockfault/lockfault/faults"
	"github.com/lockfault/lockfault/faults/real"
)

// through connects a client to n1 from its own process.
func (s *stage) through(client string) *wire {
	s.t.Helper()
	place := s.place(client, "n1")
	p := s.homes[client]
	if _, err := fmt.Fprintln(p.In, place.Addr); err != nil {
		s.t.Fatal(err)
	}
	w := s.listen(p.In, p.Out)
	w.ask("AUTH "+place.Password, "+OK")
	return w
}

func TestPausedClient(t *testing.T) {
	t.Parallel()
	s := newStage(t, real.Config{}, "client")
	a := s.through("A")
	b := s.conn("B", "n1")
	s.Begin()
	a.ask("SET lock A-value-1", "+OK")
	s.forget()
	const pause = 200 * time.Millisecond
	before := s.Now()
	s.apply(faults.PauseClient{Client: "A"}, faults.PauseClient{Client: "A"})
	a.say("GET lock")
	b.ask("GET lock", "$9 A-value-1") // another one goes on
	s.run(pause)
	if !a.silent() {
		t.Error("a stopped process says something")
	}
	if got := s.Client("A"); !got.Paused || got.PausedFor < pause || got.PausedFor > s.Now()-before {
		t.Errorf("A's state is %+v after %v", got, s.Now()-before)
	}
	s.apply(faults.ResumeClient{Client: "A"}, faults.ResumeClient{Client: "A"})
	a.hear("$9 A-value-1")
	s.want(`
		pause A
		B > n1/0 GET lock
		B < n1 GET lock = "A1"
		resume A
		A > n1/0 GET lock
		A < n1 GET lock = "A1"`)
	if got := s.Client("A"); got.Paused || got.PausedFor < pause || got.Replies != 2 || got.RoundTrips != 2 {
		t.Errorf("A's state is %+v", got)
	}
}

// What a process has sent is on its way whatever becomes of it; its successor
// knows nothing.
func TestCrashedClient(t *testing.T) {
	for _, paused := range []bool{false, true} {
		t.Run(fmt.Sprint("paused ", paused), func(t *testing.T) {
			t.Parallel()
			s := newStage(t, real.Config{}, "client")
			a := s.through("A")
			s.Begin()
			s.apply(faults.Hold{Match: faults.Match{Way: faults.Before, Commands: []string{"SET"}}})
			a.say("SET lock A-value-1")
			s.await("its request is held", func() bool { return s.Client("A").Held == 1 })
			s.forget()
			want := "crash A"
			if paused {
				s.apply(faults.PauseClient{Client: "A"})
				s.run(50 * time.Millisecond)
				want = "pause A\ncrash A"
			}
			first := s.homes["A"]
			s.apply(faults.CrashClient{Client: "A"}, faults.CrashClient{Client: "A"}, faults.PauseClient{Client: "A"}, faults.ResumeClient{Client: "A"})
			if first.Alive() {
				t.Error("its process lives")
			}
			a.ends()
			s.want(want)
			if got := s.Client("A"); !got.Crashed || got.Paused || paused != (got.PausedFor > 0) {
				t.Errorf("A's state is %+v", got)
			}
			s.forget()
			s.apply(faults.RestartClient{Client: "A"}, faults.RestartClient{Client: "A"})
			if s.Client("A").Crashed {
				t.Error("it is restarted, and crashed")
			}
			delete(s.homes, "A")
			a = s.through("A")
			s.apply(faults.Pass{})
			s.want(`
				passed A request SET lock A1
				n1/0 A1 by command A`, checker.Passed, checker.State)
			a.ask("GET lock", "$9 A-value-1")
			s.apply(faults.PauseClient{Client: "A"}, faults.ResumeClient{Client: "A"})
			s.want("restart A\npause A\nresume A", checker.Restart, checker.Pause, checker.Resume)
		})
	}
}

// A process that ends by itself leaves its last words, and how it ended.
func TestClientEnds(t *testing.T) {
	t.Parallel()
	s := newStage(t, real.Config{}, "bad")
	for range 5 {
		p, err := s.Spawn("A")
		if err != nil {
			t.Fatal(err)
		}
		<-p.Ended()
		if said, err := io.ReadAll(p.Out); err != nil || string(said) != "last words\n" {
			t.Errorf("it said %q, %v", said, err)
		}
		if why := p.Why().Error(); !strings.Contains(why, "exit status 3") || !strings.Contains(why, "what a day") {
			t.Errorf("it ended because of %s", why)
		}
	}
	if err := s.Apply(faults.PauseClient{Client: "A"}); err == nil || !strings.Contains(err.Error(), "A") {
		t.Errorf("pausing one that has ended: %v", err)
	}
}

func TestClientClock(t *testing.T) {
	t.Parallel()
	s := newStage(t, real.Config{}, "client")
	s.place("A", "n1")
	s.apply(faults.ClientClock{Client: "A", By: faults.Span{TTLs: 2}}, faults.ClientClock{Client: "A", By: faults.Span{Abs: -time.Hour}})
	want := time.Minute - time.Hour
	check := func(client string, want time.Duration) {
		t.Helper()
		before := time.Now()
		if got := s.ClientTime(client); got.Before(before.Add(want)) || got.After(time.Now().Add(want)) {
			t.Errorf("the clock of %s shows %v; want %v more than now", client, got, want)
		}
	}
	check("A", want)
	check("B", 0)
	s.apply(faults.CrashClient{Client: "A"}, faults.RestartClient{Client: "A"})
	check("A", want) // it is its machine's
}
