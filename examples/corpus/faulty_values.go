package main

import (
	"context"
	"strconv"

	"github.com/gomodule/redigo/redis"

	"github.com/lockfault/lockfault/strategies"
)

// faultyValues are locks whose owner values tell one owner from another too badly.
func faultyValues() []strategies.Strategy {
	return []strategies.Strategy{
		valued("faulty-empty-value", "every owner's value is the empty string, so the release's comparison always holds",
			func(strategies.Env) func() string { return func() string { return "" } }),
		valued("faulty-date-value", "the value is the date of the acquire, and all of a day have the same",
			func(env strategies.Env) func() string {
				return func() string { return env.Now().Format("2006-01-02") }
			}),
		valued("faulty-millisecond-value", "the value is the millisecond in which the acquire began, and clients that begin at once have the same",
			func(env strategies.Env) func() string {
				return func() string { return strconv.FormatInt(env.Now().UnixMilli(), 10) }
			}),
		valued("faulty-thread-value", "the value is the number of a thread, which threads of other processes have too",
			func(env strategies.Env) func() string { return func() string { return env.Thread } }),
		valued("faulty-dice-value", "the value is drawn from two numbers, so every second owner has that of the one before",
			func(env strategies.Env) func() string {
				return func() string { return strconv.Itoa(env.Rand.IntN(2)) }
			}),
		sameValue(),
	}
}

// valued returns a lock like plain, but for its values: one is drawn for each acquire.
func valued(name, bug string, values func(strategies.Env) func() string) strategies.Strategy {
	return specimen(name, bug, nil, func(env strategies.Env) strategies.Lock {
		return &valuedLock{newPlain(env), values(env)}
	})
}

type valuedLock struct {
	*plain
	draw func() string
}

func (l *valuedLock) Acquire(ctx context.Context) error {
	value := l.draw()
	return poll(ctx, func() error { return l.takeAs(ctx, value) })
}

func (l *valuedLock) TryAcquire(ctx context.Context) error { return l.takeAs(ctx, l.draw()) }

func (l *valuedLock) Release(ctx context.Context) error { return l.free(ctx) }

// sameValue is on redigo.
func sameValue() strategies.Strategy {
	const mark = "locked"
	freed := redis.NewScript(1, `if redis.call("get", KEYS[1]) == ARGV[1] then return redis.call("del", KEYS[1]) end return 0`)
	return specimen("faulty-same-value", "all owners write the same value, so its release deletes whosever key it finds", nil,
		func(env strategies.Env) strategies.Lock {
			db := newRedigo(env)
			return db.lock(polled{
				attempt: func(ctx context.Context) error {
					return db.with(ctx, func(conn redis.Conn) error {
						answer, err := redis.DoContext(conn, ctx, "SET", env.Key, mark, "NX", "PX", env.TTL.Milliseconds())
						return won(answer != nil, err)
					})
				},
				release: func(ctx context.Context) error {
					return db.with(ctx, func(conn redis.Conn) error {
						return ownerError(redis.Int64(freed.DoContext(ctx, conn, env.Key, mark)))
					})
				},
			})
		})
}
