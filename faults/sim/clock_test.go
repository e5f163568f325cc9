package sim_test

import (
	"math"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/lockfault/lockfault/checker"
	"github.com/lockfault/lockfault/faults"
	"github.com/lockfault/lockfault/faults/sim"
)

// TestNodeClock checks that the remaining lifetime of a key changes when the node's clock is moved,
// because Redis stores expiry as a date on its own clock (PEXPIREAT).
func TestNodeClock(t *testing.T) {
	by := func(d time.Duration) faults.Fault { return faults.NodeClock{Node: "n1", By: faults.Span{Abs: d}} }
	drift := func(rate float64) faults.Fault { return faults.NodeDrift{Node: "n1", Rate: rate} }
	const s = time.Second
	for _, c := range []struct {
		name   string
		faults []faults.Fault
		wait   time.Duration // after SET PX 30000, before the faults
		left   time.Duration // PTTL afterwards; -2ms if the key is gone
		lives  time.Duration // time from the faults to the expiry of the key
		cause  checker.Cause
	}{
		{"left alone", nil, 10 * s, 20 * s, 20 * s, checker.ByExpiry},
		{"forward", []faults.Fault{by(5 * s)}, 10 * s, 15 * s, 15 * s, checker.ByClock},
		{"forward beyond the TTL", []faults.Fault{by(60 * s)}, 10 * s, -2 * time.Millisecond, 0, checker.ByClock},
		{"back", []faults.Fault{by(-60 * s)}, 10 * s, 80 * s, 80 * s, checker.ByClock},
		{"back and forth", []faults.Fault{by(-60 * s), by(60 * s)}, 10 * s, 20 * s, 20 * s, checker.ByClock},
		{"back twice", []faults.Fault{by(-60 * s), by(-60 * s)}, 0, 150 * s, 150 * s, checker.ByClock},
		{"twice as fast", []faults.Fault{drift(2)}, 10 * s, 20 * s, 10 * s, checker.ByClock},
		{"half as fast", []faults.Fault{drift(0.5)}, 10 * s, 20 * s, 40 * s, checker.ByClock},
		{"a third faster", []faults.Fault{drift(4. / 3)}, 0, 30 * s, 22500 * time.Millisecond, checker.ByClock},
		{"fast, then right again", []faults.Fault{drift(2), drift(1)}, 10 * s, 20 * s, 20 * s, checker.ByClock},
		{"fast and forward", []faults.Fault{drift(2), by(10 * s)}, 10 * s, 10 * s, 5 * s, checker.ByClock},
	} {
		t.Run(c.name, func(t *testing.T) {
			events := play(t, sim.Config{Seed: 1, Base: time.Microsecond}, func(st *stage) {
				a := st.client("A", "n1")
				st.command(a, "SET", "lock", "A-value-1", "PX", 30000).want("OK")
				st.run(c.wait)
				st.forget()
				began := st.Now()
				st.apply(c.faults...)
				got, _ := strconv.Atoi(st.command(a, "PTTL", "lock").wait().said())
				if left := time.Duration(got) * time.Millisecond; (left - c.left).Abs() > 2*time.Millisecond {
					t.Errorf("%v are left; want %v", left, c.left)
				}
				if c.lives > 0 {
					st.run(began + c.lives - 10*time.Millisecond - st.Now())
					st.command(a, "GET", "lock").want("A-value-1")
					st.run(20 * time.Millisecond)
				}
				st.command(a, "GET", "lock").want("redis: nil")
				for i := range st.events {
					st.events[i].Time -= began
				}
			})
			var states []checker.Event
			for _, e := range events {
				if e.Kind == checker.State {
					states = append(states, e)
				}
			}
			if len(states) == 0 {
				t.Fatal("nobody said that the key is gone")
			}
			last := states[len(states)-1]
			if last.Value != "" || last.Cause != c.cause || (last.Time-c.lives).Abs() > time.Millisecond {
				t.Errorf("the last state is %s after %v; want it gone by %s after %v", line(last), last.Time, c.cause, c.lives)
			}
		})
	}
}

func TestTimeFollowsTheNodesClock(t *testing.T) {
	play(t, sim.Config{Nodes: 2, Seed: 1, Base: time.Microsecond}, func(s *stage) {
		a := s.client("A", "n1")
		ahead := func() time.Duration {
			said := strings.Fields(strings.Trim(s.command(a, "TIME").wait().said(), "[]"))
			seconds, _ := strconv.ParseInt(said[0], 10, 64)
			micros, _ := strconv.ParseInt(said[1], 10, 64)
			return time.Until(time.Unix(seconds, micros*1000)).Round(time.Millisecond)
		}
		for _, c := range []struct {
			fault faults.Fault
			wait  time.Duration
			want  time.Duration
		}{
			{faults.NodeClock{Node: "n1", By: faults.Span{TTLs: 2}}, time.Second, time.Minute},
			{faults.NodeClock{Node: "n1", By: faults.Span{Abs: -90 * time.Second}}, time.Second, -30 * time.Second},
			{faults.NodeDrift{Node: "n1", Rate: 1.5}, 10 * time.Second, -25 * time.Second},
			{faults.NodeDrift{Node: "n1", Rate: 1}, 10 * time.Second, -25 * time.Second},
			{faults.CrashNode{Node: "n2"}, 0, -25 * time.Second},
		} {
			s.apply(c.fault)
			s.run(c.wait)
			if got := ahead(); (got - c.want).Abs() > 2*time.Millisecond {
				t.Errorf("after %s, %v later: n1's clock is ahead by %v; want %v", c.fault, c.wait, got, c.want)
			}
		}
	})
}

