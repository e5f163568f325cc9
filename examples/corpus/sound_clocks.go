package main

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/lockfault/lockfault/strategies"
)

// margin is what a client takes off a lease that it counts by its own clock, for
// clocks that don't run alike and for the server's whole milliseconds.
func margin(ttl time.Duration) time.Duration { return ttl/100 + 2*time.Millisecond }

// left is what a client may rely on of a lease that it asked for at start.
func left(start time.Time, ttl time.Duration) time.Duration {
	return ttl - margin(ttl) - time.Since(start)
}

// counting makes an attempt and says when the lease began at the earliest. A lock
// that was granted too late is given back.
func counting(ctx context.Context, env strategies.Env, s steps, value string) (start time.Time, err error) {
	start = time.Now()
	err = s.take(ctx, value)
	if err != nil || left(start, env.TTL) > 0 {
		return start, err
	}
	if err := s.give(ctx, value); err != nil && !errors.Is(err, strategies.ErrNotHeld) {
		return start, err
	}
	return start, strategies.ErrNotAcquired
}

// dated is a lock that publishes until when it can be relied on.
type dated struct {
	stepped
	until time.Time
}

func newDated(env strategies.Env, s steps) *dated {
	l := &dated{}
	l.stepped = stepped{env: env, steps: s}
	l.steps.take = func(ctx context.Context, value string) error {
		start, err := counting(ctx, env, s, value)
		return l.publish(start, err)
	}
	l.steps.prolong = func(ctx context.Context, value string) error {
		start := time.Now()
		err := s.prolong(ctx, value)
		if err == nil && left(start, env.TTL) <= 0 {
			return strategies.ErrNotHeld
		}
		return l.publish(start, err)
	}
	return l
}

func (l *dated) publish(start time.Time, err error) error {
	if err == nil {
		l.until = l.env.Now().Add(left(start, l.env.TTL))
	}
	return err
}

func (l *dated) Extend(ctx context.Context) error { return l.steps.prolong(ctx, l.value) }

func (l *dated) ValidUntil() time.Time { return l.until }

// A hold is what a client knows of a lease that it has: when it ends, and who is to
// be told.
type hold struct {
	lost chan struct{} // closed when the hold is over and wasn't given up
	quit chan struct{} // closed when it is given up
	end  func()
}

func newHold() *hold {
	h := &hold{lost: make(chan struct{}), quit: make(chan struct{})}
	h.end = sync.OnceFunc(func() { close(h.quit) })
	return h
}

// A keeper renews a lease that began at start until its hold is given up or lost. It
// ends the hold when a renewal is refused and, if it is strict, when none was
// confirmed in time.
type keeper struct {
	ttl    time.Duration
	renew  func(context.Context) error // nil for a lease that isn't renewed
	strict bool
}

func (k keeper) keep(h *hold, start time.Time) {
	ctx, cancel := context.WithCancel(context.Background())
	var asking sync.WaitGroup // a request that is under way
	defer asking.Wait()
	defer cancel()
	over := time.NewTimer(left(start, k.ttl))
	defer over.Stop()
	if !k.strict {
		over.Stop()
	}
	// No round part of the lease: what happens at one instant has no order.
	again := time.NewTicker(k.ttl * 5 / 16)
	defer again.Stop()
	if k.renew == nil {
		again.Stop()
	}
	type answer struct {
		asked time.Time
		err   error
	}
	answers := make(chan answer, 1)
	waiting := false
	for {
		select {
		case <-h.quit:
			return
		case <-over.C:
			close(h.lost)
			return
		case <-again.C:
			if waiting {
				continue // the last one is still under way
			}
			waiting = true
			asking.Go(func() {
				asked := time.Now()
				limited, cancel := context.WithTimeout(ctx, k.ttl)
				defer cancel()
				answers <- answer{asked, k.renew(limited)}
			})
		case a := <-answers:
			waiting = false
			switch {
			case errors.Is(a.err, strategies.ErrNotHeld):
				close(h.lost)
				return
			case a.err == nil && k.strict:
				over.Reset(left(a.asked, k.ttl))
			}
		}
	}
}

// notifyingLease is a lock that tells its holder of a loss.
type notifyingLease struct {
	stepped
	keeper keeper
	renews bool
	start  time.Time
	hold   *hold
	alive  sync.WaitGroup // those who keep holds
}

// newKept is a lock of these steps. A strict one goes by the client's own clock.
func newKept(env strategies.Env, s steps, renews, strict bool) *notifyingLease {
	l := &notifyingLease{hold: newHold(), keeper: keeper{ttl: env.TTL, strict: strict}, renews: renews}
	l.stepped = stepped{env: env, steps: s}
	l.steps.take = func(ctx context.Context, value string) (err error) {
		if !strict {
			l.start = time.Now()
			return s.take(ctx, value)
		}
		// Of what comes when half of the lease is over there is too little left.
		limited, cancel := context.WithTimeout(ctx, env.TTL/2)
		defer cancel()
		start, err := counting(limited, env, s, value)
		if err == nil {
			l.start = start
		}
		return err
	}
	return l
}

func (l *notifyingLease) Acquire(ctx context.Context) error { return l.begin(l.stepped.Acquire(ctx)) }

func (l *notifyingLease) TryAcquire(ctx context.Context) error {
	return l.begin(l.stepped.TryAcquire(ctx))
}

func (l *notifyingLease) begin(err error) error {
	if err == nil {
		l.hold.end() // one before it that was lost
		l.hold = newHold()
		k, h, start, value := l.keeper, l.hold, l.start, l.value
		if l.renews {
			k.renew = func(ctx context.Context) error { return l.steps.prolong(ctx, value) }
		}
		l.alive.Go(func() { k.keep(h, start) })
	}
	return err
}

func (l *notifyingLease) Release(ctx context.Context) error {
	l.hold.end()
	return l.stepped.Release(ctx)
}

func (l *notifyingLease) Lost() <-chan struct{} { return l.hold.lost }

func (l *notifyingLease) Close() error {
	l.hold.end()
	l.alive.Wait()
	return l.stepped.Close()
}

// soundClocks returns locks that know how long they can be relied on, or prolong
// that themselves.
func soundClocks() []strategies.Strategy {
	told := func(name, class, summary string, renews, strict bool, tags ...string) strategies.Strategy {
		s := describe(name, class, summary, "common practice", 1, tags...)
		s.New = func(env strategies.Env) (strategies.Lock, error) {
			if err := env.Check(name, 1); err != nil {
				return nil, err
			}
			client := unrepeated(env)
			s := scripted(client, env.Key, env.TTL)
			s.close = client
			return newKept(env, s, renews, strict), nil
		}
		return s
	}
	dated := describe("sound-validity", classValidity, "a hash by scripts; says until when it can be relied on, and gives back what came too late",
		"Redis documentation (Distributed Locks with Redis), on one node", 1, strategies.TagExtending)
	dated.New = func(env strategies.Env) (strategies.Lock, error) {
		if err := env.Check(dated.Name, 1); err != nil {
			return nil, err
		}
		return newDated(env, hashShape.steps(singleKey)(env)), nil
	}
	return []strategies.Strategy{
		dated,
		told("sound-told", classTold, "a string by scripts; tells its holder by its own clock when the lease is over", false, true),
		told("sound-watchdog", classWatchdog, "a string by scripts, renewed each 5/16 of the lease; tells its holder when that is refused", true, false, strategies.TagRenewing),
		told("sound-watchdog-told", classWatchdogTold, "a string by scripts, renewed each 5/16 of the lease; tells its holder by its own clock when none was confirmed", true, true, strategies.TagRenewing),
	}
}
