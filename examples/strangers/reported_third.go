package main

import (
	"context"
	"errors"
	"strconv"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/lockfault/lockfault/strategies"
)

// rtLoop makes attempts until one of them wins or fails, or the caller gives up.
func rtLoop(ctx context.Context, attempt func(context.Context) (bool, error)) error {
	for ctx.Err() == nil {
		if won, err := attempt(ctx); won || err != nil {
			return err
		}
		if !rpSleep(ctx, rpPause) {
			break
		}
	}
	return strategies.ErrNotAcquired
}

// rtAfter returns a context in which to put something right for a caller who may have given up.
func rtAfter(ctx context.Context, env strategies.Env) (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.WithoutCancel(ctx), max(env.TTL/30, rpPause))
}

// rtTooLate reports whether a success is of no use: nobody waits for it, or its lease is almost over.
func rtTooLate(ctx context.Context, env strategies.Env, sent time.Time) bool {
	return ctx.Err() != nil || time.Since(sent) > env.TTL*9/10
}

// 33. https://github.com/nateware/redis-objects/issues/234: the release deletes the key while a local
// end has not come, and that end adds milliseconds to seconds, so it lies a thousand leases ahead.

var _ = rpAdd(rpSpec{
	name: "redis-objects-end-time", source: "nateware/redis-objects#234", tags: rpSingle(),
	bug: "the release deletes whatever is there until a local end, which is a thousand leases away",
	fix: "the release compares the value in a script",
	make: func(env strategies.Env, fixed bool) strategies.Lock {
		if fixed {
			return rpSoundOf(env)
		}
		return &rtEndTime{rpSound: rpSound{env: env}}
	},
})

type rtEndTime struct {
	rpSound
	end time.Time
}

func (l *rtEndTime) Acquire(ctx context.Context) error {
	if err := l.rpSound.Acquire(ctx); err != nil {
		return err
	}
	millis := l.env.TTL.Milliseconds()
	l.end = l.env.Now().Add(time.Duration(millis) * time.Second) // it takes them for seconds
	return nil
}

func (l *rtEndTime) Release(ctx context.Context) error {
	if l.token == "" || !l.env.Now().Before(l.end) {
		l.token = ""
		return strategies.ErrNotHeld
	}
	err := l.env.Nodes[0].Del(ctx, l.env.Key).Err()
	if err == nil {
		l.token = ""
	}
	return err
}

// 34. https://github.com/coleifer/walrus/issues/110: who waits for the release's signal gives BLPOP the
// lease in milliseconds, and BLPOP wants seconds; a lock that just expires sends no signal.

var _ = rpAdd(rpSpec{
	name: "walrus-blpop-millis", source: "coleifer/walrus#110", tags: rpSingle(),
	bug: "a waiter waits for a signal for a thousand leases before it tries again",
	fix: "a waiter waits for a signal for a second before it tries again",
	make: func(env strategies.Env, fixed bool) strategies.Lock {
		wait := time.Duration(env.TTL.Milliseconds()) * time.Second
		if fixed {
			wait = time.Second
		}
		return &rtSignalled{env: env, wait: wait}
	},
})

var rtGiveAndSignal = redis.NewScript(`
if redis.call("GET", KEYS[1]) ~= ARGV[1] then
	return 0
end
redis.call("DEL", KEYS[1], KEYS[2])
redis.call("RPUSH", KEYS[2], "free")
redis.call("PEXPIRE", KEYS[2], ARGV[2])
return 1`)

type rtSignalled struct {
	env   strategies.Env
	wait  time.Duration
	token string
}

func (l *rtSignalled) event() string { return l.env.Key + ":event" }

func (l *rtSignalled) Acquire(ctx context.Context) error {
	token := rpToken(l.env)
	for ctx.Err() == nil {
		won, err := rpAttempt(ctx, l.env, token)
		if won {
			l.token = token
		}
		if won || err != nil {
			return err
		}
		l.listen(ctx)
	}
	return strategies.ErrNotAcquired
}

