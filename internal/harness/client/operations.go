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

// warmUp makes another lock, acquires and releases it once, and closes it, so that what it started in the
// background does not go on during the script.
func (c *Client) warmUp() {
	lock, err := c.lockOn(c.setup.WarmUp)
	if err != nil {
		c.report(Report{Kind: Failed, Error: "can't be made: " + err.Error()})
		return
	}
	defer c.discard()
	ctx, cancel := context.WithTimeout(c.life, 30*time.Second)
	defer cancel()
	did := "acquire"
	if err = lock.Acquire(ctx); err == nil {
		did = "release"
		err = lock.Release(ctx)
	}
	if err != nil {
		c.report(Report{Kind: Failed, Error: fmt.Sprintf(
			"failed to %s %s in its warm-up, on healthy nodes, where no other client has touched that key: %v",
			did, c.setup.WarmUp, err)})
	}
}

// call calls an operation of the lock and reports its invocation and return.
func (c *Client) call(op checker.Op, patience time.Duration) checker.Result {
	// The operation can be cancelled as soon as the stage knows of the call.
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
		if lock, ok := strategies.As[strategies.Validity](c.lock); ok {
			until := lock.ValidUntil()
			r.Until = &until
		}
	}
	if answer, ok = c.host.Stage.Report(r); ok {
		c.holds(answer.Hold)
	}
	return r.Result
}

// calls stores the function that ends the context of the current operation; nil after the operation
// has returned.
func (c *Client) calls(giveUp context.CancelFunc) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.cancel = giveUp
}

// CancelOperation ends the context of the client's current operation; without an operation it has
// no effect. CancelOperation does not wait for the lock's reaction. Any goroutine may call it.
func (c *Client) CancelOperation() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.cancel != nil {
		c.cancel()
	}
}

// holds stores the number of the current hold, and starts to wait for the loss of a new hold.
func (c *Client) holds(number int) {
	if number == c.hold {
		return
	}
	if c.lossHeard != nil {
		close(c.lossHeard)
		c.lossHeard = nil
	}
	c.hold = number
	if lock, ok := strategies.As[strategies.LossNotifier](c.lock); ok && number != 0 {
		c.lossHeard = make(chan struct{})
		go c.hear(lock.Lost(), number, c.lossHeard)
	}
}

func (c *Client) token() int64 {
	if lock, ok := strategies.As[strategies.Fenced](c.lock); ok {
		return lock.Token()
	}
	return 0
}

// hear waits until the lock reports its loss, and reports the loss to the stage.
func (c *Client) hear(lost <-chan struct{}, hold int, told chan struct{}) {
	select {
	case <-lost:
		c.report(Report{Kind: Lost, Hold: hold})
	case <-told:
	case <-c.life.Done():
	}
}

// attempts returns the number of attempts per lease for a lock without TryAcquire. The resulting
// timeout permits one attempt, before the pause that precedes a second one. In real time the timeout is
// longer than a machine may be late without another play of the cell. On servers of another service an
// attempt may include a connection with a login.
func (c *Client) attempts() time.Duration {
	switch {
	case c.strategy.RunsOn() != strategies.Redis:
		return 10
	case c.setup.RealTime:
		return 20
	}
	return 100
}

func (c *Client) invoke(ctx context.Context, op checker.Op) error {
	switch op {
	case checker.Acquire:
		return c.lock.Acquire(ctx)
	case checker.TryAcquire:
		if lock, ok := strategies.As[strategies.TryAcquirer](c.lock); ok {
			return lock.TryAcquire(ctx)
		}
		ctx, cancel := context.WithTimeout(ctx, c.setup.TTL/c.attempts())
		defer cancel()
		return c.lock.Acquire(ctx)
	case checker.Release:
		return c.lock.Release(ctx)
	case checker.Extend:
		if lock, ok := strategies.As[strategies.Extender](c.lock); ok {
			return lock.Extend(ctx)
		}
		return errNoExtend
	}
	return fmt.Errorf("client: a lock has no operation %q", op)
}

var errNoExtend = errors.New("client: this lock can't be extended by its user")

// classify returns the result of an operation that returned err.
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

// write asks for a write to the protected resource. The stage's records determine whether the
// client believes that it holds.
func (c *Client) write() {
	c.report(Report{Kind: Writes, Token: c.token()})
}

// work keeps the client busy for a time that does not include its pauses.
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

// rounds uses the lock repeatedly, as the lock's users do.
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

// LongestThought limits a pause between rounds to a multiple of the mean. Without this limit the
// duration of rounds would be unbounded.
const LongestThought = 8

// thought draws a pause from an exponential distribution with the given mean, as between
// independent events.
func (c *Client) thought(mean time.Duration) time.Duration {
	if c.thoughts == nil {
		h := fnv.New64a()
		fmt.Fprintf(h, "%s/%d thinks", c.setup.Client, c.setup.Life)
		c.thoughts = rand.New(rand.NewPCG(c.setup.Seed, h.Sum64())) // leaves the lock's own randomness unchanged
	}
	return time.Duration(min(c.thoughts.ExpFloat64(), LongestThought) * float64(mean))
}
