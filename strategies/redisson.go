package strategies

import (
	"context"
	"errors"
	"fmt"
	"net"
	"time"

	"github.com/redis/go-redis/v9"
)

// The scripts of the redisson lock. KEYS[1] is a hash with one field, the
// owner, whose value counts how often the owner acquired; KEYS[2] is the
// channel on which a release is announced. ARGV[1] is the lease in
// milliseconds, ARGV[2] the owner.
var (
	// redissonAcquire returns nil if the lock is now the owner's (again), or
	// else how many milliseconds the other owner's lease has left.
	redissonAcquire = redis.NewScript(`
if redis.call("exists", KEYS[1]) == 0 or redis.call("hexists", KEYS[1], ARGV[2]) == 1 then
	redis.call("hincrby", KEYS[1], ARGV[2], 1)
	redis.call("pexpire", KEYS[1], ARGV[1])
	return nil
end
return redis.call("pttl", KEYS[1])`)

	// redissonRelease returns nil if the lock is not the owner's, 0 if the
	// owner has it still, having acquired more often than released, or else 1.
	redissonRelease = redis.NewScript(`
if redis.call("hexists", KEYS[1], ARGV[2]) == 0 then
	return nil
end
if redis.call("hincrby", KEYS[1], ARGV[2], -1) > 0 then
	redis.call("pexpire", KEYS[1], ARGV[1])
	return 0
end
redis.call("del", KEYS[1])
redis.call("publish", KEYS[2], "0")
return 1`)

	// redissonRenew returns whether the lock is the owner's, having set its
	// lease anew if so.
	redissonRenew = redis.NewScript(`
if redis.call("hexists", KEYS[1], ARGV[2]) == 1 then
	redis.call("pexpire", KEYS[1], ARGV[1])
	return 1
end
return 0`)
)

// redisson is Redisson's reentrant lock (RLock without a lease time), by the
// flow charts of document 003 and the library's RedissonLock and
// RedissonBaseLock. One script acquires: it makes a hash with the field
// "process:thread" counting to 1, or counts on if the field is there. A loser
// subscribes to the channel redisson_lock__channel:{key}, asks once more, and
// waits for the message of a release, no longer than the TTL it was told. While
// the lock is held a watchdog sets the lease anew every third of it. Another
// script releases: it counts down, and at zero deletes and publishes.
//
// The library's releases differ in what ends a watchdog. This one goes by the
// flow chart, which asks the server: it ends when a release has brought the
// count to zero, or when the field is gone. So did RedissonLock at first (commit
// 0223f1fc, 2016); since 2019 (commit 4339c99b) it counts acquires on the
// client's side too. A release of unknown outcome ends the watchdog in all of
// them. A renewal that fails is tried again a third of the lease later, as
// RenewalTask does (commit 6fb6e28a, 2024); RedissonBaseLock before it (commit
// 00d758eb, 2022) ended the watchdog with a line in the log.
//
// Known faults: an acquire that the client library sends twice counts twice,
// and after one release the watchdog renews for ever. The watchdog knows
// nothing of the work it guards: it keeps the lock for a thread that hangs.
// Nobody tells the holder of a lock whose renewals fail. One server forgets
// what it forgets, as with set-nx-px-lua.
func redisson() Strategy {
	const name = "redisson"
	return Strategy{
		Name:    name,
		Summary: "reentrant hash in a script, losers wait on pub/sub, a watchdog renews every lease/3; released by a script",
		Source:  "document 003; Redisson's RedissonLock",
		Tags:    []string{TagSingle, TagRedisson, TagRenewing},
		New: func(env Env) (Lock, error) {
			if err := env.Check(name, 1); err != nil {
				return nil, err
			}
			return newRedissonLock(name, env, env.Nodes[0]), nil
		},
	}
}

// redissonLock is one thread's handle on the lock on one node.
type redissonLock struct {
	strategy string // for error messages
	client   redis.UniversalClient
	key      string
	channel  string
	owner    string
	lease    time.Duration
	watchdog watchdog
}

func newRedissonLock(strategy string, env Env, client redis.UniversalClient) *redissonLock {
	l := &redissonLock{
		strategy: strategy,
		client:   client,
		key:      env.Key,
		channel:  "redisson_lock__channel:" + slotted(env.Key),
		owner:    env.Owner + ":" + env.Thread,
		lease:    env.TTL,
	}
	l.watchdog = watchdog{period: wheelPeriod(env.TTL, env.Rand), renew: l.renew}
	return l
}

func (l *redissonLock) Acquire(ctx context.Context) error {
	deadline, limited := ctx.Deadline()
	if !limited {
		deadline = time.Now().Add(forever)
	}
	ok, err := l.tryLock(ctx, deadline)
	if err == nil && !ok {
		return fmt.Errorf("strategies: %s: %s is taken: %w", l.strategy, l.key, ErrNotAcquired)
	}
	return err
}