// listen waits for a signal, for l.wait at most. It asks once in a second, so that ctx is looked at.
func (l *rtSignalled) listen(ctx context.Context) {
	for end := time.Now().Add(l.wait); ctx.Err() == nil && time.Now().Before(end); {
		err := l.env.Nodes[0].BLPop(ctx, time.Second, l.event()).Err()
		if err == nil {
			return
		}
		if !errors.Is(err, redis.Nil) && !rpSleep(ctx, rpPause) {
			return
		}
	}
}

func (l *rtSignalled) Release(ctx context.Context) error {
	if l.token == "" {
		return strategies.ErrNotHeld
	}
	n, err := rtGiveAndSignal.Run(ctx, l.env.Nodes[0], []string{l.env.Key, l.event()},
		l.token, l.env.TTL.Milliseconds()).Int()
	if err == nil && n == 0 {
		err = strategies.ErrNotHeld
	}
	if rpKnown(err) {
		l.token = ""
	}
	return err
}

// 35. https://github.com/redisson/redisson/issues/7367: the client sends the acquire's script again when
// the answer is late; the second run takes the first for an outer acquire and counts to two, so one
// release leaves the lock taken, and the watchdog keeps it.

var _ = rpAdd(rpSpec{
	name: "redisson-resent", source: "redisson/redisson#7367",
	tags: rpSingle("reentrant", strategies.TagRenewing),
	bug:  "an acquire that is sent twice counts twice on the server",
	fix:  "the holder counts by itself, and the server has the value only",
	make: func(env strategies.Env, fixed bool) strategies.Lock {
		if fixed {
			return &rtReentrantWatched{rpReentrant: rpReentrant{env: env}}
		}
		return &rtCountedTwice{env: env, field: env.Owner + ":" + env.Thread}
	},
})

var (
	rtEnter = redis.NewScript(`
if redis.call("EXISTS", KEYS[1]) == 0 or redis.call("HEXISTS", KEYS[1], ARGV[1]) == 1 then
	redis.call("HINCRBY", KEYS[1], ARGV[1], 1)
	redis.call("PEXPIRE", KEYS[1], ARGV[2])
	return 1
end
return 0`)
	rtProlong = redis.NewScript(`
if redis.call("HEXISTS", KEYS[1], ARGV[1]) == 1 then
	return redis.call("PEXPIRE", KEYS[1], ARGV[2])
end
return 0`)
	// rtExit returns how often the caller is in still, and -1 if he was not in.
	rtExit = redis.NewScript(`
if redis.call("HEXISTS", KEYS[1], ARGV[1]) == 0 then
	return -1
end
local left = redis.call("HINCRBY", KEYS[1], ARGV[1], -1)
if left > 0 then
	redis.call("PEXPIRE", KEYS[1], ARGV[2])
	return left
end
redis.call("DEL", KEYS[1])
return 0`)
)

// rtHash runs one of the scripts above.
func rtHash(ctx context.Context, env strategies.Env, script *redis.Script, field string) (int, error) {
	return script.Run(ctx, env.Nodes[0], []string{env.Key}, field, env.TTL.Milliseconds()).Int()
}

type rtCountedTwice struct {
	env   strategies.Env
	field string
	rpDog
}

// enter sends the script up to five times.
func (l *rtCountedTwice) enter(ctx context.Context) (bool, error) {
	for sent := 1; ; sent++ {
		n, err := rtHash(ctx, l.env, rtEnter, l.field)
		if err == nil || sent == 5 || !rpSleep(ctx, rpPause) {
			return n == 1, err
		}
	}
}

func (l *rtCountedTwice) Acquire(ctx context.Context) error {
	err := rtLoop(ctx, l.enter)
	if err == nil {
		l.start(l.env.TTL/3, func(ctx context.Context) error {
			n, err := rtHash(ctx, l.env, rtProlong, l.field)
			if err == nil && n == 0 {
				return strategies.ErrNotHeld
			}
			return err
		})
	}
	return err
}

func (l *rtCountedTwice) Release(ctx context.Context) error {
	left, err := rtHash(ctx, l.env, rtExit, l.field)
	if err != nil || left <= 0 {
		l.end()
	}
	if err == nil && left < 0 {
		return strategies.ErrNotHeld
	}
	return err
}

