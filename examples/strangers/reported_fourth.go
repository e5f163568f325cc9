package main

import (
	"context"
	"errors"
	"strings"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/lockfault/lockfault/strategies"
)

// 25. https://github.com/AmrSaber/simple-redis-mutex/issues/6: the promise is rejected when the waiting
// time is over, but the timer of the next attempt is not cleared, and a later attempt takes the key for nobody.

var _ = rpAdd(rpSpec{
	name: "simple-redis-mutex-retries", source: "AmrSaber/simple-redis-mutex#6", tags: rpSingle(),
	bug: "who gives up waiting is told so, and the attempts go on until one of them gets the key",
	fix: "who gives up waiting makes no more attempts",
	make: func(env strategies.Env, fixed bool) strategies.Lock {
		if fixed {
			return rpSoundOf(env)
		}
		l := &ruGoingOn{rpSound: rpSound{env: env}}
		l.alive, l.stop = context.WithCancel(context.Background())
		return l
	},
})

type ruGoingOn struct {
	rpSound
	alive context.Context // ends when the process does, and not with the caller
	stop  func()
	loops sync.WaitGroup
}

func (l *ruGoingOn) Acquire(ctx context.Context) error {
	token := rpToken(l.env)
	done := make(chan error, 1)
	l.loops.Go(func() { done <- rpAcquire(l.alive, l.env, token) })
	select {
	case <-ctx.Done():
	case err := <-done:
		if ctx.Err() != nil {
			break // rejected before, and a promise is settled once
		}
		if err == nil {
			l.token = token
		}
		return err
	}
	return strategies.ErrNotAcquired
}

func (l *ruGoingOn) Close() error {
	l.stop()
	l.loops.Wait()
	return nil
}

// 26. https://github.com/redisson/redisson/issues/7367: an acquire whose answer is late is sent again, the
// server counts it as a second entry of the same holder, and the one release leaves the key to the watchdog.

var _ = rpAdd(rpSpec{
	name: "redisson-counted-twice", source: "redisson/redisson#7367",
	tags: rpSingle("reentrant", strategies.TagRenewing),
	bug:  "an acquire without an answer is sent again, and counts twice",
	fix:  "the holder counts by itself, and an acquire that is sent again changes nothing",
	make: func(env strategies.Env, fixed bool) strategies.Lock {
		if fixed {
			return &ruReentrantWatched{rpReentrant: rpReentrant{env: env}}
		}
		return &ruResending{env: env, id: rpToken(env)}
	},
})

