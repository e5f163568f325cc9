package main

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/rueidis"

	"github.com/lockfault/lockfault/strategies"
)

// faultyBuilds are locks of something else than a string with a value.
func faultyBuilds() []strategies.Strategy {
	return []strategies.Strategy{
		incr(), counter(), bit(), appended(),
		hashHost(), hashReentrant(), hashApart(), hashBlind(),
		members(), tokenLost(), tokenTwice(), listQueue(), sortedQueue(),
	}
}

// incr has the lock if it was the first to count.
func incr() strategies.Strategy {
	s := specimen("faulty-incr", "INCR without any lease", []string{strategies.TagPlainDel}, func(env strategies.Env) strategies.Lock {
		l := newPlain(env)
		return polled{
			attempt: func(ctx context.Context) error {
				n, err := l.db.Incr(ctx, l.key).Result()
				return won(n == 1, err)
			},
			release: func(ctx context.Context) error { return ownerError(l.db.Del(ctx, l.key).Result()) },
		}
	})
	s.Owner = strategies.OwnerIsCreator
	return s
}

// countUp counts, gives the first a lease, and counts others down again.
var countUp = redis.NewScript(`
local n = redis.call("incr", KEYS[1])
if n == 1 then
	redis.call("pexpire", KEYS[1], ARGV[1])
else
	redis.call("decr", KEYS[1])
end
return n`)

// counter counts those who want the lock up and down.
func counter() strategies.Strategy {
	s := specimen("faulty-counter", "its release counts down though its lease may be over, and the count is wrong from then on", nil,
		func(env strategies.Env) strategies.Lock {
			l := newPlain(env)
			return polled{
				attempt: func(ctx context.Context) error {
					n, err := countUp.Run(ctx, l.db, []string{l.key}, l.ms()).Int64()
					return won(n == 1, err)
				},
				release: func(ctx context.Context) error { return l.db.Decr(ctx, l.key).Err() },
			}
		})
	// Whoever counts to one has it until it is counted down to nothing.
	s.Owner = func(c strategies.Change) (client string, known bool) {
		if n := number(c.After[0]); n <= 0 {
			return "", true
		} else if n == 1 && number(c.Before[0]) <= 0 {
			return c.Client, c.Client != ""
		}
		return c.Owner, c.Owner != ""
	}
	return s
}

// number reads a counter.
func number(k strategies.Key) int {
	if !k.Exists() || len(k.Words) == 0 {
		return 0
	}
	n, _ := strconv.Atoi(k.Words[0])
	return n
}

var setBit = redis.NewScript(`
local before = redis.call("setbit", KEYS[1], 0, 1)
if before == 0 then
	redis.call("pexpire", KEYS[1], ARGV[1])
end
return before`)

// bit is a lock in a bit.
func bit() strategies.Strategy {
	s := specimen("faulty-bit", "its release clears the bit, whoever has set it", nil, func(env strategies.Env) strategies.Lock {
		l := newPlain(env)
		return polled{
			attempt: func(ctx context.Context) error {
				before, err := setBit.Run(ctx, l.db, []string{l.key}, l.ms()).Int64()
				return won(before == 0, err)
			},
			release: func(ctx context.Context) error { return ownerError(l.db.SetBit(ctx, l.key, 0, 0).Result()) },
		}
	})
	set := func(k strategies.Key) bool { return k.Exists() && len(k.Words) > 0 && k.Words[0][0]&0x80 != 0 }
	s.Owner = func(c strategies.Change) (client string, known bool) {
		switch {
		case !set(c.After[0]):
			return "", true
		case set(c.Before[0]):
			return c.Owner, c.Owner != ""
		}
		return c.Client, c.Client != ""
	}
	return s
}

var appendTo = redis.NewScript(`
local n = redis.call("append", KEYS[1], ARGV[1])
if n == #ARGV[1] then
	redis.call("pexpire", KEYS[1], ARGV[2])
end
return n`)

// appended has the lock if its own word is all that the key holds.
func appended() strategies.Strategy {
	s := specimen("faulty-append", "each attempt appends its name, and one that came second leaves it there, so the first can't find its own value again", nil,
		func(env strategies.Env) strategies.Lock {
			l := newPlain(env)
			return polled{
				attempt: func(ctx context.Context) error {
					l.value = env.Owner
					n, err := appendTo.Run(ctx, l.db, []string{l.key}, l.value, l.ms()).Int64()
					return won(n == int64(len(l.value)), err)
				},
				release: l.free,
			}
		})
	s.Owner = strategies.OwnerIsCreator // whoever wrote first
	return s
}

// hashed returns a lock in a hash: taken by a script if there is none.
func hashed(name, bug string, release func(context.Context, *plain) error) strategies.Strategy {
	take := redis.NewScript(`
if redis.call("exists", KEYS[1]) == 1 then
	return 0
end
redis.call("hset", KEYS[1], "owner", ARGV[1], "host", "web")
redis.call("pexpire", KEYS[1], ARGV[2])
return 1`)
	return specimen(name, bug, nil, func(env strategies.Env) strategies.Lock {
		l := newPlain(env)
		return polled{
			attempt: func(ctx context.Context) error {
				value := newValue(env)
				n, err := take.Run(ctx, l.db, []string{l.key}, value, l.ms()).Int64()
				if n == 1 || err != nil {
					l.value = value
				}
				return won(n == 1, err)
			},
			release: func(ctx context.Context) error { return release(ctx, l) },
		}
	})
}

