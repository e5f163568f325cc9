package main

import (
	"context"
	"errors"

	"github.com/redis/go-redis/v9"

	"github.com/lockfault/lockfault/strategies"
)

// onGoRedis is SET NX PX on a go-redis client that the lock sets up itself, here
// one that speaks RESP3.
var onGoRedis = strategies.Strategy{
	Name:     "my-go-redis",
	Summary:  "SET NX PX and a compare-and-delete script, on a go-redis client of its own",
	Source:   "docs/other-clients.md",
	Tags:     []string{strategies.TagSingle},
	Expected: map[string][]string{"ghost-retry": {"unavailable"}}, // it repeats nothing
	New: func(env strategies.Env) (strategies.Lock, error) {
		if err := env.Check("my-go-redis", 1); err != nil {
			return nil, err
		}
		return &goRedisLock{env: env, client: redis.NewClient(&redis.Options{
			Addr: env.Addr(0), Dialer: env.Dial, Protocol: 3,
			MaxRetries:            -1, // what is sent again is the lock's decision
			DialerRetries:         1,
			ContextTimeoutEnabled: true,
			ReadTimeout:           env.ReadTimeout(),
		})}, nil
	},
}

type goRedisLock struct {
	env    strategies.Env
	client *redis.Client
	value  string
}

func (l *goRedisLock) Acquire(ctx context.Context) error {
	l.value = newValue(l.env)
	return poll(ctx, func() error {
		err := l.client.Do(ctx, "SET", l.env.Key, l.value, "NX", "PX", l.env.TTL.Milliseconds()).Err()
		if errors.Is(err, redis.Nil) {
			return strategies.ErrNotAcquired
		}
		return err
	})
}

var goRedisRelease = redis.NewScript(compareAndDelete)

func (l *goRedisLock) Release(ctx context.Context) error {
	return deleted(goRedisRelease.Run(ctx, l.client, []string{l.env.Key}, l.value).Int64())
}

func (l *goRedisLock) Close() error { return l.client.Close() }
