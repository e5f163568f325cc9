package main

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/lockfault/lockfault/strategies"
)

func rpSoundOf(env strategies.Env) strategies.Lock { return &rpSound{env: env} }

// rpSingle is the tags of a lease on one primary.
func rpSingle(more ...string) []string { return append([]string{strategies.TagSingle}, more...) }

// 1. https://github.com/lukas-krecan/ShedLock/issues/65: SETNX succeeds, something goes wrong with
// PEXPIRE, the key exists forever.

var _ = rpAdd(rpSpec{
	name: "shedlock-expire", source: "lukas-krecan/ShedLock#65", tags: rpSingle(),
	bug: "SETNX, then PEXPIRE whose failure nobody looks at",
	fix: "one command takes the key and gives it its lease",
	make: func(env strategies.Env, fixed bool) strategies.Lock {
		if fixed {
			return rpSoundOf(env)
		}
		return &rpTwoCommands{rpSound{env: env}}
	},
})

type rpTwoCommands struct{ rpSound }

func (l *rpTwoCommands) Acquire(ctx context.Context) error {
	token := rpToken(l.env)
	return strategies.Poll(ctx, rpPause, func(ctx context.Context) error {
		won, err := l.env.Nodes[0].SetNX(ctx, l.env.Key, token, 0).Result()
		if err != nil {
			return err
		}
		if !won {
			return strategies.ErrNotAcquired
		}
		l.env.Nodes[0].PExpire(ctx, l.env.Key, l.env.TTL)
		l.token = token
		return nil
	})
}

// 2. https://github.com/redis/redis-py/issues/415: the value is the date at which the lock ends, and
// the release deletes the key if the date that it finds is not before its own. A later holder's is not.

var _ = rpAdd(rpSpec{
	name: "redis-py-later-date", source: "redis/redis-py#415", tags: rpSingle(),
	bug: "the value is a date, and the release deletes any that is not earlier than its own",
	fix: "the value is unique, and the release compares it for equality in a script",
	make: func(env strategies.Env, fixed bool) strategies.Lock {
		if fixed {
			return rpSoundOf(env)
		}
		return &rpDated{env: env}
	},
})

type rpDated struct {
	env   strategies.Env
	until int64
}

func (l *rpDated) Acquire(ctx context.Context) error {
	return strategies.Poll(ctx, rpPause, func(ctx context.Context) error {
		until := l.env.Now().Add(l.env.TTL).UnixNano()
		// The owner behind the date tells the harness whose it is; the release reads the date.
		won, err := l.env.Nodes[0].SetNX(ctx, l.env.Key, rpDate(until, l.env), l.env.TTL).Result()
		if err == nil && !won {
			return strategies.ErrNotAcquired
		}
		if err == nil {
			l.until = until
		}
		return err
	})
}

func (l *rpDated) Release(ctx context.Context) error {
	value, err := l.env.Nodes[0].Get(ctx, l.env.Key).Result()
	if err != nil && !errors.Is(err, redis.Nil) {
		return err
	}
	if l.until == 0 || rpDateOf(value) < l.until {
		return strategies.ErrNotHeld
	}
	return l.env.Nodes[0].Del(ctx, l.env.Key).Err()
}

func rpDate(date int64, env strategies.Env) string {
	return strconv.FormatInt(date, 10) + "/" + env.Owner
}

// rpDateOf returns the date in a value, and 0 for no value.
func rpDateOf(value string) int64 {
	date, _, _ := strings.Cut(value, "/")
	n, _ := strconv.ParseInt(date, 10, 64)
	return n
}

// 3. https://github.com/redis/redis-py/pull/1031: the release watches the key, reads it, and deletes
// it at once, since nothing calls MULTI; so the WATCH has no effect.

var _ = rpAdd(rpSpec{
	name: "redis-py-watch", source: "redis/redis-py#1031", tags: rpSingle(),
	bug: "the release is WATCH, GET, DEL, without MULTI and EXEC",
	fix: "the release is WATCH, GET, MULTI, DEL, EXEC",
	make: func(env strategies.Env, fixed bool) strategies.Lock {
		return &rpWatching{rpSound: rpSound{env: env}, multi: fixed}
	},
})

