package main

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/lockfault/lockfault/strategies"
)

// publicLocks are locks that people use, or have used, written anew: the same commands in
// the same order, and the flaw that is known of them. They count in milliseconds where the
// original counts in seconds, so that a lease of a second means something, and end with
// their context where the original tries so many times.
func publicLocks() []strategies.Strategy {
	return []strategies.Strategy{
		errorception(), crowdtap(), mlanett(), redisPy(), goZero(), segment(), ionelmc(), dvSemaphore(), bsm(),
	}
}

// public returns the strategy of a lock that was read at its source.
func public(name, bug, source string, tags []string, made func(strategies.Env) strategies.Lock) strategies.Strategy {
	s := specimen(name, bug, tags, made)
	s.Source = source
	return s
}

// errorception keeps the end of the lease in the key, and takes over with GETSET.
func errorception() strategies.Strategy {
	return public("faulty-public-errorception", "it compares the ends of leases with its own clock, and writes the loser's over the winner's",
		"https://github.com/errorception/redis-lock, index.js at 0473cc4", []string{strategies.TagPlainDel},
		func(env strategies.Env) strategies.Lock {
			l, until := newPlain(env), int64(0)
			now := func() int64 { return env.Now().UnixMilli() }
			return polled{
				attempt: func(ctx context.Context) error {
					next := now() + l.ms() + 1
					ok, err := l.db.Do(ctx, "SETNX", l.key, next).Bool()
					if err != nil || ok {
						until = next
						return err
					}
					found, err := l.get(ctx)
					if err != nil || found == "" {
						return won(false, err)
					}
					if end, _ := strconv.ParseInt(found, 10, 64); end > now() {
						return strategies.ErrNotAcquired
					}
					next = now() + l.ms() + 1
					old, err := l.db.GetSet(ctx, l.key, next).Result()
					if err != nil || old != found {
						return won(false, err)
					}
					until = next
					return nil
				},
				release: func(ctx context.Context) error {
					if until <= now() {
						return strategies.ErrNotHeld
					}
					return ownerError(l.db.Del(ctx, l.key).Result())
				},
			}
		})
}

// crowdtap adds the number of a process, which a process of another machine has too.
func crowdtap() strategies.Strategy {
	return public("faulty-public-crowdtap", "contenders for an expired key overwrite the winner's value, and the winner can't release",
		"https://github.com/PatrickTulskie/redis-lock, lib/redis/lock.rb at 122f2be", []string{strategies.TagPlainDel},
		func(env strategies.Env) strategies.Lock {
			l := newPlain(env)
			now := func() int64 { return env.Now().UnixMilli() }
			parse := func(value string) (end int64, holder string) {
				text, holder, _ := strings.Cut(value, "-")
				end, _ = strconv.ParseInt(text, 10, 64)
				return end, holder
			}
			return polled{
				attempt: func(ctx context.Context) error {
					value := fmt.Sprintf("%d-%s", now()+l.ms()+1, env.Owner)
					ok, err := l.db.Do(ctx, "SETNX", l.key, value).Bool()
					if err != nil || ok {
						return err
					}
					found, err := l.get(ctx)
					if err != nil {
						return err
					}
					if end, _ := parse(found); end >= now() {
						return strategies.ErrNotAcquired
					}
					old, err := l.db.GetSet(ctx, l.key, value).Result()
					return won(old == found, err)
				},
				release: func(ctx context.Context) error {
					found, err := l.get(ctx)
					if err != nil || found == "" {
						return err // it says true where there is nothing
					}
					if end, holder := parse(found); end <= now() || holder != env.Owner {
						return strategies.ErrNotHeld
					}
					return l.db.Del(ctx, l.key).Err()
				},
			}
		})
}

