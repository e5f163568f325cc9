package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/lockfault/lockfault/strategies"
)

// compareAndDelete deletes the lock KEYS[1] if it holds the value ARGV[1].
const compareAndDelete = `
if redis.call("get", KEYS[1]) == ARGV[1] then
	return redis.call("del", KEYS[1])
end
return 0`

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

// deleted says what the release script's answer means.
func deleted(n int64, err error) error {
	if err == nil && n == 0 {
		return strategies.ErrNotHeld
	}
	return err
}
