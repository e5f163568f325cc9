package strategies

import (
	"context"
	"errors"
	"fmt"

	"github.com/redis/go-redis/v9"
)

// compareAndDelete and compareAndExpire change KEYS[1] only if its value is the caller's value
// ARGV[1]; the scripts return 1 if they did. compareAndDelete is the release script of the Redis
// documentation, which documents 001, 002 and 004 print.
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

// keyLock implements the common parts of the locks on one string key of one node.
type keyLock struct {
	strategy string // for error messages
	env      Env
	client   redis.UniversalClient
	// value is the owner value of the last attempt that succeeded or may have succeeded. A release
	// after an unknown outcome can therefore delete the key.
	value string
}

func newKeyLock(strategy string, env Env) (keyLock, error) {
	if err := env.Check(strategy, 1); err != nil {
		return keyLock{}, err
	}
	return keyLock{strategy: strategy, env: env, client: env.Nodes[0]}, nil
}

// taken returns the error for a lock that another client holds.
func (l *keyLock) taken() error {
	return fmt.Errorf("strategies: %s: %s is taken: %w", l.strategy, l.env.Key, ErrNotAcquired)
}

// gone returns the error for a lock that this client does not hold, or no longer holds.
func (l *keyLock) gone() error {
	return fmt.Errorf("strategies: %s: %s is not ours: %w", l.strategy, l.env.Key, ErrNotHeld)
}

// failed returns the error for a command that failed, which makes the outcome unknown.
func (l *keyLock) failed(command string, err error) error {
	return fmt.Errorf("strategies: %s: %s %s: %w", l.strategy, command, l.env.Key, err)
}

// setNX sends SETNX. The method of go-redis would send SET NX instead.
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

// setNXPX sends SET NX PX. The method of go-redis would send EX for whole seconds.
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

// getCompareDel releases the lock in three separate steps: GET, compare, DEL. Commands of other
// clients can run between the steps. The final DEL deletes the key with any value.
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

// del deletes the key with any value.
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

// compareAndDelete releases the lock in one atomic step.
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

// compareAndExpire extends the lease in one atomic step.
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