func hashHost() strategies.Strategy {
	free := redis.NewScript(`if redis.call("hget", KEYS[1], "host") == ARGV[1] then return redis.call("del", KEYS[1]) end return 0`)
	return hashed("faulty-wrong-field", "its release compares the host, which all clients have in common, and not the owner",
		func(ctx context.Context, l *plain) error {
			return ownerError(free.Run(ctx, l.db, []string{l.key}, "web").Int64())
		})
}

func hashBlind() strategies.Strategy {
	return hashed("faulty-hdel", "its release deletes the hash's fields, whatever they say",
		func(ctx context.Context, l *plain) error {
			return ownerError(l.db.HDel(ctx, l.key, "owner", "host").Result())
		})
}

func hashApart() strategies.Strategy {
	free := redis.NewScript(`if redis.call("hget", KEYS[1], "owner") == ARGV[1] then return redis.call("del", KEYS[1]) end return 0`)
	return specimen("faulty-hsetnx", "HSETNX and PEXPIRE are two commands, and a client that dies between them leaves no lease", nil,
		func(env strategies.Env) strategies.Lock {
			l := newPlain(env)
			return polled{
				attempt: func(ctx context.Context) error {
					value := newValue(env)
					ok, err := l.db.HSetNX(ctx, l.key, "owner", value).Result()
					if err != nil || !ok {
						return won(ok, err)
					}
					l.value = value
					return l.db.PExpire(ctx, l.key, env.TTL).Err()
				},
				release: func(ctx context.Context) error {
					return ownerError(free.Run(ctx, l.db, []string{l.key}, l.value).Int64())
				},
			}
		})
}

// hashReentrant counts in a field for each client, and forgets the count at the end.
func hashReentrant() strategies.Strategy {
	take := redis.NewScript(`
if redis.call("exists", KEYS[1]) == 0 or redis.call("hexists", KEYS[1], ARGV[1]) == 1 then
	redis.call("hincrby", KEYS[1], ARGV[1], 1)
	redis.call("pexpire", KEYS[1], ARGV[2])
	return 1
end
return 0`)
	return specimen("faulty-hincrby", "it counts how often its holder came in, and its first release deletes the count", nil,
		func(env strategies.Env) strategies.Lock {
			l := newPlain(env)
			return polled{
				attempt: func(ctx context.Context) error {
					n, err := take.Run(ctx, l.db, []string{l.key}, env.Owner, l.ms()).Int64()
					return won(n == 1, err)
				},
				release: func(ctx context.Context) error { return ownerError(l.db.HDel(ctx, l.key, env.Owner).Result()) },
			}
		})
}

// members is a set of which the only member has the lock.
func members() strategies.Strategy {
	s := specimen("faulty-members", "each attempt gives the set a new lease, so those who wait keep a dead holder's alive", nil,
		func(env strategies.Env) strategies.Lock {
			l := newPlain(env)
			return polled{
				attempt: func(ctx context.Context) error {
					var others *redis.IntCmd
					_, err := l.db.TxPipelined(ctx, func(pipe redis.Pipeliner) error {
						pipe.SAdd(ctx, l.key, env.Owner)
						pipe.PExpire(ctx, l.key, env.TTL)
						others = pipe.SCard(ctx, l.key)
						return nil
					})
					if err != nil || others.Val() == 1 {
						return err
					}
					return won(false, l.db.SRem(ctx, l.key, env.Owner).Err())
				},
				release: func(ctx context.Context) error { return ownerError(l.db.SRem(ctx, l.key, env.Owner).Result()) },
			}
		})
	// Whoever is alone has it, and keeps it while others come and go.
	s.Owner = func(c strategies.Change) (client string, known bool) {
		words := c.After[0].Words
		switch {
		case len(words) == 0:
			return "", true
		case len(words) == 1:
			client = c.Wrote(words[0])
			return client, client != ""
		}
		for _, word := range words {
			if c.Wrote(word) == c.Owner && c.Owner != "" {
				return c.Owner, true
			}
		}
		return "", false
	}
	return s
}

// popped reads a list whose only element is free for the taking.
func popped(c strategies.Change) (client string, known bool) {
	switch {
	case c.After[0].Exists():
		return "", true
	case c.Before[0].Exists():
		return c.Client, c.Client != ""
	}
	return c.Owner, c.Owner != ""
}

// supply pushes the token once in the life of the servers.
var supply = redis.NewScript(`
if redis.call("set", KEYS[2], "made", "NX") then
	redis.call("rpush", KEYS[1], "token")
end
return 1`)

