package strategies

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"
)

// waitTimeout is how long set-wait lets the server wait for its replicas.
const waitTimeout = 100 * time.Millisecond

// setWait is SET NX PX followed by WAIT for so many of the node's replicas that
// a majority of its servers have the lock before anybody relies on it: one of
// one, one of two, two of three replicas. A failover that promotes the replica
// that got furthest then can't forget it. If too few replicas answer within
// 100 ms it releases and fails. It follows the Redis documentation on WAIT, and
// what Redisson does since it gave up its RedLock.
//
// The two commands go in one pipeline: WAIT speaks of the writes of its own
// connection, and only so is that certain to be the SET's.
//
// Known faults: WAIT is no transaction. The lock is there while the replicas
// are still asked, and a promoted replica that was cut off may never have seen
// it. The release isn't waited for. The lease can end within the critical
// section.
func setWait() Strategy {
	const name = "set-wait"
	return Strategy{
		Name:    name,
		Summary: "SET NX PX, then WAIT for a majority of the servers; released by a compare-and-delete script",
		Source:  "Redis documentation (WAIT); Redisson",
		Tags:    []string{TagSingle},
		New: func(env Env) (Lock, error) {
			l, err := newKeyLock(name, env)
			if err != nil {
				return nil, err
			}
			return &setWaitLock{l}, nil
		},
	}
}

type setWaitLock struct{ keyLock }

func (l *setWaitLock) Acquire(ctx context.Context) error {
	value := l.env.token()
	return retry(ctx, every(retryDelay), func(ctx context.Context) error { return l.attempt(ctx, value) })
}

func (l *setWaitLock) TryAcquire(ctx context.Context) error {
	return l.attempt(ctx, l.env.token())
}

func (l *setWaitLock) Release(ctx context.Context) error {
	return l.compareAndDelete(ctx)
}

func (l *setWaitLock) attempt(ctx context.Context, value string) error {
	pipe := l.client.Pipeline()
	set := pipe.Do(ctx, "SET", l.env.Key, value, "NX", "PX", l.env.TTL.Milliseconds())
	wait := pipe.Do(ctx, "WAIT", l.needed(), waitTimeout.Milliseconds())
	// Each command carries its own error; Exec returns just the first.
	_, _ = pipe.Exec(ctx)

	if errors.Is(set.Err(), redis.Nil) {
		return l.taken()
	}
	l.value = value
	if err := set.Err(); err != nil {
		return l.failed("SET", err)
	}
	replicas, err := wait.Int64()
	if err != nil {
		return l.failed("WAIT after SET", err)
	}
	if replicas >= l.needed() {
		return nil
	}
	if err := l.compareAndDelete(ctx); err != nil && !errors.Is(err, ErrNotHeld) {
		return err
	}
	return fmt.Errorf("strategies: %s: %d replicas have %s, %d are needed: %w",
		l.strategy, replicas, l.env.Key, l.needed(), ErrNotAcquired)
}

// needed returns how many replicas make a majority together with the primary.
func (l *setWaitLock) needed() int64 { return int64(l.env.Replicas+1) / 2 }