// rtReentrantWatched is a rpReentrant whose lease is renewed until its last release is called.
type rtReentrantWatched struct {
	rpReentrant
	rpDog
}

func (l *rtReentrantWatched) Acquire(ctx context.Context) error {
	if err := l.rpReentrant.Acquire(ctx); err != nil {
		return err
	}
	token := l.token
	l.start(l.env.TTL/3, func(ctx context.Context) error {
		return rpRenew(ctx, l.env, l.env.Nodes[0], token)
	})
	return nil
}

func (l *rtReentrantWatched) Release(ctx context.Context) error {
	if l.count <= 1 {
		l.end()
	}
	return l.rpReentrant.Release(ctx)
}

// 36. https://github.com/oaeproject/Hilary/pull/793: who finds the lock taken looks for its time to live
// in a second command, and gives a key without one a lease by SETEX; if the lock was released in
// between, that sets it anew, for nobody.

var _ = rpAdd(rpSpec{
	name: "hilary-setex", source: "oaeproject/Hilary#793", tags: rpSingle(),
	bug: "SETNX fails, PTTL finds no lease, SETEX gives one, whatever has happened since",
	fix: "a key always has a lease, and nobody has to mend it",
	make: func(env strategies.Env, fixed bool) strategies.Lock {
		if fixed {
			return rpSoundOf(env)
		}
		return &rtMending{rpSound{env: env}}
	},
})

type rtMending struct{ rpSound }

func (l *rtMending) Acquire(ctx context.Context) error {
	token, node := rpToken(l.env), l.env.Nodes[0]
	return rtLoop(ctx, func(ctx context.Context) (bool, error) {
		won, err := node.SetNX(ctx, l.env.Key, token, 0).Result()
		if err != nil {
			return false, err
		}
		if won {
			if err := node.PExpire(ctx, l.env.Key, l.env.TTL).Err(); err != nil {
				return false, err
			}
			l.token = token
			return true, nil
		}
		left, err := node.PTTL(ctx, l.env.Key).Result()
		if err == nil && left < 0 { // no lease, or no key, which it doesn't tell apart
			err = node.Set(ctx, l.env.Key, token, l.env.TTL).Err()
		}
		return false, err
	})
}

// 37. https://github.com/amphp/redis/issues/61: who gives up waiting leaves his token in the queue, and a
// release hands the lock to that token, where it stays for a whole lease.

var _ = rpAdd(rpSpec{
	name: "amphp-queued-token", source: "amphp/redis#61", tags: rpSingle(),
	bug: "a release hands the lock to the first in the queue, who may have given up long ago",
	fix: "who gives up leaves the queue, and only who has asked lately is offered the lock, for a moment",
	make: func(env strategies.Env, fixed bool) strategies.Lock {
		l := &rtQueued{env: env, mode: "careless", offer: env.TTL}
		if fixed {
			l.mode, l.offer = "careful", min(env.TTL, max(env.TTL/10, 4*rpPause))
		}
		return l
	},
})

var (
	rtJoin = redis.NewScript(`
local holder = redis.call("GET", KEYS[1])
if not holder or holder == ARGV[1] then
	redis.call("SET", KEYS[1], ARGV[1], "PX", ARGV[2])
	redis.call("LREM", KEYS[2], 0, ARGV[1])
	return 1
end
local there = false
for _, token in ipairs(redis.call("LRANGE", KEYS[2], 0, -1)) do
	there = there or token == ARGV[1]
end
if not there then
	redis.call("RPUSH", KEYS[2], ARGV[1])
end
redis.call("PEXPIRE", KEYS[2], ARGV[2])
redis.call("SET", KEYS[2] .. ":" .. ARGV[1], "asks", "PX", ARGV[3])
return 0`)
	// rtPass takes a token out of the queue, and hands over what it has.
	rtPass = redis.NewScript(`
redis.call("LREM", KEYS[2], 0, ARGV[1])
if redis.call("GET", KEYS[1]) ~= ARGV[1] then
	return 0
end
local heir = redis.call("LPOP", KEYS[2])
while heir and ARGV[4] == "careful" and redis.call("EXISTS", KEYS[2] .. ":" .. heir) == 0 do
	heir = redis.call("LPOP", KEYS[2])
end
if heir then
	redis.call("SET", KEYS[1], heir, "PX", ARGV[3])
else
	redis.call("DEL", KEYS[1])
end
return 1`)
)