// mlanett keeps the owner and the end of the lease in two keys.
func mlanett() strategies.Strategy {
	s := public("faulty-public-mlanett", "it deletes a lock that is stale by its own clock",
		"https://github.com/mlanett/redis-lock, lib/redis-lock.rb at 01b1b85", nil,
		func(env strategies.Env) strategies.Lock {
			l := newPlain(env)
			owner, expire := l.key, l.key+":expire"
			now := func() int64 { return env.Now().UnixMilli() }
			both := func(ctx context.Context, tx *redis.Tx) error {
				_, err := tx.TxPipelined(ctx, func(pipe redis.Pipeliner) error {
					pipe.Del(ctx, owner)
					pipe.Del(ctx, expire)
					return nil
				})
				return err
			}
			stale := func(ctx context.Context) (deleted bool, err error) {
				err = l.db.Watch(ctx, func(tx *redis.Tx) error {
					found, err := tx.Get(ctx, owner).Result()
					if err != nil && !errors.Is(err, redis.Nil) {
						return err
					}
					end, err := tx.Get(ctx, expire).Int64()
					if err != nil && !errors.Is(err, redis.Nil) {
						return err
					}
					if (found != "" || end > 0) && (found == "" || end < now()) {
						deleted = true
						return both(ctx, tx)
					}
					return nil
				}, owner, expire)
				if errors.Is(err, redis.TxFailedErr) {
					return false, nil
				}
				return deleted, err
			}
			return polled{
				attempt: func(ctx context.Context) error {
					for try := 0; ; try++ {
						ok, err := l.db.MSetNX(ctx, owner, env.Owner, expire, now()+l.ms()).Result()
						if err != nil || ok {
							return err
						}
						if try == 1 {
							return strategies.ErrNotAcquired
						}
						if deleted, err := stale(ctx); err != nil || !deleted {
							return won(false, err)
						}
					}
				},
				release: func(ctx context.Context) error {
					err := l.db.Watch(ctx, func(tx *redis.Tx) error {
						found, err := tx.Get(ctx, owner).Result()
						if errors.Is(err, redis.Nil) || err == nil && found != env.Owner {
							return strategies.ErrNotHeld
						}
						if err != nil {
							return err
						}
						return both(ctx, tx)
					}, owner, expire)
					if errors.Is(err, redis.TxFailedErr) {
						return strategies.ErrNotHeld
					}
					return err
				},
			}
		})
	s.Keys = func(key string) []string { return []string{key, key + ":expire"} }
	return s
}

// redisPy is the Lock of redis-py 2.10 without scripts.
func redisPy() strategies.Strategy {
	return public("faulty-public-redis-py", "SETNX and PEXPIRE are two commands, and a client that dies between them leaves no lease",
		"redis-py 2.10, redis/lock.py (Lock, not LuaLock)", nil,
		func(env strategies.Env) strategies.Lock {
			l := newPlain(env)
			return polled{
				attempt: func(ctx context.Context) error {
					value := newValue(env)
					ok, err := l.db.Do(ctx, "SETNX", l.key, value).Bool()
					if err != nil || !ok {
						return won(ok, err)
					}
					l.value = value
					return l.db.PExpire(ctx, l.key, env.TTL).Err()
				},
				release: func(ctx context.Context) error {
					err := l.db.Watch(ctx, func(tx *redis.Tx) error {
						found, err := tx.Get(ctx, l.key).Result()
						if errors.Is(err, redis.Nil) || err == nil && found != l.value {
							return strategies.ErrNotHeld
						}
						if err != nil {
							return err
						}
						_, err = tx.TxPipelined(ctx, func(pipe redis.Pipeliner) error {
							pipe.Del(ctx, l.key)
							return nil
						})
						return err
					}, l.key)
					if errors.Is(err, redis.TxFailedErr) {
						return strategies.ErrNotHeld
					}
					return err
				},
			}
		})
}

// goZero keeps one value for the life of its lock object.
func goZero() strategies.Strategy {
	take := redis.NewScript(`
if redis.call("GET", KEYS[1]) == ARGV[1] then
	redis.call("SET", KEYS[1], ARGV[1], "PX", ARGV[2])
	return "OK"
end
return redis.call("SET", KEYS[1], ARGV[1], "NX", "PX", ARGV[2])`)
	return public("faulty-public-go-zero", "it lets its holder in again, and doesn't count how often",
		"https://github.com/zeromicro/go-zero, core/stores/redis/redislock.go at 113a810", nil,
		func(env strategies.Env) strategies.Lock {
			l := newPlain(env)
			l.value = newValue(env)
			const tolerance = 500 // milliseconds, on top of the lease
			return polled{
				attempt: func(ctx context.Context) error {
					return won(true, take.Run(ctx, l.db, []string{l.key}, l.value, l.ms()+tolerance).Err())
				},
				release: l.free,
			}
		})
}

// segment writes the same value for all.
func segment() strategies.Strategy {
	return public("faulty-public-segment", "its value is 1, and its release a DEL that doesn't look whose key it is",
		"https://github.com/segment-boneyard/redis-lock, index.js at 24727cd", []string{strategies.TagPlainDel},
		func(env strategies.Env) strategies.Lock {
			l := newPlain(env)
			return polled{
				attempt: func(ctx context.Context) error { return l.takeAs(ctx, "1") },
				release: func(ctx context.Context) error { return ownerError(l.db.Del(ctx, l.key).Result()) },
			}
		})
}

