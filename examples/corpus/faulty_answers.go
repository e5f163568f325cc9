package main

import (
	"context"
	"errors"

	"github.com/redis/go-redis/v9"

	"github.com/lockfault/lockfault/strategies"
)

// faultyAnswers are locks that don't know what to make of an answer that didn't come.
func faultyAnswers() []strategies.Strategy {
	return []strategies.Strategy{
		acquired("faulty-timeout-taken", "it takes an answer that didn't come for one that says that the lock is taken",
			func(ctx context.Context, l *plain) error {
				if l.take(ctx) != nil {
					return strategies.ErrNotAcquired
				}
				return nil
			}),
		acquired("faulty-timeout-won", "it takes an answer that didn't come for one that says that it has the lock",
			func(ctx context.Context, l *plain) error {
				if err := l.take(ctx); errors.Is(err, strategies.ErrNotAcquired) {
					return err
				}
				return nil
			}),
		acquired("faulty-new-value", "it asks again with a new value when no answer came, and finds its own key taken",
			func(ctx context.Context, l *plain) error {
				limited, cancel := context.WithTimeout(ctx, l.env.TTL/20)
				defer cancel()
				err := l.take(limited)
				if err != nil && ctx.Err() == nil {
					return strategies.ErrNotAcquired // and poll asks again
				}
				return err
			}),
		tidy(),
		refreshed(),
	}
}

// tidy gives up by deleting the key.
func tidy() strategies.Strategy {
	return specimen("faulty-tidy", "an acquire that gives up deletes the key, as if it were its own", nil,
		func(env strategies.Env) strategies.Lock { return &tidyLock{newPlain(env)} })
}

type tidyLock struct{ *plain }

func (l *tidyLock) Acquire(ctx context.Context) error {
	return l.tidy(ctx, poll(ctx, func() error { return l.take(ctx) }))
}

func (l *tidyLock) TryAcquire(ctx context.Context) error { return l.tidy(ctx, l.take(ctx)) }

func (l *tidyLock) tidy(ctx context.Context, err error) error {
	if err != nil {
		l.db.Del(context.WithoutCancel(ctx), l.key)
	}
	return err
}

func (l *tidyLock) Release(ctx context.Context) error { return l.free(ctx) }

// refreshed lets whoever asks prolong the lease, by a script that is nearly right.
func refreshed() strategies.Strategy {
	script := redis.NewScript(`
local set = redis.call("set", KEYS[1], ARGV[1], "NX")
redis.call("pexpire", KEYS[1], ARGV[2])
return set`)
	return acquired("faulty-script-expires-all", "its script takes what is free and then gives the key a new lease, whosever it is",
		func(ctx context.Context, l *plain) error {
			value := newValue(l.env)
			err := script.Run(ctx, l.db, []string{l.key}, value, l.ms()).Err()
			if !errors.Is(err, redis.Nil) {
				l.value = value
			}
			return won(true, err)
		})
}
