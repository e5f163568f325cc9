package strategies

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"
)

// waitTimeout is the time limit of WAIT: how long the server waits for its replicas.
const waitTimeout = 100 * time.Millisecond

// setWait returns the lock of SET NX PX followed by WAIT. WAIT waits for enough replicas that a
// majority of the node's servers have the key: one of one replica, one of two, two of three. A
// failover that promotes the most advanced replica then keeps the lock. If too few replicas reply
// within 100 ms, the client releases the key and the attempt fails. The lock follows the Redis
// documentation on WAIT, and Redisson's algorithm since it deprecated RedLock.
//
// The two commands are sent in one pipeline: WAIT counts the writes of its own connection, and only
// a pipeline guarantees that SET used the same connection.
//
// Known faults: WAIT is not a transaction. The key exists while the server still waits for the
// replicas, and a promoted replica that was cut off may never have received the key. The release
// does not wait for replicas. The lease can end within the critical section.
func setWait() Strategy {
	const name = "set-wait"
	return Strategy{
		Name:    name,
		Summary: "SET NX PX, then WAIT for a majority of the servers; released by a compare-and-delete script",
		Source:  "Redis documentation (WAIT); Redisson",
		Tags:    []string{TagSingle, TagReplicas},
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
	// Each command has its own error; Exec returns only the first error.
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

// needed returns the number of replicas that make a majority together with the primary.
func (l *setWaitLock) needed() int64 { return int64(l.env.Replicas+1) / 2 }
