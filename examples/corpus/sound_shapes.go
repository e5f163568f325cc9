package main

import (
	"context"
	"fmt"

	"github.com/redis/go-redis/v9"

	"github.com/lockfault/lockfault/strategies"
)

// A shape is a lock in three scripts, for whatever type its keys have. Each gets
// the keys, the attempt's value and the lease in milliseconds, and answers 1 if it
// did what it is for.
type shape struct{ take, give, prolong string }

func (s shape) steps(keys func(key string) []string) func(strategies.Env) steps {
	return func(env strategies.Env) steps {
		run := func(script *redis.Script) func(context.Context, string) (int64, error) {
			return func(ctx context.Context, value string) (int64, error) {
				return script.Run(ctx, env.Nodes[0], keys(env.Key), value, env.TTL.Milliseconds()).Int64()
			}
		}
		take, give, prolong := run(redis.NewScript(s.take)), run(redis.NewScript(s.give)), run(redis.NewScript(s.prolong))
		return steps{
			take: func(ctx context.Context, value string) error {
				n, err := take(ctx, value)
				return won(n == 1, err)
			},
			give:    func(ctx context.Context, value string) error { return ownerError(give(ctx, value)) },
			prolong: func(ctx context.Context, value string) error { return ownerError(prolong(ctx, value)) },
		}
	}
}

// singleKey is a lock with one key, of the lock's name.
func singleKey(key string) []string { return []string{key} }

// beside is a key of the same slot as the lock's.
func beside(key, name string) string { return "{" + key + "}:" + name }

var (
	hashShape = shape{take: `
if redis.call("hsetnx", KEYS[1], "owner", ARGV[1]) == 1 then
	return redis.call("pexpire", KEYS[1], ARGV[2])
end
return redis.call("hget", KEYS[1], "owner") == ARGV[1] and 1 or 0`, give: `
if redis.call("hget", KEYS[1], "owner") ~= ARGV[1] then return 0 end
return redis.call("del", KEYS[1])`, prolong: `
if redis.call("hget", KEYS[1], "owner") ~= ARGV[1] then return 0 end
return redis.call("pexpire", KEYS[1], ARGV[2])`}

	setShape = shape{take: `
if redis.call("sismember", KEYS[1], ARGV[1]) == 1 then return 1 end
if redis.call("scard", KEYS[1]) > 0 then return 0 end
redis.call("sadd", KEYS[1], ARGV[1])
return redis.call("pexpire", KEYS[1], ARGV[2])`, give: `
return redis.call("srem", KEYS[1], ARGV[1])`, prolong: `
if redis.call("sismember", KEYS[1], ARGV[1]) == 0 then return 0 end
return redis.call("pexpire", KEYS[1], ARGV[2])`}

	// The score is when the permit ends, by the server's clock.
	semaphoreShape = shape{take: `
local now = redis.call("time")
local at = now[1] * 1000 + math.floor(now[2] / 1000)
redis.call("zremrangebyscore", KEYS[1], "-inf", at)
if redis.call("zscore", KEYS[1], ARGV[1]) then return 1 end
if redis.call("zcard", KEYS[1]) >= 1 then return 0 end
redis.call("zadd", KEYS[1], at + ARGV[2], ARGV[1])
return redis.call("pexpire", KEYS[1], ARGV[2])`, give: `
return redis.call("zrem", KEYS[1], ARGV[1])`, prolong: `
local now = redis.call("time")
local at = now[1] * 1000 + math.floor(now[2] / 1000)
redis.call("zremrangebyscore", KEYS[1], "-inf", at)
if not redis.call("zscore", KEYS[1], ARGV[1]) then return 0 end
redis.call("zadd", KEYS[1], at + ARGV[2], ARGV[1])
return redis.call("pexpire", KEYS[1], ARGV[2])`}

	// KEYS[1] counts to one, KEYS[2] says for whom.
	counterShape = shape{take: `
if redis.call("get", KEYS[2]) == ARGV[1] then return 1 end
if redis.call("exists", KEYS[1]) == 1 then return 0 end
redis.call("incr", KEYS[1])
redis.call("pexpire", KEYS[1], ARGV[2])
redis.call("set", KEYS[2], ARGV[1], "PX", ARGV[2])
return 1`, give: `
if redis.call("get", KEYS[2]) ~= ARGV[1] then return 0 end
redis.call("del", KEYS[1], KEYS[2])
return 1`, prolong: `
if redis.call("get", KEYS[2]) ~= ARGV[1] then return 0 end
redis.call("pexpire", KEYS[1], ARGV[2])
return redis.call("pexpire", KEYS[2], ARGV[2])`}

	// A lock for many readers or one writer, whose users here all write. Readers
	// would each add a field to the hash, whose mode is then read.
	writerShape = shape{take: `
local mode = redis.call("hget", KEYS[1], "mode")
if mode and (mode ~= "write" or redis.call("hexists", KEYS[1], ARGV[1]) == 0) then return 0 end
if not mode then
	redis.call("hset", KEYS[1], "mode", "write", ARGV[1], 1)
	redis.call("pexpire", KEYS[1], ARGV[2])
end
return 1`, give: `
if redis.call("hget", KEYS[1], "mode") ~= "write" or redis.call("hexists", KEYS[1], ARGV[1]) == 0 then return 0 end
return redis.call("del", KEYS[1])`, prolong: `
if redis.call("hexists", KEYS[1], ARGV[1]) == 0 then return 0 end
return redis.call("pexpire", KEYS[1], ARGV[2])`}
)