type rtQueued struct {
	env   strategies.Env
	mode  string        // who is careful leaves the queue, and looks whether its first is still there
	offer time.Duration // for how long a lock is handed to somebody who has not fetched it
	token string
}

func (l *rtQueued) run(ctx context.Context, script *redis.Script, token string) (bool, error) {
	n, err := script.Run(ctx, l.env.Nodes[0], []string{l.env.Key, l.env.Key + ":queue"},
		token, l.env.TTL.Milliseconds(), l.offer.Milliseconds(), l.mode).Int()
	return n == 1, err
}

// leave forgets a token, though its caller has given up.
func (l *rtQueued) leave(ctx context.Context, token string) error {
	ctx, cancel := rtAfter(ctx, l.env)
	defer cancel()
	_, err := l.run(ctx, rtPass, token)
	return err
}

func (l *rtQueued) Acquire(ctx context.Context) error {
	token := rpToken(l.env)
	err := rtLoop(ctx, func(ctx context.Context) (bool, error) {
		sent := time.Now()
		won, err := l.run(ctx, rtJoin, token)
		if err == nil && won && rtTooLate(ctx, l.env, sent) {
			return false, l.leave(ctx, token)
		}
		return won, err
	})
	if err == nil {
		l.token = token
		return nil
	}
	if l.mode == "careful" {
		if failed := l.leave(ctx, token); failed != nil {
			return failed // the token may be in the queue, or have the lock
		}
	}
	return err
}

func (l *rtQueued) Release(ctx context.Context) error {
	if l.token == "" {
		return strategies.ErrNotHeld
	}
	had, err := l.run(ctx, rtPass, l.token)
	if err == nil && !had {
		err = strategies.ErrNotHeld
	}
	if rpKnown(err) {
		l.token = ""
	}
	return err
}

// 38. https://github.com/zoolutions/sidekiq-unique-jobs/issues/580: the reaper looks for a lock's worker
// under the name with a suffix, workers register without it, and so each running lock is an orphan.

var _ = rpAdd(rpSpec{
	name: "sidekiq-reaped-alive", source: "zoolutions/sidekiq-unique-jobs#580", tags: rpSingle(),
	bug: "who waits deletes a lock whose worker is not registered, and looks under a wrong name",
	fix: "who waits looks under the name that the acquire has registered",
	make: func(env strategies.Env, fixed bool) strategies.Lock {
		l := &rtReaping{env: env, looksAt: env.Key + ":worker:"}
		if !fixed {
			l.looksAt = env.Key + ":RUN:worker:"
		}
		return l
	},
})

var (
	// rtRegister takes the key, and registers its worker for longer than that.
	rtRegister = redis.NewScript(`
local value = redis.call("GET", KEYS[1])
if value and value ~= ARGV[1] then
	return 0
end
redis.call("SET", KEYS[2], "alive", "PX", 2 * ARGV[2])
redis.call("SET", KEYS[1], ARGV[1], "PX", ARGV[2])
return 1`)
	rtUnregister = redis.NewScript(`
local had = 0
if redis.call("GET", KEYS[1]) == ARGV[1] then
	had = redis.call("DEL", KEYS[1])
end
redis.call("DEL", KEYS[2])
return had`)
	rtReap = redis.NewScript(`
local value = redis.call("GET", KEYS[1])
if value and redis.call("EXISTS", ARGV[1] .. value) == 0 then
	return redis.call("DEL", KEYS[1])
end
return 0`)
)

type rtReaping struct {
	env     strategies.Env
	looksAt string // what comes before the value in the name that the reaper looks for
	token   string
}

func (l *rtReaping) run(ctx context.Context, script *redis.Script, token string) (bool, error) {
	n, err := script.Run(ctx, l.env.Nodes[0], []string{l.env.Key, l.env.Key + ":worker:" + token},
		token, l.env.TTL.Milliseconds()).Int()
	return n == 1, err
}