// ionelmc waits for an element that the release pushes. Without an expire it has no lease.
func ionelmc() strategies.Strategy {
	free := redis.NewScript(`
if redis.call("get", KEYS[1]) == ARGV[1] then
	redis.call("lpush", KEYS[2], 1)
	return redis.call("del", KEYS[1])
end
return 0`)
	return public("faulty-public-ionelmc", "without an expire it has no lease, its value is 1, and who waits does so for ever",
		"https://github.com/ionelmc/python-redis-lock, src/redis_lock.py at 0614aa5", nil,
		func(env strategies.Env) strategies.Lock {
			return &signalled{newPlain(env), env.Key + ":signal", free}
		})
}

type signalled struct {
	*plain
	signal string
	free   *redis.Script
}

func (l *signalled) Acquire(ctx context.Context) error {
	for {
		err := l.TryAcquire(ctx)
		if !errors.Is(err, strategies.ErrNotAcquired) {
			return err
		}
		if err := l.db.BLPop(ctx, 0, l.signal).Err(); err != nil {
			return strategies.ErrNotAcquired // a signal is not the lock
		}
	}
}

func (l *signalled) TryAcquire(ctx context.Context) error {
	if err := won(true, l.db.Do(ctx, "SET", l.key, 1, "NX").Err()); err != nil {
		return err
	}
	return l.db.Del(ctx, l.signal).Err()
}

func (l *signalled) Release(ctx context.Context) error {
	return ownerError(l.free.Run(ctx, l.db, []string{l.key, l.signal}, 1).Int64())
}

// dvSemaphore keeps its tokens in a list, and notes in a hash which are out. It has one.
func dvSemaphore() strategies.Strategy {
	const token = "0"
	s := public("faulty-public-semaphore", "without a stale_client_timeout nobody brings back the token of a client that died",
		"https://github.com/dv/redis-semaphore, lib/redis/semaphore.rb at 02edf39", nil,
		func(env strategies.Env) strategies.Lock {
			l := newPlain(env)
			available, grabbed, exists := env.Key+":available", env.Key+":grabbed", env.Key+":exists"
			return polled{
				attempt: func(ctx context.Context) error {
					err := l.db.GetSet(ctx, exists, "1").Err()
					if errors.Is(err, redis.Nil) {
						err = l.db.Expire(ctx, exists, 10*time.Second).Err()
						if err == nil {
							_, err = l.db.TxPipelined(ctx, func(pipe redis.Pipeliner) error {
								pipe.Del(ctx, grabbed)
								pipe.Del(ctx, available)
								pipe.RPush(ctx, available, token)
								pipe.Persist(ctx, exists)
								return nil
							})
						}
					}
					if err != nil {
						return err
					}
					if err := l.db.LPop(ctx, available).Err(); err != nil {
						return won(true, err)
					}
					return l.db.HSet(ctx, grabbed, token, env.Now().UnixMilli()).Err()
				},
				release: func(ctx context.Context) error {
					out, err := l.db.HExists(ctx, grabbed, token).Result()
					if err != nil || !out {
						return ownerError(0, err)
					}
					_, err = l.db.TxPipelined(ctx, func(pipe redis.Pipeliner) error {
						pipe.HDel(ctx, grabbed, token)
						pipe.LPush(ctx, available, token)
						return nil
					})
					return err
				},
			}
		})
	s.Keys = func(key string) []string { return []string{key + ":available"} }
	s.Owner = popped
	return s
}

// bsm is the first version of a library that was written anew since.
func bsm() strategies.Strategy {
	return public("faulty-public-bsm", "an acquire of its holder only refreshes the lock, and the first release gives it up",
		"https://github.com/bsm/redis-lock, lock.go at 01abe93", nil,
		func(env strategies.Env) strategies.Lock { return &bsmLock{newPlain(env)} })
}

type bsmLock struct{ *plain }

func (l *bsmLock) Acquire(ctx context.Context) error {
	if err := l.refresh(ctx); !errors.Is(err, strategies.ErrNotHeld) {
		return err
	}
	return poll(ctx, func() error { return l.take(ctx) })
}

func (l *bsmLock) TryAcquire(ctx context.Context) error {
	if err := l.refresh(ctx); !errors.Is(err, strategies.ErrNotHeld) {
		return err
	}
	return l.take(ctx)
}

func (l *bsmLock) refresh(ctx context.Context) error {
	if l.value == "" {
		return strategies.ErrNotHeld
	}
	err := l.prolong(ctx)
	if errors.Is(err, strategies.ErrNotHeld) {
		l.value = ""
	}
	return err
}

// Release doesn't say whether there was anything to release.
func (l *bsmLock) Release(ctx context.Context) error {
	err := l.free(ctx)
	l.value = ""
	if errors.Is(err, strategies.ErrNotHeld) {
		return nil
	}
	return err
}