// soundShapes returns locks whose keys are of all types.
func soundShapes() []strategies.Strategy {
	counterKeys := func(key string) []string { return []string{key, beside(key, "owner")} }
	counter := defineProlonged("sound-incr", classLease, "INCR and PEXPIRE in a script that stores its owner in a second key", "common practice",
		counterShape.steps(counterKeys))
	counter.Keys = counterKeys
	counter.Owner = strategies.OwnerIsCreator // a counter names nobody
	return []strategies.Strategy{
		defineProlonged("sound-hsetnx", classLease, "HSETNX and PEXPIRE in one script; released by a script that compares", "common practice", hashShape.steps(singleKey)),
		defineProlonged("sound-sadd", classLease, "SADD to an empty set in a script; released by SREM of its own member", "common practice", setShape.steps(singleKey)),
		defineProlonged("sound-semaphore", classLease, "a semaphore of one: a sorted set of permits that end by the server's TIME", "common practice", semaphoreShape.steps(singleKey)),
		defineProlonged("sound-writer", classLease, "a lock for readers or a writer, used by writers", "Redisson's RedissonWriteLock, in outline", writerShape.steps(singleKey)),
		counter,
		numbered(),
		fencing(),
		reentrant(),
		written(),
		noted(),
	}
}

// numbered is a lock whose owner value the server puts together from the number of
// the grant, which is its fencing token, and the attempt's own. The number alone would
// not do: a counter that went back names two holders the same. Who lost the answer
// doesn't know its number, so its client library repeats nothing.
func numbered() strategies.Strategy {
	take := redis.NewScript(`
if redis.call("exists", KEYS[1]) == 1 then return 0 end
local number = redis.call("incr", KEYS[2])
redis.call("set", KEYS[1], number .. ":" .. ARGV[1], "PX", ARGV[2])
return number`)
	const name = "sound-numbered"
	s := describe(name, classFencing, "INCR in a script, whose number is the fencing token and a part of the owner value; released by a script that compares",
		"Kleppmann 2016", 1, strategies.TagFenced)
	s.New = func(env strategies.Env) (strategies.Lock, error) {
		if err := env.Check(name, 1); err != nil {
			return nil, err
		}
		client := unrepeated(env)
		l := &numberedLock{}
		l.stepped = stepped{env: env, steps: steps{
			take: func(ctx context.Context, value string) error {
				n, err := take.Run(ctx, client, []string{env.Key, beside(env.Key, "number")}, value, env.TTL.Milliseconds()).Int64()
				if err == nil && n > 0 {
					l.number = n
				}
				return won(n > 0, err)
			},
			give: func(ctx context.Context, value string) error {
				return ownerError(giveOwn.Run(ctx, client, []string{env.Key}, fmt.Sprintf("%d:%s", l.number, value)).Int64())
			},
			close: client,
		}}
		return l, nil
	}
	return s
}

