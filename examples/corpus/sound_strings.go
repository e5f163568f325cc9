package main

import (
	"context"
	"errors"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/lockfault/lockfault/strategies"
)

// The scripts of locks whose key is a string that names the attempt.
var (
	// takeOnce sets KEYS[1] to ARGV[1] for ARGV[2] milliseconds if it doesn't
	// exist. Sent twice it finds its own value, and says yes again.
	takeOnce = redis.NewScript(`
local value = redis.call("get", KEYS[1])
if not value then
	redis.call("set", KEYS[1], ARGV[1], "PX", ARGV[2])
elseif value ~= ARGV[1] then
	return 0
end
return 1`)

	giveOwn = redis.NewScript(`
if redis.call("get", KEYS[1]) ~= ARGV[1] then
	return 0
end
return redis.call("del", KEYS[1])`)

	prolongOwn = redis.NewScript(`
if redis.call("get", KEYS[1]) ~= ARGV[1] then
	return 0
end
return redis.call("pexpire", KEYS[1], ARGV[2])`)
)

// asked runs a script that takes the lock and answers whether it did.
func asked(ctx context.Context, client redis.Scripter, script *redis.Script, keys []string, args ...any) error {
	n, err := script.Run(ctx, client, keys, args...).Int64()
	return won(n == 1, err)
}

// scripted is the lock on a string key by scripts alone.
func scripted(client redis.UniversalClient, key string, ttl time.Duration) steps {
	return steps{
		take: func(ctx context.Context, value string) error {
			return asked(ctx, client, takeOnce, []string{key}, value, ttl.Milliseconds())
		},
		give: func(ctx context.Context, value string) error {
			return ownerError(giveOwn.Run(ctx, client, []string{key}, value).Int64())
		},
		prolong: func(ctx context.Context, value string) error {
			return ownerError(prolongOwn.Run(ctx, client, []string{key}, value, ttl.Milliseconds()).Int64())
		},
	}
}

// setNX sends SET NX PX. The library may have sent it twice, and the second is
// refused because of the first: who is refused asks whose the key is.
func setNX(ctx context.Context, client redis.UniversalClient, key, value string, ttl time.Duration) error {
	err := client.Do(ctx, "SET", key, value, "NX", "PX", ttl.Milliseconds()).Err()
	if !errors.Is(err, redis.Nil) {
		return err
	}
	is, err := client.Get(ctx, key).Result()
	return won(is == value, err)
}

// prefixed is where a lock lives that has its keys in a folder of its own.
func prefixed(key string) string { return "app:locks:{" + key + "}" }

