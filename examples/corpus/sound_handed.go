package main

import (
	"context"
	"errors"

	"github.com/redis/go-redis/v9"

	"github.com/lockfault/lockfault/strategies"
)

// handover is a lock that a release gives to the next in line, whose lease begins
// then: its client finds out when it asks. It has nobody's name in its key but
// through another's command.
func handover() strategies.Strategy {
	// next gives KEYS[1] to the first of the list KEYS[2] who is still there.
	const next = `
redis.call("del", KEYS[1])
local first = redis.call("lpop", KEYS[2])
while first do
	if redis.call("del", KEYS[2] .. ":" .. first) == 1 then
		redis.call("set", KEYS[1], first, "PX", ARGV[2])
		return 1
	end
	first = redis.call("lpop", KEYS[2])
end
return 1`
	ask := redis.NewScript(`
local owner = redis.call("get", KEYS[1])
if owner == ARGV[1] then return 1 end
if not owner then
	redis.call("set", KEYS[1], ARGV[1], "PX", ARGV[2])
	redis.call("lrem", KEYS[2], 0, ARGV[1])
	redis.call("del", KEYS[2] .. ":" .. ARGV[1])
	return 1
end
if ARGV[3] ~= "0" then
	if redis.call("exists", KEYS[2] .. ":" .. ARGV[1]) == 0 then
		redis.call("lrem", KEYS[2], 0, ARGV[1])
		redis.call("rpush", KEYS[2], ARGV[1])
	end
	redis.call("set", KEYS[2] .. ":" .. ARGV[1], "1", "PX", ARGV[3])
end
return 0`)
	give := redis.NewScript(`
if redis.call("get", KEYS[1]) ~= ARGV[1] then return 0 end` + next)
	// leave takes the value out of the line, and hands on what it was given meanwhile.
	leave := redis.NewScript(`
redis.call("lrem", KEYS[2], 0, ARGV[1])
redis.call("del", KEYS[2] .. ":" .. ARGV[1])
if redis.call("get", KEYS[1]) ~= ARGV[1] then return 0 end` + next)

	const name = "sound-handed"
	s := describe(name, classQueue, "a release sets the key to the next in line, who finds out by asking", "common practice", 1, strategies.TagExtending)
	s.New = func(env strategies.Env) (strategies.Lock, error) {
		if err := env.Check(name, 1); err != nil {
			return nil, err
		}
		client := unrepeated(env)
		keys := []string{env.Key, beside(env.Key, "handed")}
		l := &handedLock{leave: leave, client: client, keys: keys}
		l.stepped = stepped{env: env, steps: scripted(client, env.Key, env.TTL)}
		l.asking = func(ctx context.Context, value string, place int64) error {
			return asked(ctx, client, ask, keys, value, env.TTL.Milliseconds(), place)
		}
		l.steps.take = func(ctx context.Context, value string) error { return l.asking(ctx, value, 0) }
		l.steps.give = func(ctx context.Context, value string) error {
			return ownerError(give.Run(ctx, client, keys, value, env.TTL.Milliseconds()).Int64())
		}
		l.steps.close = client
		return l, nil
	}
	return s
}

type handedLock struct {
	prolonged
	leave  *redis.Script
	client *redis.Client
	keys   []string
	asking func(ctx context.Context, value string, place int64) error // place: how long one is kept, in milliseconds
}

func (l *handedLock) Acquire(ctx context.Context) error {
	value := newValue(l.env)
	err := poll(ctx, func() error { return l.asking(ctx, value, (10 * pause).Milliseconds()) })
	if errors.Is(err, strategies.ErrNotAcquired) {
		if err := l.leave.Run(context.WithoutCancel(ctx), l.client, l.keys, value, l.env.TTL.Milliseconds()).Err(); err != nil {
			return err
		}
	}
	return l.note(value, err)
}

// written is a lock whose key has no time to live: until when the lease runs is
// written in it, by the server's clock, and who comes later takes it over. A release
// leaves the key, with nobody in it, and the number of the last grant, which is the
// fencing token.
func written() strategies.Strategy {
	const at = `
local t = redis.call("time")
local now = t[1] * 1000 + math.floor(t[2] / 1000)
local owner, till = redis.call("hget", KEYS[1], "owner"), tonumber(redis.call("hget", KEYS[1], "until") or 0)
local mine = owner == ARGV[1] and till > now`
	take := redis.NewScript(at + `
if not mine then
	if owner and owner ~= "" and till > now then return 0 end
	redis.call("hset", KEYS[1], "owner", ARGV[1], "until", now + ARGV[2])
	redis.call("hincrby", KEYS[1], "number", 1)
end
return tonumber(redis.call("hget", KEYS[1], "number"))`)
	give := redis.NewScript(at + `
if not mine then return 0 end
redis.call("hset", KEYS[1], "owner", "", "until", 0)
return 1`)
	prolong := redis.NewScript(at + `
if not mine then return 0 end
redis.call("hset", KEYS[1], "until", now + ARGV[2])
return 1`)

	const name = "sound-written"
	s := describe(name, classFencing, "a hash that stays, of owner, end of the lease by the server's TIME, and number of the grant, which is the token", "common practice",
		1, strategies.TagFenced, strategies.TagExtending)
	s.Owner = func(c strategies.Change) (string, bool) {
		words := c.After[0].Words
		for i := 0; i+1 < len(words); i += 2 {
			if words[i] == "owner" {
				if words[i+1] == "" {
					return "", true
				}
				client := c.Wrote(words[i+1])
				return client, client != ""
			}
		}
		return "", true
	}
	s.New = func(env strategies.Env) (strategies.Lock, error) {
		if err := env.Check(name, 1); err != nil {
			return nil, err
		}
		l := &fencedLock{}
		run := func(ctx context.Context, script *redis.Script, value string) (int64, error) {
			return script.Run(ctx, env.Nodes[0], singleKey(env.Key), value, env.TTL.Milliseconds()).Int64()
		}
		l.stepped = stepped{env: env, steps: steps{
			take: func(ctx context.Context, value string) error {
				n, err := run(ctx, take, value)
				if err == nil && n > 0 {
					l.token = n
				}
				return won(n > 0, err)
			},
			give:    func(ctx context.Context, value string) error { return ownerError(run(ctx, give, value)) },
			prolong: func(ctx context.Context, value string) error { return ownerError(run(ctx, prolong, value)) },
		}}
		return l, nil
	}
	return s
}

// noted is a lock whose value is a text that each renewal writes anew: who has it,
// how often it was prolonged.
func noted() strategies.Strategy {
	shape := shape{take: `
local text = redis.call("get", KEYS[1])
if text then return cjson.decode(text).owner == ARGV[1] and 1 or 0 end
redis.call("set", KEYS[1], cjson.encode({owner = ARGV[1], times = 0}), "PX", ARGV[2])
return 1`, give: `
local text = redis.call("get", KEYS[1])
if not text or cjson.decode(text).owner ~= ARGV[1] then return 0 end
return redis.call("del", KEYS[1])`, prolong: `
local text = redis.call("get", KEYS[1])
local note = text and cjson.decode(text)
if not note or note.owner ~= ARGV[1] then return 0 end
note.times = note.times + 1
redis.call("set", KEYS[1], cjson.encode(note), "PX", ARGV[2])
return 1`}
	return defineProlonged("sound-noted", classLease, "a text in JSON that scripts read and write, anew with each extend", "common practice", shape.steps(singleKey))
}
