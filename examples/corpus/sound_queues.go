package main

import (
	"context"
	"errors"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/lockfault/lockfault/strategies"
)

// lined is a lock whose clients stand in line. Only the client itself takes the
// lock when it is first, so a place in line is never a lock that nobody knows of; who
// hasn't asked for some time has lost its place.
type lined struct {
	prolonged
	line, take, leave *redis.Script
	patience          time.Duration // how long a place is kept for somebody who doesn't ask
	keys              []string
}

func (l *lined) Acquire(ctx context.Context) error {
	value := newValue(l.env)
	err := poll(ctx, func() error { return l.ask(ctx, l.line, value) })
	if errors.Is(err, strategies.ErrNotAcquired) {
		if err := l.leave.Run(context.WithoutCancel(ctx), l.env.Nodes[0], l.keys, value).Err(); err != nil {
			return err
		}
	}
	return l.note(value, err)
}

// TryAcquire gets the lock if nobody has it and nobody waits.
func (l *lined) TryAcquire(ctx context.Context) error {
	value := newValue(l.env)
	return l.note(value, l.ask(ctx, l.take, value))
}

func (l *lined) ask(ctx context.Context, script *redis.Script, value string) error {
	return asked(ctx, l.env.Nodes[0], script, l.keys, value, l.env.TTL.Milliseconds(), l.patience.Milliseconds())
}

// A line is how clients wait: beginnings of scripts to which KEYS[1] is the lock,
// ARGV[1] the attempt's value, ARGV[3] how long a place is kept.
type line struct {
	// first sets a local first to the first in line, false if there is none, having
	// removed who gave up.
	first string
	// join puts the value in line, or renews its place; leave takes it out.
	join, leave string
}

const granted = `
local owner = redis.call("get", KEYS[1])
if owner then return owner == ARGV[1] and 1 or 0 end
if first and first ~= ARGV[1] then return 0 end
redis.call("set", KEYS[1], ARGV[1], "PX", ARGV[2])`

func (q line) strategy(name, summary, source string, names ...string) strategies.Strategy {
	joining := redis.NewScript(`
if redis.call("get", KEYS[1]) == ARGV[1] then return 1 end` + q.join + q.first + granted + q.leave + `
return 1`)
	trying := redis.NewScript(q.first + granted + `
return 1`)
	leaving := redis.NewScript(q.leave + `
return 1`)
	s := describe(name, classQueue, summary, source, 1, strategies.TagExtending)
	s.New = func(env strategies.Env) (strategies.Lock, error) {
		if err := env.Check(name, 1); err != nil {
			return nil, err
		}
		keys := singleKey(env.Key)
		for _, name := range names {
			keys = append(keys, beside(env.Key, name))
		}
		return &lined{
			prolonged: prolonged{stepped{env: env, steps: scripted(env.Nodes[0], env.Key, env.TTL)}},
			line:      joining, take: trying, leave: leaving, keys: keys, patience: 10 * pause,
		}, nil
	}
	return s
}

// soundQueues returns locks that are granted in turn.
func soundQueues() []strategies.Strategy {
	// KEYS[2] is the line, in the order of arrival; KEYS[3] has until when each is
	// waited for, by the server's clock.
	sorted := line{first: `
local now = redis.call("time")
local at = now[1] * 1000 + math.floor(now[2] / 1000)
for _, gone in ipairs(redis.call("zrangebyscore", KEYS[3], "-inf", at)) do
	redis.call("zrem", KEYS[2], gone)
	redis.call("zrem", KEYS[3], gone)
end
local first = redis.call("zrange", KEYS[2], 0, 0)[1] or false`, join: `
local t = redis.call("time")
if not redis.call("zscore", KEYS[2], ARGV[1]) then
	redis.call("zadd", KEYS[2], t[1] * 1000000 + t[2], ARGV[1])
end
redis.call("zadd", KEYS[3], t[1] * 1000 + math.floor(t[2] / 1000) + ARGV[3], ARGV[1])`, leave: `
redis.call("zrem", KEYS[2], ARGV[1])
redis.call("zrem", KEYS[3], ARGV[1])`}

	// KEYS[2] is the line. Whoever waits renews a key of its own, which says that it
	// is still there.
	listed := line{first: `
local first = redis.call("lindex", KEYS[2], 0)
while first and first ~= ARGV[1] and redis.call("exists", KEYS[2] .. ":" .. first) == 0 do
	redis.call("lpop", KEYS[2])
	first = redis.call("lindex", KEYS[2], 0)
end`, join: `
if redis.call("exists", KEYS[2] .. ":" .. ARGV[1]) == 0 then
	redis.call("lrem", KEYS[2], 0, ARGV[1])
	redis.call("rpush", KEYS[2], ARGV[1])
end
redis.call("set", KEYS[2] .. ":" .. ARGV[1], "1", "PX", ARGV[3])`, leave: `
redis.call("lrem", KEYS[2], 0, ARGV[1])
redis.call("del", KEYS[2] .. ":" .. ARGV[1])`}

	return []strategies.Strategy{
		sorted.strategy("sound-zset-queue", "a sorted set of who waits, by the server's TIME, and a string of who has it, in one script",
			"Redisson's RedissonFairLock, in outline", "line", "until"),
		listed.strategy("sound-list-queue", "a list of who waits and a string of who has it, in one script", "common practice", "line"),
		waking(),
		handover(),
	}
}

// waking tells those who wait when it is released, and doesn't count on their
// hearing it: they ask again all the same, only less often.
func waking() strategies.Strategy {
	give := redis.NewScript(`
if redis.call("get", KEYS[1]) ~= ARGV[1] then return 0 end
redis.call("del", KEYS[1])
redis.call("publish", KEYS[2], "free")
return 1`)
	const name = "sound-pubsub"
	s := describe(name, classLease, "a string by scripts; its release is published, and who waits asks again without it, too", "common practice", 1)
	s.New = func(env strategies.Env) (strategies.Lock, error) {
		if err := env.Check(name, 1); err != nil {
			return nil, err
		}
		l := &wakingLock{stepped{env: env, steps: scripted(env.Nodes[0], env.Key, env.TTL)}}
		l.steps.give = func(ctx context.Context, value string) error {
			return ownerError(give.Run(ctx, env.Nodes[0], []string{env.Key, beside(env.Key, "free")}, value).Int64())
		}
		return l, nil
	}
	return s
}

type wakingLock struct{ stepped }

func (l *wakingLock) Acquire(ctx context.Context) error {
	value := newValue(l.env)
	err := l.steps.take(ctx, value)
	if !errors.Is(err, strategies.ErrNotAcquired) {
		return l.note(value, err)
	}
	news := l.env.Nodes[0].Subscribe(ctx, beside(l.env.Key, "free"))
	defer news.Close()
	heard := news.Channel(redis.WithChannelHealthCheckInterval(0))
	for {
		timer := time.NewTimer(3 * pause)
		select {
		case <-heard:
		case <-timer.C:
		case <-ctx.Done():
		}
		timer.Stop()
		if ctx.Err() != nil {
			return l.note(value, strategies.ErrNotAcquired)
		}
		if err := l.steps.take(ctx, value); !errors.Is(err, strategies.ErrNotAcquired) {
			return l.note(value, err)
		}
	}
}