type rpWatching struct {
	rpSound
	multi bool
}

func (l *rpWatching) Release(ctx context.Context) error {
	if l.token == "" {
		return strategies.ErrNotHeld
	}
	err := l.env.Nodes[0].Watch(ctx, func(tx *redis.Tx) error {
		value, err := tx.Get(ctx, l.env.Key).Result()
		if errors.Is(err, redis.Nil) || err == nil && value != l.token {
			return strategies.ErrNotHeld
		}
		if err != nil {
			return err
		}
		if !l.multi {
			return tx.Del(ctx, l.env.Key).Err()
		}
		var gone *redis.IntCmd
		_, err = tx.TxPipelined(ctx, func(pipe redis.Pipeliner) error {
			gone = pipe.Del(ctx, l.env.Key)
			return nil
		})
		if err == nil && gone.Val() == 0 {
			return strategies.ErrNotHeld
		}
		return err
	}, l.env.Key)
	if errors.Is(err, redis.TxFailedErr) {
		err = strategies.ErrNotHeld // the key has changed, and nobody but its holder leaves it be
	}
	if rpKnown(err) {
		l.token = ""
	}
	return err
}

// 4. https://github.com/rq/rq/pull/1914: a scheduler that stops releases the locks of all its queues,
// also those that it never got.

var _ = rpAdd(rpSpec{
	name: "rq-not-acquired", source: "rq/rq#1914", tags: rpSingle(),
	bug: "who gives up waiting deletes the key that it wanted",
	fix: "who gives up waiting deletes only what it has acquired",
	make: func(env strategies.Env, fixed bool) strategies.Lock {
		if fixed {
			return rpSoundOf(env)
		}
		return &rpGivingUp{rpSound{env: env}}
	},
})

type rpGivingUp struct{ rpSound }

func (l *rpGivingUp) Acquire(ctx context.Context) error {
	err := l.rpSound.Acquire(ctx)
	if errors.Is(err, strategies.ErrNotAcquired) {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
		defer cancel()
		l.env.Nodes[0].Del(ctx, l.env.Key)
	}
	return err
}

// 5. https://github.com/songkick/mega_mutex/pull/6: an attempt looks whether there is a key, and then
// sets it with a plain SET, over one that came in between.

var _ = rpAdd(rpSpec{
	name: "mega-mutex-set", source: "songkick/mega_mutex#6", tags: rpSingle(),
	bug: "GET finds nothing, then SET without NX",
	fix: "SET NX",
	make: func(env strategies.Env, fixed bool) strategies.Lock {
		if fixed {
			return rpSoundOf(env)
		}
		return &rpLookThenSet{rpSound{env: env}}
	},
})

type rpLookThenSet struct{ rpSound }

func (l *rpLookThenSet) Acquire(ctx context.Context) error {
	token := rpToken(l.env)
	return strategies.Poll(ctx, rpPause, func(ctx context.Context) error {
		err := l.env.Nodes[0].Get(ctx, l.env.Key).Err()
		if err == nil {
			return strategies.ErrNotAcquired
		}
		if !errors.Is(err, redis.Nil) {
			return err
		}
		if err := l.env.Nodes[0].Set(ctx, l.env.Key, token, l.env.TTL).Err(); err != nil {
			return err
		}
		l.token = token
		return nil
	})
}

// 6. https://github.com/actionhero/node-resque/issues/287: EXPIRE wants seconds from now, and is given
// the date in seconds since 1970.

var _ = rpAdd(rpSpec{
	name: "node-resque-epoch", source: "actionhero/node-resque#287", tags: rpSingle(),
	bug: "the time to live is the date at which the lock should end, in seconds since 1970",
	fix: "the time to live is the lease",
	make: func(env strategies.Env, fixed bool) strategies.Lock {
		if fixed {
			return rpSoundOf(env)
		}
		return &rpEpoch{rpSound{env: env}}
	},
})