// TestLeaseAfterTheClockWasMoved checks that a lease granted after a clock's jump has its full
// length, and that a lease on a drifting clock does not.
func TestLeaseAfterTheClockWasMoved(t *testing.T) {
	for _, c := range []struct {
		fault faults.Fault
		want  string
	}{
		{faults.NodeClock{Node: "n1", By: faults.Span{TTLs: 5}}, "n1/0 A1 for 30s by command A\nn1/0 gone by expiry"},
		{faults.NodeClock{Node: "n1", By: faults.Span{TTLs: -5}}, "n1/0 A1 for 30s by command A\nn1/0 gone by expiry"},
		{faults.NodeDrift{Node: "n1", Rate: 2}, "n1/0 A1 for 15s by command A\nn1/0 gone by clock"},
	} {
		t.Run(c.fault.String(), func(t *testing.T) {
			play(t, sim.Config{Seed: 1}, func(s *stage) {
				s.apply(c.fault)
				s.command(s.client("A", "n1"), "SET", "lock", "A-value-1", "PX", 30000).want("OK")
				s.run(2 * ttl)
				s.want(c.want, checker.State)
			})
		})
	}
}

func TestExpiryIsToldAtItsTime(t *testing.T) {
	play(t, sim.Config{Seed: 1}, func(s *stage) {
		a := s.client("A", "n1")
		s.command(a, "SET", "lock", "A-value-1", "PX", 30000).want("OK")
		s.command(a, "PEXPIRE", "lock", 10000).want("1")
		s.run(ttl)
		s.want(`
			n1/0 A1 for 30s by command A
			n1/0 A1 for 10s by command A
			n1/0 gone by expiry`, checker.State)
		states := map[checker.Cause]checker.Event{}
		for _, e := range s.events {
			if e.Kind == checker.State {
				states[e.Cause] = e
			}
		}
		if gone, want := states[checker.ByExpiry].Time, states[checker.ByCommand].Expires; gone != want {
			t.Errorf("gone at %v; want %v", gone, want)
		}
	})
}

// TestExpiryThatMovedALittle checks that a renewal by less than Redis's resolution records no
// event, and that the later expiry at the renewed date is recorded.
func TestExpiryThatMovedALittle(t *testing.T) {
	play(t, sim.Config{Base: time.Millisecond}, func(s *stage) {
		a := s.dial("A", "n1")
		a.send("SET lock A-value-1 PX 30000")
		s.run(500 * time.Microsecond)
		a.send("PEXPIRE lock 30000")
		s.run(2 * ttl)
		s.want(`
			n1/0 A1 for 30s by command A
			n1/0 gone by expiry`, checker.State)
		last := s.events[len(s.events)-1]
		if want := ttl + 1500*time.Microsecond; last.Time != want {
			t.Errorf("gone at %v; want %v", last.Time, want)
		}
	})
}

// TestCommandAtTheMomentOfExpiry checks that a command at the moment of expiry is not recorded as
// its cause.
func TestCommandAtTheMomentOfExpiry(t *testing.T) {
	for _, early := range []time.Duration{0, time.Nanosecond} {
		play(t, sim.Config{Base: time.Millisecond}, func(s *stage) {
			a, b := s.dial("A", "n1"), s.dial("B", "n1")
			a.send("SET lock A-value-1 PX 30000")
			s.run(ttl - early)
			b.send("DEL lock")
			s.run(time.Second)
			want := "n1/0 A1 for 30s by command A\nn1/0 gone by expiry"
			if early > 0 {
				want = "n1/0 A1 for 30s by command A\nn1/0 gone by command B"
			}
			s.want(want, checker.State)
		})
	}
}

// TestDriftIsRounded checks that rounding on a drifting clock does not lose the end of a lease.
func TestDriftIsRounded(t *testing.T) {
	for _, rate := range []float64{1. / 3, 0.7, 1.1, math.Pi, 7.7} {
		play(t, sim.Config{Seed: 1}, func(s *stage) {
			a := s.client("A", "n1")
			s.apply(faults.NodeDrift{Node: "n1", Rate: rate})
			for range 3 {
				s.command(a, "SET", "lock", "A-value-1", "NX", "PX", 29999).want("OK")
				s.run(4 * ttl)
			}
			if got := strings.Count(s.told(checker.State), "gone by clock"); got != 3 {
				t.Errorf("at rate %v the end of %d leases of 3 was told:\n%s", rate, got, s.told(checker.State))
			}
		})
	}
}
