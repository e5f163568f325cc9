package main

import (
	"context"
	"errors"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/lockfault/lockfault/strategies"
)

type extLock struct{ *lk }

func (e extLock) Extend(ctx context.Context) error {
	ok, err := e.c.SetXX(ctx, e.env.Key, e.val, e.env.TTL).Result()
	if err == nil && !ok || errors.Is(err, redis.Nil) {
		return strategies.ErrNotHeld
	}
	return err
}

func init() {
	add("faulty-del", "DEL without owner check", single(), func(l *lk) strategies.Lock {
		l.try = setnx
		l.rel = func(ctx context.Context, l *lk) error { return one(l.c.Del(ctx, l.env.Key).Result()) }
		return l
	})
	add("faulty-renewall", "watchdog PEXPIREs whosever key", single("renewing"), func(l *lk) strategies.Lock {
		l.try = func(ctx context.Context, l *lk) error {
			l.stopDog()
			err := setnx(ctx, l)
			if err == nil {
				l.dog(func(ctx context.Context) bool {
					ok, err := l.c.PExpire(ctx, l.env.Key, l.env.TTL).Result()
					return err != nil || ok
				})
			}
			return err
		}
		l.rel = func(ctx context.Context, l *lk) error { l.stopDog(); return relLua(ctx, l) }
		return l
	})
	add("faulty-setnx-expire", "SETNX, then PEXPIRE", single(), func(l *lk) strategies.Lock {
		l.try = func(ctx context.Context, l *lk) error {
			if err := nx(l.c.SetNX(ctx, l.env.Key, l.val, 0).Result()); err != nil {
				return err
			}
			return l.c.PExpire(ctx, l.env.Key, l.env.TTL).Err()
		}
		l.rel = relLua
		return l
	})
	add("faulty-noscript", "EVALSHA of what New loaded", single(), func(l *lk) strategies.Lock {
		sha := l.c.ScriptLoad(context.Background(), secAcq).Val()
		l.try = func(ctx context.Context, l *lk) error {
			return got(l.c.EvalSha(ctx, sha, []string{l.env.Key}, l.val, int64(l.env.TTL/time.Second)).Int64())
		}
		l.rel = relLua
		return l
	})
	add("faulty-noscript-release", "release by EVALSHA, error dropped", single(), func(l *lk) strategies.Lock {
		sha := l.c.ScriptLoad(context.Background(), secRel).Val()
		l.try = setnx
		l.rel = func(ctx context.Context, l *lk) error {
			n, err := l.c.EvalSha(ctx, sha, []string{l.env.Key}, l.val).Int64()
			if err != nil {
				return nil // "it will expire"
			}
			return one(n, nil)
		}
		return l
	})
	add("faulty-noscript-release-told", "release by EVALSHA alone, error returned", single(), func(l *lk) strategies.Lock {
		sha := l.c.ScriptLoad(context.Background(), secRel).Val()
		l.try = setnx
		l.rel = func(ctx context.Context, l *lk) error {
			return one(l.c.EvalSha(ctx, sha, []string{l.env.Key}, l.val).Int64())
		}
		return l
	})
	add("faulty-noscript-release-forever", "the same, and the key has no time to live", single("forever"), func(l *lk) strategies.Lock {
		sha := l.c.ScriptLoad(context.Background(), secRel).Val()
		l.try = func(ctx context.Context, l *lk) error {
			ok, err := l.c.SetNX(ctx, l.env.Key, l.val, 0).Result()
			if err == nil && !ok {
				return strategies.ErrNotAcquired
			}
			return err
		}
		l.rel = func(ctx context.Context, l *lk) error {
			return one(l.c.EvalSha(ctx, sha, []string{l.env.Key}, l.val).Int64())
		}
		return l
	})
	add("faulty-otherkey", "release deletes another key", single(), func(l *lk) strategies.Lock {
		l.try = setnx
		l.rel = func(ctx context.Context, l *lk) error {
			return cad.Run(ctx, l.c, []string{"lock:" + l.env.Key}, l.val).Err()
		}
		return l
	})
	add("faulty-dog-outlives", "watchdog stopped only after a release that was confirmed", single("renewing"), func(l *lk) strategies.Lock {
		l.try = func(ctx context.Context, l *lk) error {
			err := setnx(ctx, l)
			if err == nil {
				v := l.val
				l.dog(func(ctx context.Context) bool {
					n, err := cax.Run(ctx, l.c, []string{l.env.Key}, v, ms(l.env.TTL)).Int64()
					return err != nil || n == 1
				})
			}
			return err
		}
		l.rel = func(ctx context.Context, l *lk) error {
			if err := relLua(ctx, l); err != nil {
				return err
			}
			l.stopDog()
			return nil
		}
		return l
	})
	add("faulty-dog-setxx", "watchdog goes on for one round after release, renews by SET XX", single("renewing"), func(l *lk) strategies.Lock {
		l.try = func(ctx context.Context, l *lk) error {
			err := setnx(ctx, l)
			if err == nil {
				v := l.val
				l.dog(func(ctx context.Context) bool {
					ok, err := l.c.SetXX(ctx, l.env.Key, v, l.env.TTL).Result()
					return err == nil && ok
				})
			}
			return err
		}
		l.rel = relLua // the watchdog finds out by itself that the key is gone
		return l
	})
	add("faulty-err-ok", "every error but redis.Nil is success", single(), func(l *lk) strategies.Lock {
		l.try = func(ctx context.Context, l *lk) error {
			_, err := l.c.SetArgs(ctx, l.env.Key, l.val, redis.SetArgs{Mode: "NX", TTL: l.env.TTL}).Result()
			if errors.Is(err, redis.Nil) {
				return strategies.ErrNotAcquired
			}
			return nil
		}
		l.rel = relLua
		return l
	})
	add("faulty-unit-short", "PX gets seconds", single(), func(l *lk) strategies.Lock {
		l.try = func(ctx context.Context, l *lk) error {
			return nx(l.c.SetNX(ctx, l.env.Key, l.val, time.Duration(l.env.TTL.Seconds())*time.Millisecond).Result())
		}
		l.rel = relLua
		return l
	})
	add("faulty-unit-long", "EX gets milliseconds", single(), func(l *lk) strategies.Lock {
		l.try = func(ctx context.Context, l *lk) error {
			return nx(l.c.SetNX(ctx, l.env.Key, l.val, time.Duration(ms(l.env.TTL))*time.Second).Result())
		}
		l.rel = relLua
		return l
	})
	add("faulty-overwrite", "after an error it repeats without NX", single(), func(l *lk) strategies.Lock {
		l.try = func(ctx context.Context, l *lk) error {
			err := setnx(ctx, l)
			if err != nil && !errors.Is(err, strategies.ErrNotAcquired) {
				return l.c.Set(ctx, l.env.Key, l.val, l.env.TTL).Err()
			}
			return err
		}
		l.rel = relLua
		return l
	})
	add("faulty-nested", "reentrant; first release deletes", single("reentrant"), func(l *lk) strategies.Lock {
		l.try = func(ctx context.Context, l *lk) error {
			return got(hashAcq.Run(ctx, l.c, []string{l.env.Key}, l.env.Owner, ms(l.env.TTL)).Int64())
		}
		l.rel = func(ctx context.Context, l *lk) error {
			return one(nestedRel.Run(ctx, l.c, []string{l.env.Key}, l.env.Owner).Int64())
		}
		return l
	})
	add("faulty-thread", "reentrant; owner is the thread id", single("reentrant"), func(l *lk) strategies.Lock {
		id := "thread-" + l.env.Thread
		l.try = func(ctx context.Context, l *lk) error {
			return got(hashAcq.Run(ctx, l.c, []string{l.env.Key}, id, ms(l.env.TTL)).Int64())
		}
		l.rel = func(ctx context.Context, l *lk) error {
			return one(hashRel.Run(ctx, l.c, []string{l.env.Key}, id).Int64())
		}
		return l
	})
	add("faulty-dog-once", "watchdog renews once", single("renewing"), func(l *lk) strategies.Lock {
		l.try = func(ctx context.Context, l *lk) error {
			l.stopDog()
			err := setnx(ctx, l)
			if err == nil {
				v := l.val
				l.dog(func(ctx context.Context) bool {
					cax.Run(ctx, l.c, []string{l.env.Key}, v, ms(l.env.TTL))
					return false
				})
			}
			return err
		}
		l.rel = func(ctx context.Context, l *lk) error { l.stopDog(); return relLua(ctx, l) }
		return l
	})
	add("faulty-token-apart", "INCR for the token before SET NX", single("fenced"), func(l *lk) strategies.Lock {
		l.try = func(ctx context.Context, l *lk) error {
			n, err := l.c.Incr(ctx, l.env.Key+":fence").Result()
			if err != nil {
				return err
			}
			if err := setnx(ctx, l); err != nil {
				return err
			}
			l.tok = n
			return nil
		}
		l.rel = relLua
		return fencedLock{l}
	})
	add("faulty-nowake", "waits for a message, no timer", single(), func(l *lk) strategies.Lock {
		ch := l.env.Key + ":free"
		l.try = setnx
		l.wait = func(ctx context.Context, l *lk) {
			ps := l.c.Subscribe(ctx, ch)
			defer ps.Close()
			for ctx.Err() == nil {
				m, err := ps.ReceiveTimeout(ctx, time.Second)
				if _, ok := m.(*redis.Message); ok {
					return
				}
				if err != nil {
					time.Sleep(10 * time.Millisecond)
				}
			}
		}
		l.rel = func(ctx context.Context, l *lk) error {
			return one(relPub.Run(ctx, l.c, []string{l.env.Key, ch}, l.val).Int64())
		}
		return l
	})
	add("faulty-extend-set", "Extend is SET XX", single("extending"), func(l *lk) strategies.Lock {
		l.try, l.rel = setnx, relLua
		return extLock{l}
	})
	add("faulty-txnowatch", "release GET, then MULTI DEL, no WATCH", single(), func(l *lk) strategies.Lock {
		l.try = setnx
		l.rel = func(ctx context.Context, l *lk) error {
			v, err := l.c.Get(ctx, l.env.Key).Result()
			if errors.Is(err, redis.Nil) || err == nil && v != l.val {
				return strategies.ErrNotHeld
			}
			if err != nil {
				return err
			}
			_, err = l.c.TxPipelined(ctx, func(p redis.Pipeliner) error { p.Del(ctx, l.env.Key); return nil })
			return err
		}
		return l
	})
	add("faulty-ctxghost", "any error of a cancelled acquire is not acquired", single(), func(l *lk) strategies.Lock {
		l.try = func(ctx context.Context, l *lk) error {
			err := setnx(ctx, l)
			if err != nil && ctx.Err() != nil {
				return strategies.ErrNotAcquired
			}
			return err
		}
		l.rel = relLua
		return l
	})
}

var nestedRel = redis.NewScript(`
if redis.call("HEXISTS",KEYS[1],ARGV[1])==0 then return 0 end return redis.call("DEL",KEYS[1])`)