type rpEpoch struct{ rpSound }

func (l *rpEpoch) Acquire(ctx context.Context) error {
	token := rpToken(l.env)
	return strategies.Poll(ctx, rpPause, func(ctx context.Context) error {
		until := l.env.Now().Add(l.env.TTL).Unix()
		won, err := l.env.Nodes[0].SetNX(ctx, l.env.Key, token, time.Duration(until)*time.Second).Result()
		if err == nil && !won {
			return strategies.ErrNotAcquired
		}
		if err == nil {
			l.token = token
		}
		return err
	})
}

// 7. https://github.com/KanishJebaMathewM/Truxify/pull/6023: when Redis fails, the lock fails open, and
// its caller goes on unguarded.

var _ = rpAdd(rpSpec{
	name: "truxify-fail-open", source: "KanishJebaMathewM/Truxify#6023", tags: rpSingle(),
	bug: "an acquire that gets an error from Redis lets its caller in",
	fix: "an acquire passes on the error",
	make: func(env strategies.Env, fixed bool) strategies.Lock {
		if fixed {
			return rpSoundOf(env)
		}
		return &rpFailOpen{rpSound{env: env}}
	},
})

type rpFailOpen struct{ rpSound }

func (l *rpFailOpen) Acquire(ctx context.Context) error {
	err := l.rpSound.Acquire(ctx)
	if err == nil || errors.Is(err, strategies.ErrNotAcquired) {
		return err
	}
	l.token = "" // unguarded
	return nil
}

// 8. https://github.com/FoundatioFx/Foundatio.Redis/issues/73: the renewal gives its script seconds,
// and the script takes them for milliseconds.

var _ = rpAdd(rpSpec{
	name: "foundatio-renew-seconds", source: "FoundatioFx/Foundatio.Redis#73",
	tags: rpSingle(strategies.TagExtending),
	bug:  "the extension gives a script seconds that wants milliseconds",
	fix:  "the extension gives it milliseconds",
	make: func(env strategies.Env, fixed bool) strategies.Lock {
		if fixed {
			return &rpSoundExtending{rpSound{env: env}}
		}
		return &rpSecondsAsMillis{rpSound{env: env}}
	},
})

type rpSecondsAsMillis struct{ rpSound }

func (l *rpSecondsAsMillis) Extend(ctx context.Context) error {
	if l.token == "" {
		return strategies.ErrNotHeld
	}
	wrong := l.env
	wrong.TTL = time.Duration(max(l.env.TTL/time.Second, 1)) * time.Millisecond
	return rpRenew(ctx, wrong, l.env.Nodes[0], l.token)
}

// 9. https://github.com/sbertrang/redis-distlock/issues/2: the extension doesn't look whether the value
// of the key is its own.

var _ = rpAdd(rpSpec{
	name: "distlock-extend", source: "sbertrang/redis-distlock#2", tags: rpSingle(strategies.TagExtending),
	bug: "the extension sets the key, whoever has it",
	fix: "the extension compares the value first, in a script",
	make: func(env strategies.Env, fixed bool) strategies.Lock {
		if fixed {
			return &rpSoundExtending{rpSound{env: env}}
		}
		return &rpExtendAny{rpSound{env: env}}
	},
})

type rpExtendAny struct{ rpSound }

func (l *rpExtendAny) Extend(ctx context.Context) error {
	if l.token == "" {
		return strategies.ErrNotHeld
	}
	return l.env.Nodes[0].Set(ctx, l.env.Key, l.token, l.env.TTL).Err()
}

// 10. https://github.com/rogermadjos/node-mutex/issues/2: each attempt to acquire sets the time to live
// anew, also one that fails.