var (
	// ruEnterScript counts the entries of a holder in the field that is named after it.
	ruEnterScript = redis.NewScript(`
if redis.call("EXISTS", KEYS[1]) == 1 and redis.call("HEXISTS", KEYS[1], ARGV[1]) == 0 then
	return 0
end
redis.call("HINCRBY", KEYS[1], ARGV[1], 1)
redis.call("PEXPIRE", KEYS[1], ARGV[2])
return 1`)
	// ruLeaveScript returns how many entries are left, and -1 if there was none.
	ruLeaveScript = redis.NewScript(`
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
	ruStayScript = redis.NewScript(`
if redis.call("HEXISTS", KEYS[1], ARGV[1]) == 1 then
	return redis.call("PEXPIRE", KEYS[1], ARGV[2])
end
return 0`)
	// ruForgetScript takes back all entries of a holder.
	ruForgetScript = redis.NewScript(`
if redis.call("HEXISTS", KEYS[1], ARGV[1]) == 1 then
	redis.call("DEL", KEYS[1])
end
return 1`)
)

const ruResends = 4

type ruResending struct {
	env   strategies.Env
	id    string // of the process and its thread, the same for each acquire
	count int    // how often the caller has to release
	rpDog
}

func (l *ruResending) run(ctx context.Context, script *redis.Script) (int, error) {
	return script.Run(ctx, l.env.Nodes[0], []string{l.env.Key}, l.id, l.env.TTL.Milliseconds()).Int()
}

// enter asks once, and again for as long as no answer comes.
func (l *ruResending) enter(ctx context.Context) (won bool, sent time.Time, err error) {
	for i := 0; ; i++ {
		sent = time.Now()
		n, err := l.run(ctx, ruEnterScript)
		var said redis.Error
		if err == nil || errors.As(err, &said) || i == ruResends || !rpSleep(ctx, rpPause) {
			return n == 1, sent, err
		}
	}
}

// forget takes back what an acquire may have got, unless the caller has entered before.
func (l *ruResending) forget(ctx context.Context) error {
	if l.count > 0 {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), max(l.env.TTL/30, rpPause))
	defer cancel()
	_, err := l.run(ctx, ruForgetScript)
	return err
}

func (l *ruResending) Acquire(ctx context.Context) error {
	for ctx.Err() == nil {
		won, sent, err := l.enter(ctx)
		if err != nil {
			_ = l.forget(ctx)
			return err
		}
		if won && l.count == 0 && (ctx.Err() != nil || time.Since(sent) > l.env.TTL*9/10) {
			if err := l.forget(ctx); err != nil {
				return err
			}
			won = false
		}
		if won {
			if l.count++; l.count == 1 {
				l.start(l.env.TTL/3, func(ctx context.Context) error {
					n, err := l.run(ctx, ruStayScript)
					if err == nil && n == 0 {
						return strategies.ErrNotHeld
					}
					return err
				})
			}
			return nil
		}
		if !rpSleep(ctx, rpPause) {
			break
		}
	}
	return strategies.ErrNotAcquired
}

func (l *ruResending) Release(ctx context.Context) error {
	if l.count == 0 {
		return strategies.ErrNotHeld
	}
	l.count--
	left, err := l.run(ctx, ruLeaveScript)
	switch {
	case err != nil:
		if l.count == 0 {
			l.end()
		}
	case left < 0:
		l.count = 0
		l.end()
		err = strategies.ErrNotHeld
	case left == 0:
		l.end()
	} // else the server says that it is still held, so the watchdog stays
	return err
}

// ruReentrantWatched is a rpReentrant with a watchdog that ends before the last release is sent.
type ruReentrantWatched struct {
	rpReentrant
	rpDog
}

func (l *ruReentrantWatched) Acquire(ctx context.Context) error {
	before := l.token
	if err := l.rpReentrant.Acquire(ctx); err != nil {
		return err
	}
	if token := l.token; token != before {
		l.start(l.env.TTL/3, func(ctx context.Context) error {
			return rpRenew(ctx, l.env, l.env.Nodes[0], token)
		})
	}
	return nil
}

func (l *ruReentrantWatched) Release(ctx context.Context) error {
	if l.count <= 1 {
		l.end()
	}
	return l.rpReentrant.Release(ctx)
}

// 27. https://github.com/madelson/DistributedLock/pull/65: the command that takes the key adds the
// database's prefix to its name, and the script that releases it does not, so it looks for another key.

var _ = rpAdd(rpSpec{
	name: "distributedlock-prefix", source: "madelson/DistributedLock#65", tags: rpSingle(),
	bug: "the release asks for the key without its prefix, where there is none, and says that it has released",
	fix: "the release asks for the key that the acquire has set",
	make: func(env strategies.Env, fixed bool) strategies.Lock {
		if fixed {
			return rpSoundOf(env)
		}
		return &ruUnprefixed{rpSound{env: env}}
	},
})

type ruUnprefixed struct{ rpSound }

func (l *ruUnprefixed) Release(ctx context.Context) error {
	if l.token == "" {
		return strategies.ErrNotHeld
	}
	other := l.env
	if _, name, ok := strings.Cut(l.env.Key, ":"); ok {
		other.Key = name
	} else {
		other.Key = "without-prefix:" + l.env.Key // here the whole key counts as one with its prefix
	}
	err := rpGive(ctx, other, l.env.Nodes[0], l.token)
	if rpKnown(err) {
		l.token, err = "", nil // nobody looks whether the script has deleted anything
	}
	return err
}

// 28. https://github.com/kent8192/reinhardt-web/issues/740: the value is "1" for everybody, and the release
// deletes the key without a look, also one that a later holder has set.

var _ = rpAdd(rpSpec{
	name: "reinhardt-constant", source: "kent8192/reinhardt-web#740", tags: rpSingle(), creator: true,
	bug: "all have the same value, and the release is a plain DEL",
	fix: "each acquire has a value of its own, and the release compares it in a script",
	make: func(env strategies.Env, fixed bool) strategies.Lock {
		if fixed {
			return rpSoundOf(env)
		}
		return &ruConstant{env: env}
	},
})

type ruConstant struct{ env strategies.Env }

func (l *ruConstant) Acquire(ctx context.Context) error {
	return strategies.Poll(ctx, rpPause, func(ctx context.Context) error {
		won, err := l.env.Nodes[0].SetNX(ctx, l.env.Key, "1", l.env.TTL).Result()
		if err == nil && !won {
			return strategies.ErrNotAcquired
		}
		return err
	})
}

func (l *ruConstant) Release(ctx context.Context) error {
	return l.env.Nodes[0].Del(ctx, l.env.Key).Err()
}

// 29. https://github.com/symfony/symfony/issues/38541: the end of the lease belongs to the lock's key
// object, can only come nearer, and survives the release, so who acquires again later finds it expired.

var _ = rpAdd(rpSpec{
	name: "symfony-old-lifetime", source: "symfony/symfony#38541", tags: rpSingle(),
	bug: "the end of the first lease counts for all later ones, which are over before they begin",
	fix: "each acquire has a lease of its own",
	make: func(env strategies.Env, fixed bool) strategies.Lock {
		if fixed {
			return rpSoundOf(env)
		}
		return &ruOldLifetime{rpSound: rpSound{env: env}}
	},
})

type ruOldLifetime struct {
	rpSound
	until time.Time // of the first lease, and nothing sets it back
}

func (l *ruOldLifetime) Acquire(ctx context.Context) error {
	if err := l.rpSound.Acquire(ctx); err != nil {
		return err
	}
	now := l.env.Now()
	if end := now.Add(l.env.TTL); l.until.IsZero() || end.Before(l.until) {
		l.until = end
	}
	if !now.After(l.until) {
		return nil
	}
	token := l.token
	l.token = ""
	if err := rpUndo(ctx, l.env, l.env.Nodes[0], token); err != nil {
		return err
	}
	return strategies.ErrNotAcquired // "the lock has expired"
}

// 30. https://github.com/coleifer/walrus/issues/110: a waiter blocks on a list until the release puts
// something into it or the lease is over, but the lease is in milliseconds and BLPOP takes it for seconds.

var _ = rpAdd(rpSpec{
	name: "walrus-wait-seconds", source: "coleifer/walrus#110", tags: rpSingle(),
	bug: "who waits for a release that never comes does so for a thousand leases",
	fix: "who waits for a release asks by himself from time to time",
	make: func(env strategies.Env, fixed bool) strategies.Lock {
		l := &ruListening{rpSound: rpSound{env: env}}
		if fixed {
			l.wait = min(env.TTL, 4*rpPause)
		} else {
			l.wait = time.Duration(env.TTL.Milliseconds()) * time.Second
		}
		return l
	},
})

var ruGiveAndPushScript = redis.NewScript(`
if redis.call("GET", KEYS[1]) ~= ARGV[1] then
	return 0
end
redis.call("DEL", KEYS[1], KEYS[2])
redis.call("RPUSH", KEYS[2], "free")
redis.call("PEXPIRE", KEYS[2], ARGV[2])
return 1`)

type ruListening struct {
	rpSound
	wait time.Duration // for a release, until the next attempt
}

func (l *ruListening) event() string { return l.env.Key + ":event" }

func (l *ruListening) Acquire(ctx context.Context) error {
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

// listen waits for a release. It is BLPOP made of LPOP, so that it can end with its caller.
func (l *ruListening) listen(ctx context.Context) {
	end := time.Now().Add(l.wait)
	for rpSleep(ctx, rpPause) && time.Now().Before(end) {
		if err := l.env.Nodes[0].LPop(ctx, l.event()).Err(); !errors.Is(err, redis.Nil) {
			return // released; or an error, and the next attempt will see
		}
	}
}

func (l *ruListening) Release(ctx context.Context) error {
	if l.token == "" {
		return strategies.ErrNotHeld
	}
	n, err := ruGiveAndPushScript.Run(ctx, l.env.Nodes[0], []string{l.env.Key, l.event()},
		l.token, l.env.TTL.Milliseconds()).Int()
	if err == nil && n == 0 {
		err = strategies.ErrNotHeld
	}
	if rpKnown(err) {
		l.token = ""
	}
	return err
}

// 31. https://github.com/nateware/redis-objects/issues/234: the release deletes the key unless the lease is
// over by its own clock, and takes the lease's milliseconds for seconds, so it never seems to be.

var _ = rpAdd(rpSpec{
	name: "redis-objects-end", source: "nateware/redis-objects#234", tags: rpSingle(),
	bug: "the release deletes whatever is there for a thousand leases, since it thinks that they are one",
	fix: "the release compares the value in a script, and asks no clock",
	make: func(env strategies.Env, fixed bool) strategies.Lock {
		if fixed {
			return rpSoundOf(env)
		}
		return &ruTooLate{rpSound: rpSound{env: env}}
	},
})

type ruTooLate struct {
	rpSound
	until time.Time
}

func (l *ruTooLate) Acquire(ctx context.Context) error {
	err := l.rpSound.Acquire(ctx)
	if err == nil {
		l.until = l.env.Now().Add(time.Duration(l.env.TTL.Milliseconds()) * time.Second)
	}
	return err
}

func (l *ruTooLate) Release(ctx context.Context) error {
	if l.token == "" {
		return strategies.ErrNotHeld
	}
	if l.env.Now().Before(l.until) {
		if err := l.env.Nodes[0].Del(ctx, l.env.Key).Err(); err != nil {
			return err
		}
	}
	l.token = ""
	return nil
}

// 32. https://github.com/leandromoreira/redlock-rb/issues/129: an acquire raises the error of any node that
// cannot be reached, though the others are a majority and have granted it.

var _ = rpAdd(rpSpec{
	name: "redlock-rb-raises", source: "leandromoreira/redlock-rb#129", tags: rpMulti, nodes: 3,
	bug: "the error of one node of three ends the acquire",
	fix: "a node with an error is one that has not granted",
	make: func(env strategies.Env, fixed bool) strategies.Lock {
		if fixed {
			return &rpQuorum{env: env}
		}
		return &ruRaising{rpQuorum{env: env}}
	},
})

type ruRaising struct{ rpQuorum }

func (l *ruRaising) Acquire(ctx context.Context) error {
	token := rpToken(l.env)
	outcome := strategies.ErrNotAcquired // until a node has left it open
	for ctx.Err() == nil {
		sent := time.Now()
		yes, answered, err := l.each(ctx, l.limit(), func(ctx context.Context, node redis.UniversalClient) (bool, error) {
			return rpTake(ctx, l.env, node, token)
		})
		left := l.env.TTL - time.Since(sent) - l.env.TTL/100 - 2*time.Millisecond
		if err == nil && l.majority(yes, answered) && left > 0 && ctx.Err() == nil {
			l.token, l.until = token, l.env.Now().Add(left)
			return nil
		}
		if _, _, err := l.each(context.WithoutCancel(ctx), l.limit(), l.gave(token)); err != nil {
			outcome = err
		}
		if err != nil {
			return err
		}
		if !rpSleep(ctx, rpPause/2+time.Duration(l.env.Rand.Uint64()%uint64(2*rpPause))) {
			break
		}
	}
	return outcome
}
