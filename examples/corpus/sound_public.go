package main

import (
	"context"
	"errors"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/lockfault/lockfault/strategies"
)

// soundPublic returns locks that follow public code: the same commands in the same
// order. The libraries that they are from repeat nothing by themselves, so these
// don't either.
func soundPublic() []strategies.Strategy {
	pythonRedisLock := describe("sound-python-redis-lock", classLease, "SET NX EX; losers wait in BLPOP for a signal that the release pushes",
		"python-redis-lock, src/redis_lock/__init__.py (Lock.acquire, UNLOCK_SCRIPT)", 1)
	pythonRedisLock.New = func(env strategies.Env) (strategies.Lock, error) {
		if err := env.Check(pythonRedisLock.Name, 1); err != nil {
			return nil, err
		}
		return pythonSignal(env), nil
	}
	pythonRedisLock.Keys = func(key string) []string { return []string{"lock:" + key} }
	symfony := describe("sound-symfony", classValidity, "a script that saves, and one that puts the expiry off; gives back what is over by then",
		"Symfony, Component/Lock (Lock.php, Store/RedisStore.php)", 1, strategies.TagExtending)
	symfony.New = func(env strategies.Env) (strategies.Lock, error) {
		if err := env.Check(symfony.Name, 1); err != nil {
			return nil, err
		}
		return newDated(env, saving(env)), nil
	}
	spring := describe("sound-spring", classReentrant, "a string that names the process, in scripts; entries are counted in the process",
		"Spring Integration, RedisLockRegistry.java (RedisSpinLock)", 1)
	spring.New = func(env strategies.Env) (strategies.Lock, error) {
		if err := env.Check(spring.Name, 1); err != nil {
			return nil, err
		}
		client := unrepeated(env)
		return &springLock{env: env, client: client, id: newValue(env)}, nil
	}
	return []strategies.Strategy{
		defineProlonged("sound-redis-py", classLease, "SET NX PX; released and reacquired by scripts that compare", "redis-py, redis/lock.py (Lock)", redisPySteps),
		defineProlonged("sound-stackexchange", classLease, "SET NX PX; released and extended by WATCH, GET, MULTI, EXEC", "StackExchange.Redis, RedisDatabase.cs (LockTake, LockRelease, LockExtend)",
			func(env strategies.Env) steps { return watching(env).steps }),
		define("sound-go-zero", classLease, "SET PX of one's own value or SET NX PX in a script, for half a second longer than asked; released by a script that compares",
			"go-zero, core/stores/redis/redislock.go, one RedisLock for each acquire", goZeroSteps),
		pythonRedisLock,
		symfony,
		spring,
	}
}

func redisPySteps(env strategies.Env) steps {
	client := unrepeated(env)
	given := "" // the token that was forgotten with the last release
	s := scripted(client, env.Key, env.TTL)
	give := s.give
	s.take = func(ctx context.Context, value string) error {
		err := client.Do(ctx, "SET", env.Key, value, "PX", env.TTL.Milliseconds(), "NX").Err()
		return won(true, err)
	}
	s.give = func(ctx context.Context, value string) error {
		if value == given {
			return strategies.ErrNotHeld
		}
		given = value
		return give(ctx, value)
	}
	s.close = client
	return s
}

// A watcher is steps that compare without a script, on a client that they can be
// added to.
type watcher struct {
	steps
	client *redis.Client
}

func watching(env strategies.Env) watcher {
	client := unrepeated(env)
	// if the key has the value the deed is done, unless anybody touches it first
	own := func(ctx context.Context, value string, deed func(redis.Pipeliner)) error {
		err := client.Watch(ctx, func(tx *redis.Tx) error {
			is, err := tx.Get(ctx, env.Key).Result()
			if errors.Is(err, redis.Nil) || err == nil && is != value {
				return strategies.ErrNotHeld
			}
			if err != nil {
				return err
			}
			_, err = tx.TxPipelined(ctx, func(p redis.Pipeliner) error {
				deed(p)
				return nil
			})
			return err
		}, env.Key)
		if errors.Is(err, redis.TxFailedErr) {
			return strategies.ErrNotHeld
		}
		return err
	}
	return watcher{client: client, steps: steps{
		take: func(ctx context.Context, value string) error {
			return won(true, client.Do(ctx, "SET", env.Key, value, "PX", env.TTL.Milliseconds(), "NX").Err())
		},
		give: func(ctx context.Context, value string) error {
			return own(ctx, value, func(p redis.Pipeliner) { p.Del(ctx, env.Key) })
		},
		prolong: func(ctx context.Context, value string) error {
			return own(ctx, value, func(p redis.Pipeliner) { p.PExpire(ctx, env.Key, env.TTL) })
		},
		close: client,
	}}
}