var _ = rpAdd(rpSpec{
	name: "node-mutex-bump", source: "rogermadjos/node-mutex#2", tags: rpSingle(),
	bug: "MULTI, SETNX, PEXPIRE, EXEC: who fails prolongs the other's lease",
	fix: "only who gets the key sets its time to live",
	make: func(env strategies.Env, fixed bool) strategies.Lock {
		if fixed {
			return rpSoundOf(env)
		}
		return &rpBump{rpSound{env: env}}
	},
})

type rpBump struct{ rpSound }

func (l *rpBump) Acquire(ctx context.Context) error {
	token := rpToken(l.env)
	return strategies.Poll(ctx, rpPause, func(ctx context.Context) error {
		var won *redis.BoolCmd
		_, err := l.env.Nodes[0].TxPipelined(ctx, func(pipe redis.Pipeliner) error {
			won = pipe.SetNX(ctx, l.env.Key, token, 0)
			pipe.PExpire(ctx, l.env.Key, l.env.TTL)
			return nil
		})
		if err == nil && !won.Val() {
			return strategies.ErrNotAcquired
		}
		if err == nil {
			l.token = token
		}
		return err
	})
}

// 11. https://github.com/kenn/redis-mutex/pull/6: SETNX fails, the lock is released, GET finds nothing,
// which counts as a date long past, and GETSET overwrites whoever has come since.

var _ = rpAdd(rpSpec{
	name: "redis-mutex-nil", source: "kenn/redis-mutex#6", tags: rpSingle(),
	bug: "SETNX of a date, GET, GETSET: a key that has just gone counts as expired",
	fix: "the server ends the lease, so nobody has to judge a date",
	make: func(env strategies.Env, fixed bool) strategies.Lock {
		if fixed {
			return rpSoundOf(env)
		}
		return &rpGetSet{rpSound{env: env}}
	},
})

type rpGetSet struct{ rpSound } // the token is the date

func (l *rpGetSet) Acquire(ctx context.Context) error {
	return strategies.Poll(ctx, rpPause, func(ctx context.Context) error {
		node, now := l.env.Nodes[0], l.env.Now()
		value := rpDate(now.Add(l.env.TTL).UnixNano(), l.env)
		won, err := node.SetNX(ctx, l.env.Key, value, 0).Result()
		if err != nil {
			return err
		}
		if !won {
			old, err := node.Get(ctx, l.env.Key).Result()
			if err != nil && !errors.Is(err, redis.Nil) {
				return err
			}
			if rpDateOf(old) > now.UnixNano() {
				return strategies.ErrNotAcquired
			}
			old, err = node.GetSet(ctx, l.env.Key, value).Result()
			if err != nil && !errors.Is(err, redis.Nil) {
				return err
			}
			if rpDateOf(old) > now.UnixNano() {
				return strategies.ErrNotAcquired
			}
		}
		l.token = value
		return nil
	})
}

// 12. https://github.com/marcoCasamento/Hangfire.Redis.StackExchange/pull/17: the lock's owner becomes
// the id of a thread, and of several processes that watch the same queues each has such a thread.

var _ = rpAdd(rpSpec{
	name: "hangfire-thread-owner", source: "marcoCasamento/Hangfire.Redis.StackExchange#17",
	tags: rpSingle(), creator: true,
	bug: "the value is the thread's id, which another process's thread may have, too",
	fix: "the value is unique",
	make: func(env strategies.Env, fixed bool) strategies.Lock {
		if fixed {
			return rpSoundOf(env)
		}
		return &rpThreadOwner{env}
	},
})

type rpThreadOwner struct{ env strategies.Env }

func (l *rpThreadOwner) Acquire(ctx context.Context) error {
	return strategies.Poll(ctx, rpPause, func(ctx context.Context) error {
		won, err := l.env.Nodes[0].SetNX(ctx, l.env.Key, l.env.Thread, l.env.TTL).Result()
		if err == nil && !won {
			return strategies.ErrNotAcquired
		}
		return err
	})
}

func (l *rpThreadOwner) Release(ctx context.Context) error {
	return rpGive(ctx, l.env, l.env.Nodes[0], l.env.Thread)
}
