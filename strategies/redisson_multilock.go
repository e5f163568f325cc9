package strategies

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// redissonMultiLock returns Redisson's MultiLock over five redisson locks, one on each of five
// nodes. The lock is acquired when all five are acquired. If a node fails, the client releases the
// acquired locks and starts again until its waiting time has passed. The strategy follows
// RedissonMultiLock.tryLock (commit 04607ef0, 2020), which asks the nodes one after the other; each
// acquired lock has its own watchdog.
//
// Known faults: a single node that is down makes the lock unavailable, so five nodes fail more
// often than one. No reply counts as late: the lock is acquired when the last node has granted it,
// however long the nodes took in total. The known faults of redisson apply, too.
func redissonMultiLock() Strategy {
	return redissonOnFive("redisson-multilock",
		"redisson on all of five nodes, or on none",
		"document 003; Redisson's RedissonMultiLock",
		[]string{TagMulti, TagRedisson, TagRenewing}, func(int) int { return 0 })
}

// redissonOnFive returns a strategy on five nodes by default that tolerates failures of some nodes;
// mayFail returns the tolerated number for a number of nodes.
func redissonOnFive(name, summary, source string, tags []string, mayFail func(nodes int) int) Strategy {
	const nodes = 5
	return Strategy{
		Name:    name,
		Summary: summary,
		Source:  source,
		Nodes:   nodes, AnyNodes: true,
		Tags: tags,
		New: func(env Env) (Lock, error) {
			if err := env.Check(name, 1); err != nil {
				return nil, err
			}
			l := &redissonMulti{strategy: name, key: env.Key, mayFail: mayFail(len(env.Nodes))}
			for _, client := range env.Nodes {
				l.locks = append(l.locks, newRedissonLock(name, env, client))
			}
			return l, nil
		},
	}
}

// redissonMulti is a lock that combines several locks; up to mayFail of them need not be acquired.
type redissonMulti struct {
	strategy string
	key      string
	locks    []*redissonLock
	mayFail  int
}

// once is the waiting time that makes tryLock try a single time.
const once time.Duration = -1

// Acquire waits as tryLock(waitTime) does for the time until ctx's deadline. Without a deadline,
// Acquire makes rounds of 1.5 s per node, as lock() does.
func (l *redissonMulti) Acquire(ctx context.Context) error {
	deadline, limited := ctx.Deadline()
	for {
		waiting := time.Duration(len(l.locks)) * 1500 * time.Millisecond
		if limited {
			waiting = max(0, time.Until(deadline))
		}
		err := l.tryLock(ctx, waiting)
		if err == nil || limited || ctx.Err() != nil {
			return err
		}
	}
}

func (l *redissonMulti) TryAcquire(ctx context.Context) error {
	return l.tryLock(ctx, once)
}

// tryLock implements RedissonMultiLock.tryLock without a lease time: each failure in the loop
// decrements mayFail, and the next failure after zero starts the loop again. tryLock differs from
// the library in one point: before it starts again after an error it pauses, as Redisson's client
// does between its retries.
func (l *redissonMulti) tryLock(ctx context.Context, waiting time.Duration) error {
	remaining := waiting
	perNode := l.waitPerNode(waiting)
	mayFail := l.mayFail
	var acquired []*redissonLock
	var cause error
	give := func() error {
		l.unlock(ctx, acquired)
		return fmt.Errorf("strategies: %s: %d nodes granted %s, %d are needed%s: %w",
			l.strategy, len(acquired), l.key, len(l.locks)-l.mayFail, causeText(cause), ErrNotAcquired)
	}

	last := time.Now()
	for i := 0; i < len(l.locks); {
		lock := l.locks[i]
		i++
		ok, err := l.tryOne(ctx, lock, min(perNode, remaining))
		if err != nil {
			cause = err
			if isTimeout(err) {
				l.unlock(ctx, []*redissonLock{lock})
			}
		}
		switch {
		case ok:
			acquired = append(acquired, lock)
		case len(l.locks)-len(acquired) == l.mayFail:
			return nil
		case mayFail > 0:
			mayFail--
		case waiting == once:
			return give()
		default:
			l.unlock(ctx, acquired)
			acquired, mayFail, i = nil, l.mayFail, 0
			if err != nil {
				pause(ctx, min(retryDelay, remaining))
			}
		}
		if waiting != once {
			now := time.Now()
			remaining -= now.Sub(last)
			last = now
			if remaining <= 0 || ctx.Err() != nil {
				return give()
			}
		}
	}
	return nil
}

// waitPerNode returns the time limit for one node: the whole waiting time, or an equal share of it
// if some nodes may fail.
func (l *redissonMulti) waitPerNode(waiting time.Duration) time.Duration {
	if l.mayFail == 0 || waiting == once {
		return waiting
	}
	return max(waiting/time.Duration(len(l.locks)), time.Millisecond)
}

func (l *redissonMulti) tryOne(ctx context.Context, lock *redissonLock, waiting time.Duration) (bool, error) {
	if waiting == once {
		_, ok, err := lock.attempt(ctx)
		return ok, err
	}
	ok, err := lock.tryLock(ctx, time.Now().Add(waiting))
	return ok, err
}

// unlock releases the given locks even if ctx is done, and ignores errors.
func (l *redissonMulti) unlock(ctx context.Context, locks []*redissonLock) {
	for _, lock := range locks {
		_ = lock.Release(context.WithoutCancel(ctx))
	}
}

// Release releases on all nodes one after the other, whether acquired there or not. Redisson
// reports less: its RedLock reports no failure, its MultiLock any failure.
func (l *redissonMulti) Release(ctx context.Context) error {
	var released, unknown int
	var cause error
	for _, lock := range l.locks {
		err := lock.Release(ctx)
		switch {
		case err == nil:
			released++
		case !errors.Is(err, ErrNotHeld):
			unknown++
			cause = err
		}
	}
	needed := len(l.locks) - l.mayFail
	switch {
	case released >= needed:
		return nil
	case released+unknown < needed:
		return fmt.Errorf("strategies: %s: %d of %d nodes released %s: %w",
			l.strategy, released, len(l.locks), l.key, ErrNotHeld)
	default:
		return fmt.Errorf("strategies: %s: %d of %d nodes released %s, %d did not answer: %w",
			l.strategy, released, len(l.locks), l.key, unknown, cause)
	}
}

// Close stops the watchdogs of all nodes and waits until they have ended.
func (l *redissonMulti) Close() error {
	for _, lock := range l.locks {
		lock.watchdog.stop()
	}
	for _, lock := range l.locks {
		lock.watchdog.close()
	}
	return nil
}