// goZeroSteps are those of go-zero, but for the 500 ms that it adds to each lease: what a
// script says in leases is about the one that it was told.
func goZeroSteps(env strategies.Env) steps {
	client := unrepeated(env)
	take := redis.NewScript(`
if redis.call("GET", KEYS[1]) == ARGV[1] then
	redis.call("SET", KEYS[1], ARGV[1], "PX", ARGV[2])
	return 1
end
return redis.call("SET", KEYS[1], ARGV[1], "NX", "PX", ARGV[2]) and 1 or 0`)
	s := scripted(client, env.Key, env.TTL)
	s.take = func(ctx context.Context, value string) error {
		return asked(ctx, client, take, []string{env.Key}, value, env.TTL.Milliseconds())
	}
	s.close = client
	return s
}

// saving is RedisStore: save, then putOffExpiration, which is where the time that
// counts begins.
func saving(env strategies.Env) steps {
	client := unrepeated(env)
	save := redis.NewScript(`
if redis.call("GET", KEYS[1]) == ARGV[1] then
	return redis.call("PEXPIRE", KEYS[1], ARGV[2])
end
return redis.call("SET", KEYS[1], ARGV[1], "NX", "PX", ARGV[2]) and 1 or 0`)
	s := scripted(client, env.Key, env.TTL)
	s.take = func(ctx context.Context, value string) error {
		if err := asked(ctx, client, save, []string{env.Key}, value, env.TTL.Milliseconds()); err != nil {
			return err
		}
		n, err := prolongOwn.Run(ctx, client, []string{env.Key}, value, env.TTL.Milliseconds()).Int64()
		return won(n == 1, err)
	}
	s.give = func(ctx context.Context, value string) error {
		if err := ownerError(giveOwn.Run(ctx, client, []string{env.Key}, value).Int64()); err != nil {
			return err
		}
		is, err := client.Get(ctx, env.Key).Result()
		if err == nil && is == value {
			return errors.New("the key is still there")
		}
		if errors.Is(err, redis.Nil) {
			return nil
		}
		return err
	}
	s.close = client
	return s
}

func pythonSignal(env strategies.Env) *signalLock {
	client := unrepeated(env)
	key, signal := "lock:"+env.Key, "lock-signal:"+env.Key
	unlock := redis.NewScript(`
if redis.call("get", KEYS[1]) ~= ARGV[1] then return 0 end
redis.call("del", KEYS[2])
redis.call("lpush", KEYS[2], 1)
redis.call("del", KEYS[1])
return 1`)
	l := &signalLock{client: client, signal: signal}
	l.stepped = stepped{env: env, steps: steps{
		take: func(ctx context.Context, value string) error {
			return won(client.SetNX(ctx, key, value, env.TTL).Result())
		},
		give: func(ctx context.Context, value string) error {
			if err := ownerError(unlock.Run(ctx, client, []string{key, signal}, value).Int64()); err != nil {
				return err
			}
			return client.Del(ctx, signal).Err()
		},
		close: client,
	}}
	return l
}

type signalLock struct {
	stepped
	client *redis.Client
	signal string
}

// Acquire asks again at each signal, and at the latest when the lease of somebody
// who died is over.
func (l *signalLock) Acquire(ctx context.Context) error {
	const least = time.Second // BLPOP counts whole seconds here
	value := newValue(l.env)
	for {
		err := l.steps.take(ctx, value)
		deadline, limited := ctx.Deadline()
		if !errors.Is(err, strategies.ErrNotAcquired) || limited && time.Until(deadline) <= least+pause {
			return l.note(value, err)
		}
		wait := l.env.TTL
		if limited {
			wait = min(wait, time.Until(deadline)-pause)
		}
		if err := l.client.BLPop(ctx, max(least, wait.Truncate(time.Second)), l.signal).Err(); err != nil && !errors.Is(err, redis.Nil) {
			return err
		}
	}
}

// springLock counts in the process how often it was entered, and sets the lease
// anew each time. A release that leaves it entered says nothing to the server.
type springLock struct {
	env     strategies.Env
	client  *redis.Client
	id      string
	entered int
}

var (
	springObtain = redis.NewScript(`
local id = redis.call("GET", KEYS[1])
if id == ARGV[1] then
	redis.call("PEXPIRE", KEYS[1], ARGV[2])
	return 1
elseif not id then
	redis.call("SET", KEYS[1], ARGV[1], "PX", ARGV[2])
	return 1
end
return 0`)
	springUnlock = redis.NewScript(`
if redis.call("GET", KEYS[1]) ~= ARGV[1] then return 0 end
return redis.call("UNLINK", KEYS[1])`)
)

func (l *springLock) TryAcquire(ctx context.Context) error {
	err := asked(ctx, l.client, springObtain, []string{l.env.Key}, l.id, l.env.TTL.Milliseconds())
	if err == nil {
		l.entered++
	}
	return err
}

func (l *springLock) Acquire(ctx context.Context) error {
	return poll(ctx, func() error { return l.TryAcquire(ctx) })
}

func (l *springLock) Release(ctx context.Context) error {
	if l.entered == 0 {
		return strategies.ErrNotHeld
	}
	l.entered--
	if l.entered > 0 {
		return nil
	}
	return ownerError(springUnlock.Run(ctx, l.client, []string{l.env.Key}, l.id).Int64())
}

func (l *springLock) Close() error { return l.client.Close() }
