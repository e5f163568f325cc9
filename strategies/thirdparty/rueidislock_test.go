package thirdparty_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/lockfault/lockfault/faults"
	"github.com/lockfault/lockfault/strategies"
	"github.com/lockfault/lockfault/strategies/internal/rig"
)

// withRueidislock plays the library in the world of virtual time.
func withRueidislock(t *testing.T, play func(t *testing.T, s *stage)) {
	t.Helper()
	inWorld(t, lookup(t, "rueidislock"), func(s *stage) { play(s.t, s) })
}

// What it sends for the hand-over of TestWire, and for a renewal.
func TestRueidislockWire(t *testing.T) {
	var got string
	withRueidislock(t, func(t *testing.T, s *stage) {
		names := map[string]string{}
		result := func(what string, err error) {
			said := "ok"
			switch {
			case errors.Is(err, strategies.ErrNotAcquired):
				said = "not acquired"
			case errors.Is(err, strategies.ErrNotHeld):
				said = "not held"
			case err != nil:
				said = err.Error()
			}
			got += s.wire(names) + what + ": " + said + "\n"
		}
		want(t, "Z's attempt", s.try("Z"), nil) // loads the scripts
		s.pass(rig.TTL)
		want(t, "Z's release", s.release("Z"), nil)
		s.lock("A")
		s.lock("B")
		s.wire(names)
		s.began = time.Now()
		result("A try", s.try("A"))
		result("B try", s.try("B"))
		waiting := s.begin(s.acquire("B", 2*rig.TTL))
		s.pass(rig.TTL * 3 / 4)
		got += s.wire(names) + "B begins to acquire, A renews\n"
		result("A release", s.release("A"))
		result("B acquire", s.await(waiting))
		result("A release", s.release("A"))
		result("B release", s.release("B"))
	})
	golden(t, "rueidislock", got)
}

func TestRueidislockHandsOver(t *testing.T) {
	withRueidislock(t, func(t *testing.T, s *stage) {
		for _, name := range []string{"A", "A", "B", "A"} {
			want(t, name+"'s acquire", s.do(s.acquire(name, time.Second)), nil)
			want(t, name+"'s release", s.release(name), nil)
			want(t, name+"'s attempt", s.try(name), nil)
			want(t, name+"'s release", s.release(name), nil)
			want(t, name+"'s second release", s.release(name), strategies.ErrNotHeld)
		}
		want(t, "A's attempt", s.try("A"), nil)
		want(t, "B's attempt", s.try("B"), strategies.ErrNotAcquired)
		want(t, "B's release", s.release("B"), strategies.ErrNotHeld)
		waiting := s.begin(s.acquire("B", rig.TTL))
		s.pass(rig.TTL / 3)
		start := time.Now()
		want(t, "A's release", s.release("A"), nil)
		want(t, "B's acquire", s.await(waiting), nil)
		if took := time.Since(start); took > 10*time.Millisecond {
			t.Errorf("B, who is told of the release, had the lock %s after it", took)
		}
	})
}

func TestRueidislockGivesUp(t *testing.T) {
	withRueidislock(t, func(t *testing.T, s *stage) {
		want(t, "A's acquire without time", s.do(s.acquire("A", 0)), strategies.ErrNotAcquired)
		want(t, "A's attempt", s.try("A"), nil)
		start := time.Now()
		want(t, "B's acquire", s.do(s.acquire("B", rig.TTL/2)), strategies.ErrNotAcquired)
		if took := time.Since(start); took.Round(10*time.Millisecond) != rig.TTL/2 {
			t.Errorf("B gave up after %s, want %s", took, rig.TTL/2)
		}
		ctx, cancel := context.WithCancel(context.Background())
		waiting := s.begin(func() error { return s.locks["B"].Acquire(ctx) })
		s.pass(time.Second)
		cancel()
		want(t, "B's cancelled acquire", s.await(waiting), strategies.ErrNotAcquired)
		want(t, "A's release", s.release("A"), nil)
		want(t, "B's attempt", s.try("B"), nil)
	})
}

// The hold doesn't end with the context of the acquire, nor is the lease cut to its
// deadline, and it is renewed until the release.
func TestRueidislockIsKept(t *testing.T) {
	withRueidislock(t, func(t *testing.T, s *stage) {
		want(t, "A's acquire", s.do(s.acquire("A", time.Second)), nil)
		s.pass(3 * rig.TTL)
		if s.lost("A") {
			t.Error("A's lock says that it is lost")
		}
		want(t, "B's attempt", s.try("B"), strategies.ErrNotAcquired)
		want(t, "A's release", s.release("A"), nil)
		want(t, "B's attempt", s.try("B"), nil)
	})
}

func TestRueidislockAfterACrash(t *testing.T) {
	withRueidislock(t, func(t *testing.T, s *stage) {
		want(t, "A's attempt", s.try("A"), nil)
		s.fault(faults.CrashClient{Client: "A"})
		start := time.Now()
		want(t, "B's acquire", s.do(s.acquire("B", 2*rig.TTL)), nil)
		if took := time.Since(start); took < rig.TTL-time.Second || took > rig.TTL+time.Second {
			t.Errorf("B had the lock after %s, want about %s", took, rig.TTL)
		}
	})
}

// An attempt whose answer is lost is of unknown outcome.
func TestRueidislockLostReply(t *testing.T) {
	withRueidislock(t, func(t *testing.T, s *stage) {
		want(t, "A's attempt", s.try("A"), nil)
		want(t, "A's release", s.release("A"), nil)
		s.fault(faults.Drop{Match: faults.Match{Clients: []string{"A"}, Way: faults.After}, Times: 1})
		if err := s.try("A"); err == nil || errors.Is(err, strategies.ErrNotAcquired) {
			t.Errorf("A's attempt: %v, want an unknown outcome", err)
		}
	})
}

// The documented faults, each as it shows.

func TestRueidislockHoldOutlivesTheLease(t *testing.T) {
	withRueidislock(t, func(t *testing.T, s *stage) {
		want(t, "A's attempt", s.try("A"), nil)
		s.lock("B")
		s.fault(faults.Drop{Match: faults.Match{Clients: []string{"A"}, Way: faults.Before, Effect: faults.Writing}})
		s.pass(rig.TTL + time.Second)
		want(t, "B's attempt", s.try("B"), nil)
		if s.lost("A") {
			t.Error("A heard of the loss; the doc comment says that it doesn't yet")
		}
		s.pass(rig.TTL / 2)
		if !s.lost("A") {
			t.Error("A's lock is not lost half a lease after its end")
		}
	})
}

// A client whose clock is a lease behind the server's asks for a key whose date has
// passed, is answered OK, and holds nothing.
func TestRueidislockNeedsTheServersTime(t *testing.T) {
	withRueidislock(t, func(t *testing.T, s *stage) {
		s.lock("A")
		s.lock("B")
		s.fault(faults.NodeClock{Node: "n1", By: faults.Span{TTLs: 2}})
		want(t, "A's attempt", s.try("A"), nil)
		want(t, "B's attempt", s.try("B"), nil)
	})
}
