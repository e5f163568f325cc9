package harness

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/lockfault/lockfault/checker"
	"github.com/lockfault/lockfault/strategies"
)

// warmUp lets the client use another lock once.
func (c *client) warmUp() {
	c.does("warm-up")
	ctx, cancel := context.WithTimeout(c.life, 30*time.Second)
	defer cancel()
	err := c.warm.Acquire(ctx)
	if err == nil {
		err = c.warm.Release(ctx)
	}
	if err != nil {
		c.tell(func() {
			c.stage.fail(fmt.Errorf("harness: %s failed on a free lock on healthy nodes: %w", c.stage.cell.Strategy.Name, err))
		})
	}
}

// call calls an operation of the lock and has it recorded.
func (c *client) call(op checker.Op, patience time.Duration) checker.Result {
	s := c.stage
	c.does(string(op))
	var id, trips int
	began := c.tell(func() {
		s.calls++
		id, trips = s.calls, s.world.Client(c.name).RoundTrips
		if op == checker.Release {
			c.loosen()
		}
		s.record(checker.Event{Kind: checker.Invoke, Time: s.world.Now(), Client: c.name, Op: op, Call: id})
	})
	if !began {
		return checker.Unknown
	}
	ctx, cancel := context.WithTimeout(c.life, patience)
	err := c.invoke(ctx, op)
	cancel()
	result := classify(err)
	c.tell(func() {
		e := checker.Event{Kind: checker.Return, Time: s.world.Now(), Client: c.name, Op: op, Call: id, Result: result}
		if err != nil {
			e.Error = err.Error()
		}
		if result == checker.OK {
			c.succeeded(op, &e)
			spent := s.world.Client(c.name).RoundTrips - trips
			if best, ok := s.roundTrips[op]; !ok || spent < best {
				s.roundTrips[op] = spent
			}
		}
		s.record(e)
	})
	return result
}

// loosen notes that the client gives up one of its holds.
func (c *client) loosen() {
	c.holds = max(0, c.holds-1)
	if c.holds == 0 && c.told != nil {
		close(c.told)
		c.told = nil
	}
}

// succeeded notes what an operation that succeeded changed, and fills in what
// the lock says of its hold.
func (c *client) succeeded(op checker.Op, e *checker.Event) {
	if op == checker.Acquire || op == checker.TryAcquire {
		c.holds++
		if fenced, ok := c.lock.(strategies.Fenced); ok {
			e.Token = fenced.Token()
		}
		if lock, ok := c.lock.(strategies.LossNotifier); ok && c.told == nil {
			c.told = make(chan struct{})
			go c.hear(lock.Lost(), c.told)
		}
	}
	if lock, ok := c.lock.(strategies.Validity); ok && op != checker.Release {
		c.until = e.Time + lock.ValidUntil().Sub(c.stage.world.Wall(c.name))
		e.Until = c.until
	}
}

// hear waits for the lock to say that it was lost.
func (c *client) hear(lost <-chan struct{}, told chan struct{}) {
	select {
	case <-lost:
		c.tell(func() {
			if c.told != told {
				return // the hold is over already
			}
			c.told, c.holds = nil, 0
			c.stage.record(checker.Event{Kind: checker.Lost, Time: c.stage.world.Now(), Client: c.name})
		})
	case <-told:
	case <-c.life.Done():
	}
}

func (c *client) invoke(ctx context.Context, op checker.Op) error {
	switch op {
	case checker.Acquire:
		return c.lock.Acquire(ctx)
	case checker.TryAcquire:
		if lock, ok := c.lock.(strategies.TryAcquirer); ok {
			return lock.TryAcquire(ctx)
		}
		// One attempt is what fits before the first pause between two.
		ctx, cancel := context.WithTimeout(ctx, c.stage.ttl/100)
		defer cancel()
		return c.lock.Acquire(ctx)
	case checker.Release:
		return c.lock.Release(ctx)
	case checker.Extend:
		if lock, ok := c.lock.(strategies.Extender); ok {
			return lock.Extend(ctx)
		}
		return errNoExtend
	}
	return fmt.Errorf("harness: a lock has no operation %q", op)
}

var errNoExtend = errors.New("harness: this lock can't be extended by its user")

func classify(err error) checker.Result {
	switch {
	case err == nil:
		return checker.OK
	case errors.Is(err, strategies.ErrNotAcquired), errors.Is(err, strategies.ErrNotHeld), errors.Is(err, errNoExtend):
		return checker.Fail
	}
	return checker.Unknown
}

// write writes to the protected resource, if the client believes that it holds
// the lock: one that knows better doesn't. Where clients were told to stop when
// their lock is no longer valid, they don't believe that for longer.
func (c *client) write() {
	s := c.stage
	c.does("write")
	c.tell(func() {
		now := s.world.Now()
		if c.holds == 0 || s.script.HonourValidity && c.until != 0 && now >= c.until {
			return
		}
		var token int64
		if fenced, ok := c.lock.(strategies.Fenced); ok {
			token = fenced.Token()
		}
		s.record(checker.Event{
			Kind: checker.Write, Time: now, Client: c.name, Token: token, Accepted: s.register.write(token),
		})
	})
}

// work lets the client be busy for a time that stands still while it is paused.
func (c *client) work(span time.Duration) {
	s := c.stage
	c.does("work")
	var paused time.Duration
	read := func() { paused = s.world.Client(c.name).PausedFor }
	if !c.tell(read) {
		return
	}
	for left := span; left > 0; {
		select {
		case <-time.After(left):
		case <-c.life.Done():
			return
		}
		before := paused
		if !c.tell(read) {
			return
		}
		left = paused - before
	}
}

// rounds lets the client use the lock as its users do, again and again.
func (c *client) rounds(times int, patience, work time.Duration) {
	for range times {
		if c.call(checker.Acquire, patience) == checker.OK {
			c.write()
			c.work(work)
			c.call(checker.Release, patience)
		}
		if c.life.Err() != nil {
			return
		}
	}
}
