package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/lockfault/lockfault/strategies"
)

// pause is how long a client waits that found the lock taken.
const pause = 100 * time.Millisecond

// poll makes attempts until one is not told that the lock is taken, and gives up
// when no other would begin before the context's deadline.
func poll(ctx context.Context, attempt func() error) error {
	for {
		err := attempt()
		if !errors.Is(err, strategies.ErrNotAcquired) {
			return err
		}
		if deadline, ok := ctx.Deadline(); ctx.Err() != nil || ok && time.Until(deadline) <= pause {
			return err
		}
		time.Sleep(pause)
	}
}

// newValue returns an owner value that nobody else has.
func newValue(env strategies.Env) string {
	return fmt.Sprintf("%s-%016x", env.Owner, env.Rand.Uint64())
}

// won says what the answer of an attempt means that took the lock, or found it taken.
func won(ok bool, err error) error {
	if errors.Is(err, redis.Nil) || err == nil && !ok {
		return strategies.ErrNotAcquired
	}
	return err
}

// ownerError says what the answer of a script means that releases or extends what is ours.
func ownerError(n int64, err error) error {
	if err == nil && n == 0 {
		return strategies.ErrNotHeld
	}
	return err
}
