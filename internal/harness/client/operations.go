package client

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/lockfault/lockfault/checker"
	"github.com/lockfault/lockfault/strategies"
)

// warmUp lets the client make another lock and use it once.
func (c *Client) warmUp() {
	lock, err := c.lockOn(c.setup.WarmUp)
	if err != nil {
		c.report(Report{Kind: Failed, Error: "can't be made: " + err.Error()})
		return
	}
	ctx, cancel := context.WithTimeout(c.life, 30*time.Second)
	defer cancel()
	did := "acquire"
	if err = lock.Acquire(ctx); err == nil {
		did = "release"
		err = lock.Release(ctx)
	}
	if err != nil {
		c.report(Report{Kind: Failed, Error: fmt.Sprintf(
			"failed to %s %s in its warm-up, on healthy nodes, where only its own clients have touched that key, one after the other: %v",
			did, c.setup.WarmUp, err)})
	}
}

// call calls an operation of the lock and reports it.
func (c *Client) call(op checker.Op, patience time.Duration) checker.Result {
	// The caller may give up as soon as the stage knows of the call.
	called, giveUp := context.WithCancel(c.life)
	defer c.calls(nil)
	defer giveUp()
	c.calls(giveUp)
	answer, ok := c.host.Stage.Report(Report{Kind: Invoked, Op: op})
	if !ok {
		return checker.Unknown
	}
	c.holds(answer.Hold)
	ctx, cancel := context.WithTimeout(called, patience)
	err := c.invoke(ctx, op)
	cancel()
	r := Report{Kind: Returned, Op: op, Result: c.classify(err)}
	if err != nil {
		r.Error = err.Error()
	} else if op != checker.Release {
		if op != checker.Extend {
			r.Token = c.token()
		}
		if lock, ok := c.lock.(strategies.Validity); ok {
			until := lock.ValidUntil()
			r.Until = &until
		}
	}
	if answer, ok = c.host.Stage.Report(r); ok {
		c.holds(answer.Hold)
	}
	return r.Result
}

// calls notes how to end the context of the operation that is called; nil when it has
// come back.
func (c *Client) calls(giveUp context.CancelFunc) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.cancel = giveUp
}

// CancelOperation ends the context of the operation that the client is in, as when its caller
// gives up; without one it has no effect. It does not wait for what the lock makes
// of that. Any goroutine may call it.
func (c *Client) CancelOperation() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.cancel != nil {
		c.cancel()
	}
}

// holds notes which hold the client is in, and waits for the loss of a new one.
func (c *Client) holds(number int) {
	if number == c.hold {
		return
	}
	if c.lossHeard != nil {
		close(c.lossHeard)
		c.lossHeard = nil
	}
	c.hold = number
	if lock, ok := c.lock.(strategies.LossNotifier); ok && number != 0 {
		c.lossHeard = make(chan struct{})
		go c.hear(lock.Lost(), number, c.lossHeard)
	}
}

func (c *Client) token() int64 {
	if lock, ok := c.lock.(strategies.Fenced); ok {
		return lock.Token()
	}
	return 0
}

// hear waits for the lock to say that it was lost.
func (c *Client) hear(lost <-chan struct{}, hold int, told chan struct{}) {
	select {
	case <-lost:
		c.report(Report{Kind: Lost, Hold: hold})
	case <-told:
	case <-c.life.Done():
	}
}

// attempts is how many attempts fit into a lease, of a lock that makes no single one: one is what is made before the first pause between two. On servers of another
// service it may begin with a connection, for which a client has to log in.
func (c *Client) attempts() time.Duration {
	if c.strategy.RunsOn() == strategies.Redis {
		return 100
	}
	return 10
}

func (c *Client) invoke(ctx context.Context, op checker.Op) error {
	switch op {
	case checker.Acquire:
		return c.lock.Acquire(ctx)
	case checker.TryAcquire:
		if lock, ok := c.lock.(strategies.TryAcquirer); ok {
			return lock.TryAcquire(ctx)
		}
		ctx, cancel := context.WithTimeout(ctx, c.setup.TTL/c.attempts())
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
	return fmt.Errorf("client: a lock has no operation %q", op)
}

var errNoExtend = errors.New("client: this lock can't be extended by its user")

// classify says what an error says of an operation's outcome.
func (c *Client) classify(err error) checker.Result {
	is := func(meant error) bool { return errors.Is(err, meant) }
	switch {
	case err == nil:
		return checker.OK
	case is(strategies.ErrNotAcquired), is(strategies.ErrNotHeld), is(errNoExtend), slices.ContainsFunc(c.strategy.Refusals, is):
		return checker.Fail
	}
	return checker.Unknown
}

// write asks for a write to the protected resource; whether the client believes
// that it may is on the stage's record.
func (c *Client) write() {
	c.report(Report{Kind: Writes, Token: c.token()})
}

// work lets the client be busy for a time that stands still while it is paused.
func (c *Client) work(span time.Duration) {
	before, ok := c.host.Stage.Report(Report{Kind: WantsTime})
	for left := span; ok && left > 0; {
		select {
		case <-time.After(left):
		case <-c.life.Done():
			return
		}
		var now Answer
		now, ok = c.host.Stage.Report(Report{Kind: WantsTime})
		left, before = now.Paused-before.Paused, now
	}
}

// rounds lets the client use the lock as its users do, again and again.
func (c *Client) rounds(t Task) {
	begun := time.Now()
	for n := 0; n < t.Times || t.Times == 0 && time.Since(begun) < t.Lasting; n++ {
		if n > 0 && t.Think > 0 {
			c.work(c.thought(t.Think))
		}
		if c.call(checker.Acquire, t.Within) == checker.OK {
			if !t.Update {
				c.write()
			}
			c.work(t.For)
			if t.Update {
				c.write()
			}
			c.call(checker.Release, t.Within)
		}
		if c.life.Err() != nil {
			return
		}
	}
}

// LongestThought is how many times longer than on average a client thinks at most: nobody knew
// otherwise how long rounds may take.
const LongestThought = 8

// thought draws how long a client thinks: as long as it takes until the next of events that come
// independently of each other, so often on average.
func (c *Client) thought(mean time.Duration) time.Duration {
	if c.thoughts == nil {
		h := fnv.New64a()
		fmt.Fprintf(h, "%s/%d thinks", c.setup.Client, c.setup.Life)
		c.thoughts = rand.New(rand.NewPCG(c.setup.Seed, h.Sum64())) // the lock's own randomness stays as it is
	}
	return time.Duration(min(c.thoughts.ExpFloat64(), LongestThought) * float64(mean))
}
