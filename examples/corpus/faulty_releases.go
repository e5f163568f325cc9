package main

import (
	"context"
	"errors"
	"strings"

	"github.com/gomodule/redigo/redis"
	goredis "github.com/redis/go-redis/v9"
	"github.com/redis/rueidis"

	"github.com/lockfault/lockfault/strategies"
)

// faultyReleases are locks that are given up in the wrong way. They are taken as is
// right.
func faultyReleases() []strategies.Strategy {
	plainDel := strategies.TagPlainDel
	return []strategies.Strategy{
		blindDel(),
		released("faulty-unlink", "its release is an UNLINK that doesn't look whose key it is", []string{plainDel},
			func(ctx context.Context, l *plain) error { return ownerError(l.db.Unlink(ctx, l.key).Result()) }),
		getDel(),
		released("faulty-prefix", "its release compares only the part of the value that all have in common", nil,
			func(ctx context.Context, l *plain) error {
				return ownerError(deleteAlike.Run(ctx, l.db, []string{l.key}, l.value[:len("lock-")]).Int64())
			}),
		released("faulty-two-scripts", "one script looks whose the key is, another deletes it", nil,
			func(ctx context.Context, l *plain) error {
				if err := ownerError(isOurs.Run(ctx, l.db, []string{l.key}, l.value).Int64()); err != nil {
					return err
				}
				return ownerError(deleteAny.Run(ctx, l.db, []string{l.key}).Int64())
			}),
		released("faulty-release-again", "it looks whose the key is once, and sends the DEL again when it gets no answer", []string{plainDel},
			func(ctx context.Context, l *plain) error {
				if found, err := l.get(ctx); err != nil || found != l.value {
					return ownerError(0, err)
				}
				for again := 0; ; again++ {
					n, err := l.db.Del(ctx, l.key).Result()
					if err == nil || again == 2 || ctx.Err() != nil {
						return ownerError(n, err)
					}
				}
			}),
		released("faulty-set-empty", "its release sets the key to nothing instead of deleting it, and nobody can acquire until the lease is over", nil,
			func(ctx context.Context, l *plain) error {
				if found, err := l.get(ctx); err != nil || found != l.value {
					return ownerError(0, err)
				}
				return l.db.Set(ctx, l.key, "", goredis.KeepTTL).Err()
			}),
		released("faulty-pexpire-zero", "its release is PEXPIRE 0, which doesn't look whose key it is", nil,
			func(ctx context.Context, l *plain) error {
				ok, err := l.db.PExpire(ctx, l.key, 0).Result()
				if err == nil && !ok {
					return strategies.ErrNotHeld
				}
				return err
			}),
		released("faulty-rename", "its release renames the key, whosever it is", nil,
			func(ctx context.Context, l *plain) error {
				err := l.db.Rename(ctx, l.key, l.key+":released").Err()
				if err != nil && strings.Contains(err.Error(), "no such key") {
					return strategies.ErrNotHeld
				}
				return err
			}),
		released("faulty-getdel", "its release is GETDEL, and puts back what was not its own", nil,
			func(ctx context.Context, l *plain) error {
				found, err := l.db.GetDel(ctx, l.key).Result()
				if errors.Is(err, goredis.Nil) {
					return strategies.ErrNotHeld
				}
				if err != nil || found == l.value {
					return err
				}
				if err := l.db.Do(ctx, "SET", l.key, found, "NX", "PX", l.ms()).Err(); err != nil && !errors.Is(err, goredis.Nil) {
					return err
				}
				return strategies.ErrNotHeld
			}),
		released("faulty-release-unheard", "its release ignores errors, and says that the lock is free", nil,
			func(ctx context.Context, l *plain) error {
				if err := l.free(ctx); errors.Is(err, strategies.ErrNotHeld) {
					return err
				}
				return nil
			}),
		released("faulty-release-not-held", "its release that gets no answer says that the lock was not its own", nil,
			func(ctx context.Context, l *plain) error {
				if err := l.free(ctx); err != nil {
					return strategies.ErrNotHeld
				}
				return nil
			}),
	}
}

var (
	// deleteAlike deletes KEYS[1] if it begins with ARGV[1].
	deleteAlike = goredis.NewScript(`
local found = redis.call("get", KEYS[1])
if found and string.sub(found, 1, #ARGV[1]) == ARGV[1] then
	return redis.call("del", KEYS[1])
end
return 0`)
	isOurs    = goredis.NewScript(`if redis.call("get", KEYS[1]) == ARGV[1] then return 1 end return 0`)
	deleteAny = goredis.NewScript(`return redis.call("del", KEYS[1])`)
)

// released returns a lock like plain, but for its release.
func released(name, bug string, tags []string, release func(context.Context, *plain) error) strategies.Strategy {
	return specimen(name, bug, tags, func(env strategies.Env) strategies.Lock {
		l := newPlain(env)
		return polled{
			func(ctx context.Context) error { return l.takeAs(ctx, "lock-"+newValue(env)) },
			func(ctx context.Context) error {
				if l.value == "" {
					return strategies.ErrNotHeld
				}
				return release(ctx, l)
			},
		}
	})
}

// blindDel is on rueidis.
func blindDel() strategies.Strategy {
	return rueidisSpecimen("faulty-del", "its release is a DEL that doesn't look whose key it is", []string{strategies.TagPlainDel},
		func(env strategies.Env, db rueidis.Client) polled {
			return polled{
				attempt: func(ctx context.Context) error {
					set := db.B().Set().Key(env.Key).Value(newValue(env)).Nx().PxMilliseconds(env.TTL.Milliseconds()).Build()
					return taken(db.Do(ctx, set).Error())
				},
				release: func(ctx context.Context) error {
					return ownerError(db.Do(ctx, db.B().Del().Key(env.Key).Build()).AsInt64())
				},
			}
		})
}

// getDel is on redigo.
func getDel() strategies.Strategy {
	return specimen("faulty-get-del", "its release is GET, compare and DEL, and others come in between", []string{strategies.TagPlainDel},
		func(env strategies.Env) strategies.Lock {
			db, value := newRedigo(env), ""
			return db.lock(polled{
				attempt: func(ctx context.Context) error {
					return db.with(ctx, func(conn redis.Conn) error {
						next := newValue(env)
						answer, err := redis.DoContext(conn, ctx, "SET", env.Key, next, "NX", "PX", env.TTL.Milliseconds())
						if answer != nil || err != nil {
							value = next
						}
						return won(answer != nil, err)
					})
				},
				release: func(ctx context.Context) error {
					return db.with(ctx, func(conn redis.Conn) error {
						found, err := redis.String(redis.DoContext(conn, ctx, "GET", env.Key))
						if errors.Is(err, redis.ErrNil) || err == nil && found != value {
							return strategies.ErrNotHeld
						}
						if err != nil {
							return err
						}
						return ownerError(redis.Int64(redis.DoContext(conn, ctx, "DEL", env.Key)))
					})
				},
			})
		})
}
