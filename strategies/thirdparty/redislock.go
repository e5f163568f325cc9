package thirdparty

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/bsm/redislock"

	"github.com/lockfault/lockfault/strategies"
)

// redislockStrategy returns the library redislock. A script does SET NX PX; if the key already has
// the client's own value, the script resets the lease, so the script can safely be sent twice. The
// client polls every 100 ms and releases with a compare-and-delete script.
//
// Known faults: those of any lock on one server without renewal.
func redislockStrategy() strategies.Strategy {
	return Redislock(strategies.Strategy{
		Name:    "redislock",
		Summary: "the library redislock: SET NX PX in a script that can be repeated",
		Source:  "https://github.com/bsm/redislock",
		Tags:    []string{strategies.TagSingle, strategies.TagExtending},
	}, nil)
}

// Redislock returns the strategy s with a New that uses the library redislock. The token function
// returns the owner value; if token is nil, the library generates random tokens.
func Redislock(s strategies.Strategy, token func(strategies.Env) string) strategies.Strategy {
	s.New = func(env strategies.Env) (strategies.Lock, error) {
		if err := env.Check(s.Name, 1); err != nil {
			return nil, err
		}
		lock := &redislockLock{name: s.Name, env: env, client: redislock.New(env.Nodes[0])}
		if token != nil {
			lock.token = token(env)
		}
		return lock, nil
	}
	return s
}

type redislockLock struct {
	name   string
	env    strategies.Env
	client *redislock.Client
	token  string          // if empty, the library generates a token for each acquire
	lock   *redislock.Lock // nil before the first acquire; the library's Release accepts nil
}

// Acquire uses the library's retries. The deadline is passed in a backoff that ends before the
// deadline, because the library returns the same error for the deadline as for an interrupted
// command. Without a deadline the library gives up after a TTL, so Acquire calls it again.
func (l *redislockLock) Acquire(ctx context.Context) error {
	if deadline, limited := ctx.Deadline(); limited {
		return l.obtain(ctx, untilDeadline{redislock.LinearBackoff(retryDelay), deadline})
	}
	for {
		round, cancel := context.WithTimeout(ctx, l.env.TTL)
		deadline, _ := round.Deadline()
		err := l.obtain(round, untilDeadline{redislock.LinearBackoff(retryDelay), deadline})
		cancel()
		if !errors.Is(err, strategies.ErrNotAcquired) {
			return err
		}
		select {
		case <-ctx.Done():
			return err
		case <-time.After(retryDelay):
		}
	}
}

func (l *redislockLock) TryAcquire(ctx context.Context) error {
	return l.obtain(ctx, redislock.NoRetry())
}

func (l *redislockLock) obtain(ctx context.Context, backoff redislock.RetryStrategy) error {
	if ctx.Err() != nil {
		return fmt.Errorf("strategies: %s: %s: %v: %w", l.name, l.env.Key, ctx.Err(), strategies.ErrNotAcquired)
	}
	lock, err := l.client.Obtain(ctx, l.env.Key, l.env.TTL, &redislock.Options{RetryStrategy: backoff, Token: l.token})
	switch {
	case err == nil:
		l.lock = lock
		return nil
	case errors.Is(err, redislock.ErrNotObtained), err == context.Canceled:
		return fmt.Errorf("strategies: %s: %s: %w: %w", l.name, l.env.Key, err, strategies.ErrNotAcquired)
	default:
		return fmt.Errorf("strategies: %s: %s: %w", l.name, l.env.Key, err)
	}
}

func (l *redislockLock) Release(ctx context.Context) error {
	return l.held(l.lock.Release(ctx))
}

func (l *redislockLock) Extend(ctx context.Context) error {
	if l.lock == nil {
		return l.held(redislock.ErrLockNotHeld)
	}
	return l.held(l.lock.Refresh(ctx, l.env.TTL, nil))
}

// held translates the result of an operation on a held lock. The library returns ErrNotObtained for
// a refresh that was too late.
func (l *redislockLock) held(err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, redislock.ErrLockNotHeld), errors.Is(err, redislock.ErrNotObtained):
		return fmt.Errorf("strategies: %s: %s: %w: %w", l.name, l.env.Key, err, strategies.ErrNotHeld)
	default:
		return fmt.Errorf("strategies: %s: %s: %w", l.name, l.env.Key, err)
	}
}

// untilDeadline is a backoff that ends before it would reach the deadline.
type untilDeadline struct {
	redislock.RetryStrategy
	deadline time.Time
}

func (u untilDeadline) NextBackoff() time.Duration {
	backoff := u.RetryStrategy.NextBackoff()
	if !time.Now().Add(backoff).Before(u.deadline) {
		return 0
	}
	return backoff
}