// tokenLost is on rueidis.
func tokenLost() strategies.Strategy {
	supply := rueidis.NewLuaScript(`
if redis.call("set", KEYS[2], "made", "NX") then
	redis.call("rpush", KEYS[1], "token")
end
return 1`)
	s := rueidisSpecimen("faulty-token-lost", "who has the lock has taken its token from a list, and nobody replaces one that is lost", nil,
		func(env strategies.Env, db rueidis.Client) polled {
			pop := func(ctx context.Context, wait time.Duration) error {
				if err := supply.Exec(ctx, db, []string{env.Key, env.Key + ":made"}, nil).Error(); err != nil {
					return err
				}
				return taken(db.Do(ctx, db.B().Blpop().Key(env.Key).Timeout(wait.Seconds()).Build()).Error())
			}
			return polled{
				attempt: func(ctx context.Context) error { return pop(ctx, pause) },
				release: func(ctx context.Context) error {
					return db.Do(ctx, db.B().Lpush().Key(env.Key).Element("token").Build()).Error()
				},
			}
		})
	s.Owner = popped
	return s
}

func tokenTwice() strategies.Strategy {
	s := specimen("faulty-token-twice", "each release puts a token into the list, and two of them let two clients in", nil,
		func(env strategies.Env) strategies.Lock {
			l := newPlain(env)
			return polled{
				attempt: func(ctx context.Context) error {
					if err := supply.Run(ctx, l.db, []string{l.key, l.key + ":made"}).Err(); err != nil {
						return err
					}
					return won(true, l.db.LPop(ctx, l.key).Err())
				},
				release: func(ctx context.Context) error { return l.db.RPush(ctx, l.key, "token").Err() },
			}
		})
	s.Owner = popped
	return s
}

// listQueue lets in whoever is first in a list.
func listQueue() strategies.Strategy {
	join := redis.NewScript(`
if not redis.call("lpos", KEYS[1], ARGV[1]) then
	redis.call("rpush", KEYS[1], ARGV[1])
end
if redis.call("lindex", KEYS[1], 0) == ARGV[1] then
	redis.call("pexpire", KEYS[1], ARGV[2])
	return 1
end
return 0`)
	s := specimen("faulty-list-queue", "its release takes out whoever is first in the queue", nil, func(env strategies.Env) strategies.Lock {
		return &queued{newPlain(env), func(ctx context.Context, l *plain) error {
			n, err := join.Run(ctx, l.db, []string{l.key}, env.Owner, l.ms()).Int64()
			return won(n == 1, err)
		}, func(ctx context.Context, l *plain) error {
			return l.db.LRem(ctx, l.key, 0, env.Owner).Err()
		}, func(ctx context.Context, l *plain) error {
			err := l.db.LPop(ctx, l.key).Err()
			if errors.Is(err, redis.Nil) {
				return strategies.ErrNotHeld
			}
			return err
		}}
	})
	s.Owner = first
	return s
}

// first reads a queue whose first element has the lock.
func first(c strategies.Change) (client string, known bool) {
	if !c.After[0].Exists() {
		return "", true
	}
	client = c.Wrote(c.After[0].Words[0])
	return client, client != ""
}

// sortedQueue lets in whoever is first by the clock.
func sortedQueue() strategies.Strategy {
	s := specimen("faulty-zset-queue", "it throws out of its queue whoever came a lease ago by its own clock", nil, func(env strategies.Env) strategies.Lock {
		return &queued{newPlain(env), func(ctx context.Context, l *plain) error {
			now := env.Now().UnixMilli()
			var line *redis.StringSliceCmd
			_, err := l.db.TxPipelined(ctx, func(pipe redis.Pipeliner) error {
				pipe.ZRemRangeByScore(ctx, l.key, "-inf", strconv.FormatInt(now-l.ms(), 10))
				pipe.ZAddNX(ctx, l.key, redis.Z{Score: float64(now), Member: env.Owner})
				line = pipe.ZRange(ctx, l.key, 0, -1)
				return nil
			})
			if err != nil {
				return err
			}
			return won(slices.Index(line.Val(), env.Owner) == 0, nil)
		}, func(ctx context.Context, l *plain) error {
			return l.db.ZRem(ctx, l.key, env.Owner).Err()
		}, func(ctx context.Context, l *plain) error {
			return ownerError(l.db.ZRem(ctx, l.key, env.Owner).Result())
		}}
	})
	s.Owner = first
	return s
}

// queued is a lock in whose queue one stays while one waits.
type queued struct {
	*plain
	join, leave, free func(context.Context, *plain) error
}

func (l *queued) Acquire(ctx context.Context) error {
	return l.end(ctx, poll(ctx, func() error { return l.join(ctx, l.plain) }))
}

func (l *queued) TryAcquire(ctx context.Context) error { return l.end(ctx, l.join(ctx, l.plain)) }

// end leaves the queue if its client didn't get to the front.
func (l *queued) end(ctx context.Context, err error) error {
	if errors.Is(err, strategies.ErrNotAcquired) {
		if left := l.leave(context.WithoutCancel(ctx), l.plain); left != nil {
			return left
		}
	}
	return err
}

func (l *queued) Release(ctx context.Context) error { return l.free(ctx, l.plain) }
