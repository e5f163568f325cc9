package main

import (
	"context"
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/lockfault/lockfault/strategies"
)

// onGoRedis returns a lock by go-redis's SetNX, on a client with its default of three
// retries and on one without.
func onGoRedis() []strategies.Strategy {
	setNX := func(name, summary string, retries int) strategies.Strategy {
		return strategies.Strategy{
			Name:    name,
			Summary: summary,
			Source:  "https://github.com/redis/go-redis",
			Tags:    []string{strategies.TagSingle},
			New: func(env strategies.Env) (strategies.Lock, error) {
				if err := env.Check(name, 1); err != nil {
					return nil, err
				}
				return &setNXLock{env: env, client: redis.NewClient(&redis.Options{
					Addr: env.Addr(0), Dialer: env.Dial, Protocol: 2,
					MaxRetries: retries,
					// Pauses that are drawn at random could not be played twice.
					MinRetryBackoff: env.TTL / 1000, MaxRetryBackoff: env.TTL / 1000,
					ContextTimeoutEnabled: true,
					ReadTimeout:           env.ReadTimeout(),
				})}, nil
			},
		}
	}
	const byDefault = 3 // what go-redis takes for a MaxRetries that isn't set
	return []strategies.Strategy{
		setNX("goredis-setnx", "go-redis's SetNX on a client with its default of three retries, released by a script", byDefault),
		setNX("goredis-setnx-no-retries", "go-redis's SetNX on a client with MaxRetries -1, released by a script", -1),
	}
}

type setNXLock struct {
	env    strategies.Env
	client *redis.Client
	value  string
}

// Acquire says that it has not got the lock if SetNX says so, and passes an error on,
// which leaves open whether it has.
func (l *setNXLock) Acquire(ctx context.Context) error {
	return strategies.Poll(ctx, 100*time.Millisecond, l.TryAcquire)
}

func (l *setNXLock) TryAcquire(ctx context.Context) error {
	l.value = fmt.Sprintf("%s-%016x", l.env.Owner, l.env.Rand.Uint64())
	taken, err := l.client.SetNX(ctx, l.env.Key, l.value, l.env.TTL).Result()
	if err != nil {
		return err
	}
	if !taken {
		return strategies.ErrNotAcquired
	}
	return nil
}

func (l *setNXLock) Release(ctx context.Context) error {
	const compareAndDelete = `if redis.call("get", KEYS[1]) == ARGV[1] then return redis.call("del", KEYS[1]) end return 0`
	n, err := l.client.Eval(ctx, compareAndDelete, []string{l.env.Key}, l.value).Int64()
	if err == nil && n == 0 {
		return strategies.ErrNotHeld
	}
	return err
}

func (l *setNXLock) Close() error { return l.client.Close() }