func (l *redissonLock) TryAcquire(ctx context.Context) error {
	_, ok, err := l.attempt(ctx)
	if err == nil && !ok {
		return fmt.Errorf("strategies: %s: %s is taken: %w", l.strategy, l.key, ErrNotAcquired)
	}
	return err
}

// Release leaves the watchdog running if the server still counts holds.
func (l *redissonLock) Release(ctx context.Context) error {
	left, err := redissonRelease.Run(ctx, l.client, []string{l.key, l.channel}, l.lease.Milliseconds(), l.owner).Int64()
	switch {
	case errors.Is(err, redis.Nil):
		l.watchdog.stop()
		return fmt.Errorf("strategies: %s: %s is not ours: %w", l.strategy, l.key, ErrNotHeld)
	case err != nil:
		l.watchdog.stop()
		return fmt.Errorf("strategies: %s: the release script on %s: %w", l.strategy, l.key, err)
	case left == 1:
		l.watchdog.stop()
	}
	return nil
}

// Close stops the watchdog and waits for it: for the answer to a renewal that
// is on its way, at most. The lock itself is left to its lease.
func (l *redissonLock) Close() error {
	l.watchdog.close()
	return nil
}

// forever is longer than anyone waits for a lock.
const forever = 100 * 365 * 24 * time.Hour

// tryLock acquires until the deadline, as RedissonLock.tryLock(waitTime) does.
// Once granted, the lock counts as acquired however long the answer took.
func (l *redissonLock) tryLock(ctx context.Context, deadline time.Time) (bool, error) {
	over := func() bool { return ctx.Err() != nil || !time.Now().Before(deadline) }
	if over() {
		return false, nil
	}
	_, ok, err := l.attempt(ctx)
	if ok || err != nil || over() {
		return ok, err
	}

	released := l.client.Subscribe(ctx, l.channel)
	// Closing its connection ends the subscription on the server.
	defer func() { _ = released.Close() }()
	if err := l.subscribed(ctx, released, deadline); err != nil {
		return false, fmt.Errorf("strategies: %s: SUBSCRIBE %s: %w: %w", l.strategy, l.channel, err, ErrNotAcquired)
	}
	for !over() {
		left, ok, err := l.attempt(ctx)
		if ok || err != nil {
			return ok, err
		}
		wake := deadline
		// A key without a TTL ends by a message only.
		if left >= 0 {
			// A millisecond is the least that Redis can mean by 0.
			if expiry := time.Now().Add(max(left, time.Millisecond)); expiry.Before(wake) {
				wake = expiry
			}
		}
		l.wait(ctx, released, wake)
	}
	return false, nil
}

// attempt runs the acquire script once. Not granted, it returns the time that
// the owner's lease has left, negative if it never ends.
func (l *redissonLock) attempt(ctx context.Context) (left time.Duration, ok bool, err error) {
	millis, err := redissonAcquire.Run(ctx, l.client, []string{l.key}, l.lease.Milliseconds(), l.owner).Int64()
	switch {
	case errors.Is(err, redis.Nil):
		l.watchdog.start()
		return 0, true, nil
	case err != nil:
		return 0, false, fmt.Errorf("strategies: %s: the acquire script on %s: %w", l.strategy, l.key, err)
	}
	return time.Duration(millis) * time.Millisecond, false, nil
}

func (l *redissonLock) renew(ctx context.Context) (ours bool, err error) {
	n, err := redissonRenew.Run(ctx, l.client, []string{l.key}, l.lease.Milliseconds(), l.owner).Int64()
	return n == 1, err
}

// subscribed waits for the server to confirm the subscription.
func (l *redissonLock) subscribed(ctx context.Context, sub *redis.PubSub, deadline time.Time) error {
	for {
		message, err := sub.ReceiveTimeout(ctx, slice(deadline))
		if _, ok := message.(*redis.Subscription); ok {
			return nil
		}
		if err != nil && (!isTimeout(err) || ctx.Err() != nil || !time.Now().Before(deadline)) {
			return err
		}
	}
}

// wait waits for the message of a release, until wake at the latest. It reads
// from the connection on the caller's own goroutine, in slices, so that nothing
// is left running and a ctx that is cancelled is soon noticed. A connection that
// breaks is made anew; a message that it lost is made up for by wake.
func (l *redissonLock) wait(ctx context.Context, sub *redis.PubSub, wake time.Time) {
	for ctx.Err() == nil && time.Now().Before(wake) {
		message, err := sub.ReceiveTimeout(ctx, slice(wake))
		if _, ok := message.(*redis.Message); ok {
			return
		}
		if err != nil && !isTimeout(err) {
			pause(ctx, min(retryDelay, time.Until(wake)))
		}
	}
}

// slice returns how long to read at a time before the deadline.
func slice(deadline time.Time) time.Duration {
	return max(time.Millisecond, min(time.Second, time.Until(deadline)))
}

func isTimeout(err error) bool {
	var timeout net.Error
	return errors.As(err, &timeout) && timeout.Timeout()
}
