package main

import (
	"context"
	"errors"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/rueidis"

	"github.com/lockfault/lockfault/strategies"
)

// faultyAcquires are locks that are taken in the wrong way. Their releases are right.
func faultyAcquires() []strategies.Strategy {
	return []strategies.Strategy{
		acquired("faulty-exists-set", "it asks with EXISTS and takes with SET, and others come in between",
			func(ctx context.Context, l *plain) error {
				n, err := l.db.Exists(ctx, l.key).Result()
				if err != nil || n > 0 {
					return won(n == 0, err)
				}
				l.value = newValue(l.env)
				return l.db.Do(ctx, "SET", l.key, l.value, "PX", l.ms()).Err()
			}),
		getSet(),
		acquired("faulty-set-and-look", "it sets the key, whosever it is, and has the lock if it then reads its own value",
			func(ctx context.Context, l *plain) error {
				value := newValue(l.env)
				if err := l.db.Do(ctx, "SET", l.key, value, "PX", l.ms()).Err(); err != nil {
					return err
				}
				found, err := l.get(ctx)
				if err == nil && found == value {
					l.value = value
				}
				return won(found == value, err)
			}),
		acquired("faulty-watch-late", "it reads the key before it watches it, so its transaction guards nothing",
			func(ctx context.Context, l *plain) error {
				if found, err := l.get(ctx); err != nil || found != "" {
					return won(false, err)
				}
				value := newValue(l.env)
				err := l.db.Watch(ctx, func(tx *redis.Tx) error {
					_, err := tx.TxPipelined(ctx, func(pipe redis.Pipeliner) error {
						pipe.Do(ctx, "SET", l.key, value, "PX", l.ms())
						return nil
					})
					return err
				}, l.key)
				if errors.Is(err, redis.TxFailedErr) {
					return strategies.ErrNotAcquired
				}
				l.value = value
				return err
			}),
		acquired("faulty-no-lease", "SETNX without any lease",
			func(ctx context.Context, l *plain) error {
				l.value = newValue(l.env)
				return won(l.db.Do(ctx, "SETNX", l.key, l.value).Bool())
			}),
		acquired("faulty-expire-first", "its transaction sends PEXPIRE before SETNX, so its own key gets no lease, and others' get longer ones",
			func(ctx context.Context, l *plain) error {
				value := newValue(l.env)
				var set *redis.Cmd
				_, err := l.db.TxPipelined(ctx, func(pipe redis.Pipeliner) error {
					pipe.PExpire(ctx, l.key, l.env.TTL)
					set = pipe.Do(ctx, "SETNX", l.key, value)
					return nil
				})
				if err != nil {
					l.value = value
					return err
				}
				ok, err := set.Bool()
				if ok {
					l.value = value
				}
				return won(ok, err)
			}),
		acquired("faulty-expire-unchecked", "it doesn't look whether the PEXPIRE after its SETNX got through",
			func(ctx context.Context, l *plain) error {
				value := newValue(l.env)
				ok, err := l.db.Do(ctx, "SETNX", l.key, value).Bool()
				if err == nil && ok {
					l.value = value
					_ = l.db.PExpire(ctx, l.key, l.env.TTL).Err() // the bug
				}
				return won(ok, err)
			}),
		acquired("faulty-seconds-as-milliseconds", "it sends its lease in seconds as PX, which counts in milliseconds",
			leased("PX", func(ttl time.Duration) int64 { return max(1, int64(ttl.Seconds())) })),
		acquired("faulty-milliseconds-as-seconds", "it sends its lease in milliseconds as EX, which counts in seconds",
			leased("EX", time.Duration.Milliseconds)),
		acquired("faulty-whole-minutes", "it rounds its lease down to whole minutes, and none at all means no lease",
			func(ctx context.Context, l *plain) error {
				value := newValue(l.env)
				ok, err := l.db.SetNX(ctx, l.key, value, l.env.TTL.Truncate(time.Minute)).Result()
				if ok || err != nil {
					l.value = value
				}
				return won(ok, err)
			}),
		acquired("faulty-keepttl", "it takes with SET NX KEEPTTL, which keeps the time to live of a key that isn't there",
			func(ctx context.Context, l *plain) error {
				value := newValue(l.env)
				err := l.db.Do(ctx, "SET", l.key, value, "NX", "KEEPTTL").Err()
				if !errors.Is(err, redis.Nil) {
					l.value = value
				}
				return won(true, err)
			}),
		acquired("faulty-getex", "it looks with GETEX whether the key is there, and prolongs it for whom it finds",
			func(ctx context.Context, l *plain) error {
				err := l.db.GetEx(ctx, l.key, l.env.TTL).Err()
				if errors.Is(err, redis.Nil) {
					return l.take(ctx)
				}
				return won(false, err)
			}),
		acquired("faulty-set-xx", "it lets its holder in again with SET XX, and doesn't count how often",
			func(ctx context.Context, l *plain) error {
				err := l.take(ctx)
				if l.value == "" || !errors.Is(err, strategies.ErrNotAcquired) {
					return err
				}
				if found, err := l.get(ctx); err != nil || found != l.value {
					return won(false, err)
				}
				return won(true, l.db.Do(ctx, "SET", l.key, l.value, "XX", "PX", l.ms()).Err())
			}),
		remembered(),
	}
}

// acquired returns a lock like plain, but for its attempt.
func acquired(name, bug string, attempt func(context.Context, *plain) error) strategies.Strategy {
	return specimen(name, bug, nil, func(env strategies.Env) strategies.Lock {
		l := newPlain(env)
		return polled{func(ctx context.Context) error { return attempt(ctx, l) }, l.free}
	})
}

// leased returns the attempt of a lock that has its own opinion of units.
func leased(option string, count func(time.Duration) int64) func(context.Context, *plain) error {
	return func(ctx context.Context, l *plain) error {
		value := newValue(l.env)
		err := l.db.Do(ctx, "SET", l.key, value, "NX", option, count(l.env.TTL)).Err()
		if !errors.Is(err, redis.Nil) {
			l.value = value
		}
		return won(true, err)
	}
}

// getSet is on rueidis.
func getSet() strategies.Strategy {
	freed := rueidis.NewLuaScript(`if redis.call("get", KEYS[1]) == ARGV[1] then return redis.call("del", KEYS[1]) end return 0`)
	return rueidisSpecimen("faulty-get-set", "it asks with GET and takes with SET, and others come in between", nil,
		func(env strategies.Env, db rueidis.Client) polled {
			value := ""
			return polled{
				attempt: func(ctx context.Context) error {
					err := db.Do(ctx, db.B().Get().Key(env.Key).Build()).Error()
					if !rueidis.IsRedisNil(err) {
						return won(false, err)
					}
					value = newValue(env)
					return db.Do(ctx, db.B().Set().Key(env.Key).Value(value).PxMilliseconds(env.TTL.Milliseconds()).Build()).Error()
				},
				release: func(ctx context.Context) error {
					return ownerError(freed.Exec(ctx, db, []string{env.Key}, []string{value}).AsInt64())
				},
			}
		})
}

// remembered asks nobody while it thinks that it holds.
func remembered() strategies.Strategy {
	return specimen("faulty-remembered", "it remembers that it holds, and an acquire asks nobody until it is released", nil,
		func(env strategies.Env) strategies.Lock {
			l, holds := newPlain(env), false
			return polled{
				attempt: func(ctx context.Context) error {
					if holds {
						return nil
					}
					err := l.take(ctx)
					holds = err == nil
					return err
				},
				release: func(ctx context.Context) error {
					holds = false
					return l.free(ctx)
				},
			}
		})
}
