package strategies

import (
	"context"
	"errors"
	"fmt"
	"net"
	"time"

	"github.com/redis/go-redis/v9"
)

// Scripts of the redisson lock. KEYS[1] is a hash with one field, the owner, whose value counts the
// owner's acquires. KEYS[2] is the channel that announces a release. ARGV[1] is the lease in
// milliseconds, ARGV[2] the owner.
var (
	// redissonAcquire returns nil if the owner has acquired the lock (again). Otherwise
	// redissonAcquire returns the rest of the other owner's lease in milliseconds.
	redissonAcquire = redis.NewScript(`
if redis.call("exists", KEYS[1]) == 0 or redis.call("hexists", KEYS[1], ARGV[2]) == 1 then
	redis.call("hincrby", KEYS[1], ARGV[2], 1)
	redis.call("pexpire", KEYS[1], ARGV[1])
	return nil
end
return redis.call("pttl", KEYS[1])`)

	// redissonRelease returns nil if the owner does not hold the lock, 0 if the owner still holds
	// it, and 1 otherwise. The owner still holds the lock if it acquired more often than it
	// released.
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

	// redissonRenew returns 1 if the owner holds the lock, after resetting the lease, and 0
	// otherwise.
	redissonRenew = redis.NewScript(`
if redis.call("hexists", KEYS[1], ARGV[2]) == 1 then
	redis.call("pexpire", KEYS[1], ARGV[1])
	return 1
end
return 0`)
)

// redisson returns Redisson's reentrant lock (RLock without a lease time). The sources are the flow
// charts of document 003 and the library's RedissonLock and RedissonBaseLock. One script acquires:
// it creates a hash with the field "process:thread" and the count 1, or increments the count if the
// field exists. A client that finds the lock taken subscribes to the channel
// redisson_lock__channel:{key}, tries once more, and waits for a release message, at most for the
// TTL that the script returned. While the lock is held, a watchdog resets the lease every third of
// the lease. Another script releases: it decrements the count, and at zero deletes the hash and
// publishes the message.
//
// The library's versions differ in the condition that ends a watchdog. This lock follows the flow
// chart, which asks the server: the watchdog ends when a release has brought the count to zero, or
// when the field does not exist. RedissonLock did the same at first (commit 0223f1fc, 2016); since
// 2019 (commit 4339c99b) it also counts acquires on the client's side. In all versions a release
// with an unknown outcome ends the watchdog. A failed renewal is repeated a third of the lease
// later, as RenewalTask does (commit 6fb6e28a, 2024); RedissonBaseLock before it (commit 00d758eb,
// 2022) ended the watchdog and wrote a log line.
//
// Known faults: an acquire that the client library sends twice counts twice; after one release the
// watchdog then renews forever. The watchdog is independent of the work that it protects: it keeps
// the lock for a thread that hangs. The holder is not notified when renewals fail. Data that the
// single server loses is lost, as with set-nx-px-lua.
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

// Release does not stop the watchdog if the server still counts holds.
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

// Close stops the watchdog and waits until it has ended, at most until the reply to a renewal in
// progress. Close does not release the lock, which ends with its lease.
func (l *redissonLock) Close() error {
	l.watchdog.close()
	return nil
}

// forever is a duration longer than any wait for a lock.
const forever = 100 * 365 * 24 * time.Hour

// tryLock tries to acquire the lock until the deadline, as RedissonLock.tryLock(waitTime) does. A
// granted lock counts as acquired even if the reply was late.
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
	// Closing the connection ends the subscription on the server.
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
		// The end of a key without TTL is announced only by a message.
		if left >= 0 {
			// A reply of 0 means that less than 1 ms is left.
			if expiry := time.Now().Add(max(left, time.Millisecond)); expiry.Before(wake) {
				wake = expiry
			}
		}
		l.wait(ctx, released, wake)
	}
	return false, nil
}

// attempt runs the acquire script once. If the lock is not granted, attempt returns the rest of the
// owner's lease, which is negative if the lease never ends.
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

// subscribed waits until the server confirms the subscription.
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

// wait waits for a release message, until wake at the latest. wait reads from the connection on the
// caller's goroutine, in slices, so that no goroutine remains and a cancelled ctx is noticed soon.
// A broken connection is reconnected; wake limits the delay after a lost message.
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

// slice returns the duration of the next read before the deadline: between 1 ms and 1 s.
func slice(deadline time.Time) time.Duration {
	return max(time.Millisecond, min(time.Second, time.Until(deadline)))
}

func isTimeout(err error) bool {
	var timeout net.Error
	return errors.As(err, &timeout) && timeout.Timeout()
}