func soundStrings() []strategies.Strategy {
	elsewhere := defineProlonged("sound-prefix", classLease, "a string by scripts, under a key with a prefix and a hash tag", "common practice",
		func(env strategies.Env) steps { return scripted(env.Nodes[0], prefixed(env.Key), env.TTL) })
	elsewhere.Keys = func(key string) []string { return []string{prefixed(key)} }

	return []strategies.Strategy{
		defineProlonged("sound-set-nx-px", classLease, "SET NX PX, and GET if it is refused; released and prolonged by scripts that compare",
			"Redis documentation (SET)", func(env strategies.Env) steps {
				s := scripted(env.Nodes[0], env.Key, env.TTL)
				s.take = func(ctx context.Context, value string) error {
					return setNX(ctx, env.Nodes[0], env.Key, value, env.TTL)
				}
				return s
			}),
		define("sound-set-get", classLease, "SET NX PX GET, whose answer says whose the lock is; released by a script that compares",
			"Redis documentation (SET, the option GET)", func(env strategies.Env) steps {
				s := scripted(env.Nodes[0], env.Key, env.TTL)
				s.take = func(ctx context.Context, value string) error {
					was, err := env.Nodes[0].Do(ctx, "SET", env.Key, value, "NX", "GET", "PX", env.TTL.Milliseconds()).Text()
					if errors.Is(err, redis.Nil) {
						return nil // there was nothing
					}
					return won(was == value, err)
				}
				return s
			}),
		elsewhere,
		define("sound-forever", classForever, "SETNX without a lease; released by WATCH, GET, MULTI, EXEC",
			"Redis documentation (SETNX)", func(env strategies.Env) steps {
				s := watching(env)
				s.take = func(ctx context.Context, value string) error {
					return won(s.client.Do(ctx, "SETNX", env.Key, value).Bool())
				}
				return s.steps
			}),
		defineProlonged("sound-two-phase", classLease, "SET NX PX for a quarter of the lease, prolonged to all of it by whoever gets the answer",
			"common practice", func(env strategies.Env) steps {
				s := scripted(env.Nodes[0], env.Key, env.TTL)
				s.take = func(ctx context.Context, value string) error {
					if err := setNX(ctx, env.Nodes[0], env.Key, value, env.TTL/4); err != nil {
						return err
					}
					if err := s.prolong(ctx, value); !errors.Is(err, strategies.ErrNotHeld) {
						return err
					}
					return strategies.ErrNotAcquired // the quarter was over
				}
				return s
			}),
		defineProlonged("sound-multi", classLease, "SETNX and PEXPIRE NX in a transaction; released and prolonged by scripts that compare",
			"common practice", func(env strategies.Env) steps {
				s := scripted(env.Nodes[0], env.Key, env.TTL)
				s.take = func(ctx context.Context, value string) error {
					tx := env.Nodes[0].TxPipeline()
					tx.Do(ctx, "SETNX", env.Key, value)
					tx.Do(ctx, "PEXPIRE", env.Key, env.TTL.Milliseconds(), "NX") // a loser prolongs nothing
					is := tx.Get(ctx, env.Key)
					_, err := tx.Exec(ctx)
					return won(is.Val() == value, err)
				}
				return s
			}),
		defineProlonged("sound-watch", classLease, "WATCH, EXISTS, MULTI, SET PX, EXEC; released in the same way", "Redis documentation (Transactions)", optimistic),
		defineProlonged("sound-wait", classReplicas, "a script and WAIT for a majority of the servers; released by a script that compares",
			"Redis documentation (WAIT)", func(env strategies.Env) steps {
				s := scripted(env.Nodes[0], env.Key, env.TTL)
				s.take = func(ctx context.Context, value string) error { return takeConfirmed(ctx, env, s.give, value) }
				return s
			}),
	}
}

// takeConfirmed relies on the lock when so many replicas have it that, with the
// primary, they are a majority. What they don't confirm in time it gives back.
func takeConfirmed(ctx context.Context, env strategies.Env, give func(context.Context, string) error, value string) error {
	needed := int64(env.Replicas+1) / 2
	pipe := env.Nodes[0].Pipeline() // WAIT is about the writes of its own connection
	took := takeOnce.Eval(ctx, pipe, []string{env.Key}, value, env.TTL.Milliseconds())
	waited := pipe.Do(ctx, "WAIT", needed, min(100*time.Millisecond, env.TTL/10).Milliseconds())
	_, _ = pipe.Exec(ctx) // each command has its own error
	n, err := took.Int64()
	if err := won(n == 1, err); err != nil {
		return err
	}
	confirmed, err := waited.Int64()
	if err != nil || confirmed >= needed {
		return err
	}
	if err := give(ctx, value); err != nil && !errors.Is(err, strategies.ErrNotHeld) {
		return err
	}
	return strategies.ErrNotAcquired
}

// optimistic takes the lock if nobody does so between a look and the deed.
func optimistic(env strategies.Env) steps {
	s := watching(env)
	s.take = func(ctx context.Context, value string) error {
		err := s.client.Watch(ctx, func(tx *redis.Tx) error {
			n, err := tx.Exists(ctx, env.Key).Result()
			if err := won(n == 0, err); err != nil {
				return err
			}
			_, err = tx.TxPipelined(ctx, func(p redis.Pipeliner) error {
				p.Do(ctx, "SET", env.Key, value, "PX", env.TTL.Milliseconds())
				return nil
			})
			return err
		}, env.Key)
		if errors.Is(err, redis.TxFailedErr) {
			return strategies.ErrNotAcquired
		}
		return err
	}
	return s.steps
}
