package thirdparty

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/bsm/redislock"

	"github.com/lockfault/lockfault/strategies"
)

// redislockStrategy is redislock: a script that does SET NX PX, and sets the
// lease anew if it finds its own value there already, so that it can safely be
// sent twice; asked again every 100 ms; released by a compare-and-delete script.
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

// Redislock completes a strategy, which has everything but New, with the library
// redislock. Its tokens are the library's own, at random, if token is nil.
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
	token  string          // empty has the library draw one for each acquire
	lock   *redislock.Lock // nil before the first acquire, which Release allows
}

// Acquire lets the library retry. It never leaves the library to find that the
// time is over, since it returns the same error for that as for a command that
// was cut short: the deadline is passed on in a backoff that ends before it.
// Without a deadline the library gives up after a TTL, so it is called again.
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

// held translates the result of an operation on a lock that is held. The
// library says ErrNotObtained for a refresh that came too late.
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

// untilDeadline is a backoff that ends rather than reach the deadline.
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
