package main

import (
	"context"
	"errors"

	"github.com/gomodule/redigo/redis"

	"github.com/lockfault/lockfault/strategies"
)

// onRedigo is SET NX PX on redigo, with a pool of one connection.
var onRedigo = strategies.Strategy{
	Name:     "my-redigo",
	Summary:  "SET NX PX and a compare-and-delete script, on redigo",
	Source:   "docs/other-clients.md",
	Tags:     []string{strategies.TagSingle},
	Expected: map[string][]string{"ghost-retry": {"unavailable"}}, // it repeats nothing
	New: func(env strategies.Env) (strategies.Lock, error) {
		if err := env.Check("my-redigo", 1); err != nil {
			return nil, err
		}
		dial := func(ctx context.Context) (redis.Conn, error) {
			return redis.DialContext(ctx, "tcp", env.Addr(0),
				redis.DialContextFunc(env.Dial), redis.DialReadTimeout(env.ReadTimeout()))
		}
		return &redigoLock{env: env, pool: &redis.Pool{DialContext: dial, MaxIdle: 1}}, nil
	},
}

type redigoLock struct {
	env   strategies.Env
	pool  *redis.Pool
	value string
}

func (l *redigoLock) Acquire(ctx context.Context) error {
	l.value = newValue(l.env)
	return poll(ctx, func() error {
		conn, err := l.pool.GetContext(ctx)
		if err != nil {
			return err
		}
		defer conn.Close()
		_, err = redis.String(redis.DoContext(conn, ctx, "SET", l.env.Key, l.value, "NX", "PX", l.env.TTL.Milliseconds()))
		if errors.Is(err, redis.ErrNil) {
			return strategies.ErrNotAcquired
		}
		return err
	})
}

var redigoRelease = redis.NewScript(1, compareAndDelete)

func (l *redigoLock) Release(ctx context.Context) error {
	conn, err := l.pool.GetContext(ctx)
	if err != nil {
		return err
	}
	defer conn.Close()
	return deleted(redis.Int64(redigoRelease.DoContext(ctx, conn, l.env.Key, l.value)))
}

func (l *redigoLock) Close() error { return l.pool.Close() }