// undo takes back an acquire, though its caller has given up.
func (l *rtReaping) undo(ctx context.Context, token string) error {
	ctx, cancel := rtAfter(ctx, l.env)
	defer cancel()
	_, err := l.run(ctx, rtUnregister, token)
	return err
}

func (l *rtReaping) Acquire(ctx context.Context) error {
	token := rpToken(l.env)
	err := rtLoop(ctx, func(ctx context.Context) (bool, error) {
		sent := time.Now()
		won, err := l.run(ctx, rtRegister, token)
		switch {
		case err != nil:
			_ = l.undo(ctx, token) // it may arrive yet, so the outcome stays unknown
			return false, err
		case won && rtTooLate(ctx, l.env, sent):
			return false, l.undo(ctx, token)
		case won:
			return true, nil
		}
		// What becomes of this does not matter: the next attempt is another one.
		_ = rtReap.Run(ctx, l.env.Nodes[0], []string{l.env.Key}, l.looksAt).Err()
		return false, nil
	})
	if err == nil {
		l.token = token
	}
	return err
}

func (l *rtReaping) Release(ctx context.Context) error {
	if l.token == "" {
		return strategies.ErrNotHeld
	}
	had, err := l.run(ctx, rtUnregister, l.token)
	if err == nil && !had {
		err = strategies.ErrNotHeld
	}
	if rpKnown(err) {
		l.token = ""
	}
	return err
}

// 39. https://github.com/jefferyjob/go-redislock/pull/26: the token of a reentrant lock is the time in
// nanoseconds, so locks that are made at one moment let each other in as if they were one.

var _ = rpAdd(rpSpec{
	name: "go-redislock-nano-token", source: "jefferyjob/go-redislock#26",
	tags: rpSingle("reentrant"), creator: true,
	bug: "the token is the time at which the lock was made, and whoever has it may come in again",
	fix: "the token is unique, and whoever has it may come in again",
	make: func(env strategies.Env, fixed bool) strategies.Lock {
		if fixed {
			return &rpReentrant{env: env}
		}
		return &rtNanoToken{env: env, token: strconv.FormatInt(env.Now().UnixNano(), 10)}
	},
})

type rtNanoToken struct {
	env   strategies.Env
	token string
}

func (l *rtNanoToken) Acquire(ctx context.Context) error {
	return rtLoop(ctx, func(ctx context.Context) (bool, error) {
		n, err := rtHash(ctx, l.env, rtEnter, l.token)
		return n == 1, err
	})
}

func (l *rtNanoToken) Release(ctx context.Context) error {
	left, err := rtHash(ctx, l.env, rtExit, l.token)
	if err == nil && left < 0 {
		return strategies.ErrNotHeld
	}
	return err
}

// 40. https://github.com/bungle/lua-resty-session/pull/87: SETNX answers 0 if the key is there, and 0
// is true in Lua, so everybody believes that he has the lock.

var _ = rpAdd(rpSpec{
	name: "resty-session-zero", source: "bungle/lua-resty-session#87", tags: rpSingle(),
	bug: "any answer to SETNX counts as success, also 0",
	fix: "only the answer that the key was set counts as success",
	make: func(env strategies.Env, fixed bool) strategies.Lock {
		if fixed {
			return rpSoundOf(env)
		}
		return &rtAnyAnswer{rpSound{env: env}}
	},
})

var rtSetNX = redis.NewScript(`
local set = redis.call("SETNX", KEYS[1], ARGV[1])
if set == 1 then
	redis.call("PEXPIRE", KEYS[1], ARGV[2])
end
return set`)

type rtAnyAnswer struct{ rpSound }

func (l *rtAnyAnswer) Acquire(ctx context.Context) error {
	token := rpToken(l.env)
	return rtLoop(ctx, func(ctx context.Context) (bool, error) {
		answer, err := rtSetNX.Run(ctx, l.env.Nodes[0], []string{l.env.Key},
			token, l.env.TTL.Milliseconds()).Result()
		if err != nil {
			return false, err
		}
		l.token = token
		return answer != nil, nil
	})
}
