package strategies

import (
	"context"
	"errors"
	"fmt"

	"github.com/redis/go-redis/v9"
)

// compareAndDelete and compareAndExpire touch KEYS[1] only if it holds the
// caller's value ARGV[1]; they return 1 if they did. The first is the release
// script of the Redis documentation that documents 001, 002 and 004 print.
var (
	compareAndDelete = redis.NewScript(`
if redis.call("get", KEYS[1]) == ARGV[1] then
	return redis.call("del", KEYS[1])
end
return 0`)

	compareAndExpire = redis.NewScript(`
if redis.call("get", KEYS[1]) == ARGV[1] then
	return redis.call("pexpire", KEYS[1], ARGV[2])
end
return 0`)
)

// keyLock is what the locks on one string key of one node have in common.
type keyLock struct {
	strategy string // for error messages
	env      Env
	client   redis.UniversalClient
	// value is the owner value of the last attempt that succeeded, or that
	// may have: a release after an unknown outcome can then clean up.
	value string
}

func newKeyLock(strategy string, env Env) (keyLock, error) {
	if err := env.Check(strategy, 1); err != nil {
		return keyLock{}, err
	}
	return keyLock{strategy: strategy, env: env, client: env.Nodes[0]}, nil
}

// taken says that somebody else has the lock.
func (l *keyLock) taken() error {
	return fmt.Errorf("strategies: %s: %s is taken: %w", l.strategy, l.env.Key, ErrNotAcquired)
}

// gone says that the lock is not, or no longer, ours.
func (l *keyLock) gone() error {
	return fmt.Errorf("strategies: %s: %s is not ours: %w", l.strategy, l.env.Key, ErrNotHeld)
}

// failed says that a command failed, and so that the outcome is unknown.
func (l *keyLock) failed(command string, err error) error {
	return fmt.Errorf("strategies: %s: %s %s: %w", l.strategy, command, l.env.Key, err)
}

// setNX sends SETNX, which go-redis's own method would turn into SET NX.
func (l *keyLock) setNX(ctx context.Context, value string) (bool, error) {
	won, err := l.client.Do(ctx, "SETNX", l.env.Key, value).Bool()
	if err != nil || won {
		l.value = value
	}
	if err != nil {
		return false, l.failed("SETNX", err)
	}
	return won, nil
}

// setNXPX sends SET NX PX; go-redis's own method would choose EX for whole
// seconds.
func (l *keyLock) setNXPX(ctx context.Context, value string) error {
	err := l.client.Do(ctx, "SET", l.env.Key, value, "NX", "PX", l.env.TTL.Milliseconds()).Err()
	if errors.Is(err, redis.Nil) {
		return l.taken()
	}
	l.value = value
	if err != nil {
		return l.failed("SET", err)
	}
	return nil
}

// getCompareDel releases in three steps that others can come between: GET,
// compare, DEL. The DEL that ends it deletes whatever is there by then.
func (l *keyLock) getCompareDel(ctx context.Context) error {
	value, err := l.client.Get(ctx, l.env.Key).Result()
	switch {
	case errors.Is(err, redis.Nil):
		return l.gone()
	case err != nil:
		return l.failed("GET", err)
	case value != l.value:
		return l.gone()
	}
	return l.del(ctx)
}

// del deletes the key, whoever's it is.
func (l *keyLock) del(ctx context.Context) error {
	deleted, err := l.client.Del(ctx, l.env.Key).Result()
	if err != nil {
		return l.failed("DEL", err)
	}
	if deleted == 0 {
		return l.gone()
	}
	return nil
}

// compareAndDelete releases in one step.
func (l *keyLock) compareAndDelete(ctx context.Context) error {
	deleted, err := compareAndDelete.Run(ctx, l.client, []string{l.env.Key}, l.value).Int64()
	if err != nil {
		return l.failed("the release script on", err)
	}
	if deleted == 0 {
		return l.gone()
	}
	return nil
}

// compareAndExpire prolongs the lease in one step.
func (l *keyLock) compareAndExpire(ctx context.Context) error {
	extended, err := compareAndExpire.Run(ctx, l.client, []string{l.env.Key}, l.value, l.env.TTL.Milliseconds()).Int64()
	if err != nil {
		return l.failed("the extend script on", err)
	}
	if extended == 0 {
		return l.gone()
	}
	return nil
}