type numberedLock struct {
	stepped
	number int64
}

func (l *numberedLock) Token() int64 { return l.number }

// fencing draws its token in the step that grants, and tells whoever asks twice
// the token that it has.
func fencing() strategies.Strategy {
	take := redis.NewScript(`
local owner = redis.call("hget", KEYS[1], "owner")
if not owner then
	local token = redis.call("incr", KEYS[2])
	redis.call("hset", KEYS[1], "owner", ARGV[1], "token", token)
	redis.call("pexpire", KEYS[1], ARGV[2])
	return token
elseif owner ~= ARGV[1] then
	return 0
end
return tonumber(redis.call("hget", KEYS[1], "token"))`)
	const name = "sound-fencing"
	s := describe(name, classFencing, "a hash of owner and fencing token, set in the script that draws the token; released by a script that compares",
		"Kleppmann 2016", 1, strategies.TagFenced, strategies.TagExtending)
	s.Owner = func(c strategies.Change) (string, bool) {
		words := c.After[0].Words
		for i := 0; i+1 < len(words); i += 2 {
			if words[i] == "owner" {
				client := c.Wrote(words[i+1])
				return client, client != ""
			}
		}
		return "", !c.After[0].Exists()
	}
	s.New = func(env strategies.Env) (strategies.Lock, error) {
		if err := env.Check(name, 1); err != nil {
			return nil, err
		}
		l := &fencedLock{}
		l.stepped = stepped{env: env, steps: hashShape.steps(singleKey)(env)}
		l.steps.take = func(ctx context.Context, value string) error {
			n, err := take.Run(ctx, env.Nodes[0], []string{env.Key, beside(env.Key, "token")}, value, env.TTL.Milliseconds()).Int64()
			if err == nil && n > 0 {
				l.token = n
			}
			return won(n > 0, err)
		}
		return l, nil
	}
	return s
}

type fencedLock struct {
	prolonged
	token int64
}

func (l *fencedLock) Token() int64 { return l.token }

// reentrant counts on the server how often its holder has it. Each request has a
// number of its own, so that one that is sent twice counts once.
func reentrant() strategies.Strategy {
	enter := redis.NewScript(`
local owner = redis.call("hget", KEYS[1], "owner")
if owner and owner ~= ARGV[1] then return 0 end
if redis.call("hget", KEYS[1], "request") == ARGV[3] then return 1 end
redis.call("hset", KEYS[1], "owner", ARGV[1], "request", ARGV[3])
redis.call("hincrby", KEYS[1], "count", 1)
redis.call("pexpire", KEYS[1], ARGV[2])
return 1`)
	leave := redis.NewScript(`
if redis.call("hget", KEYS[1], "owner") ~= ARGV[1] then return 0 end
if redis.call("hget", KEYS[1], "request") == ARGV[2] then return 1 end
if redis.call("hincrby", KEYS[1], "count", -1) > 0 then
	redis.call("hset", KEYS[1], "request", ARGV[2])
else
	redis.call("del", KEYS[1])
end
return 1`)
	const name = "sound-reentrant"
	s := describe(name, classReentrant, "a hash of owner, count and latest request, in scripts that count a request once", "Redisson's RedissonLock, in outline", 1, strategies.TagExtending)
	s.New = func(env strategies.Env) (strategies.Lock, error) {
		if err := env.Check(name, 1); err != nil {
			return nil, err
		}
		owner := newValue(env)
		return &prolonged{stepped{env: env, steps: steps{
			take: func(ctx context.Context, request string) error {
				return asked(ctx, env.Nodes[0], enter, singleKey(env.Key), owner, env.TTL.Milliseconds(), request)
			},
			give: func(ctx context.Context, _ string) error {
				return ownerError(leave.Run(ctx, env.Nodes[0], singleKey(env.Key), owner, newValue(env)).Int64())
			},
			prolong: func(ctx context.Context, _ string) error {
				return hashShape.steps(singleKey)(env).prolong(ctx, owner)
			},
		}}}, nil
	}
	return s
}
