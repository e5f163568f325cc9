package main

import (
	"context"
	"errors"
	"net"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/lockfault/lockfault/strategies"
)

// 13. https://github.com/samcook/RedLock.net/pull/64: an extension that is under way while the lock is
// released puts the key back, since the script of the extension sets a key that is gone
// (https://github.com/samcook/RedLock.net/pull/49).

var _ = rpAdd(rpSpec{
	name: "redlocknet-extend-revives", source: "samcook/RedLock.net#64", tags: rpSingle(strategies.TagRenewing),
	bug: "a watchdog whose renewal sets the key if it is gone, and may cross the release",
	fix: "a watchdog whose renewal prolongs what is there and its own, and nothing else",
	make: func(env strategies.Env, fixed bool) strategies.Lock {
		if fixed {
			return &rpSoundWatched{rpSound: rpSound{env: env}}
		}
		return &rpReviving{rpSoundWatched{rpSound: rpSound{env: env}}}
	},
})

var rpReviveScript = redis.NewScript(`
local value = redis.call("GET", KEYS[1])
if not value then
	redis.call("SET", KEYS[1], ARGV[1], "PX", ARGV[2])
	return 1
end
if value == ARGV[1] then
	return redis.call("PEXPIRE", KEYS[1], ARGV[2])
end
return 0`)

type rpReviving struct{ rpSoundWatched }

func (l *rpReviving) Acquire(ctx context.Context) error {
	if err := l.rpSound.Acquire(ctx); err != nil {
		return err
	}
	token := l.token
	l.start(l.env.TTL/2, func(ctx context.Context) error {
		n, err := rpReviveScript.Run(ctx, l.env.Nodes[0], []string{l.env.Key},
			token, l.env.TTL.Milliseconds()).Int()
		if err == nil && n == 0 {
			return strategies.ErrNotHeld
		}
		return err
	})
	return nil
}

// 14. https://github.com/redisson/redisson/issues/7272: an interrupted acquire leaves before its reply
// is there; the callback of the reply starts the watchdog afterwards, which nobody ends any more.

var _ = rpAdd(rpSpec{
	name: "redisson-late-watchdog", source: "redisson/redisson#7272", tags: rpSingle(strategies.TagRenewing),
	bug: "the reply's callback starts the watchdog, though the caller has given up",
	fix: "the watchdog starts when the acquire returns success, and who gives up takes back what he got",
	make: func(env strategies.Env, fixed bool) strategies.Lock {
		if fixed {
			return &rpSoundWatched{rpSound: rpSound{env: env}}
		}
		return &rpCallback{env: env}
	},
})

type rpCallback struct {
	env   strategies.Env
	token string
	calls sync.WaitGroup
	mutex sync.Mutex // held for no longer than a few assignments
	dogs  []*rpDog
}

func (l *rpCallback) Acquire(ctx context.Context) error {
	token := rpToken(l.env)
	return strategies.Poll(ctx, rpPause, func(ctx context.Context) error {
		result := make(chan error, 1)
		l.calls.Go(func() {
			won, err := rpTake(context.WithoutCancel(ctx), l.env, l.env.Nodes[0], token)
			if err == nil && !won {
				err = strategies.ErrNotAcquired
			}
			if err == nil {
				dog := &rpDog{}
				dog.start(l.env.TTL/3, func(ctx context.Context) error {
					return rpRenew(ctx, l.env, l.env.Nodes[0], token)
				})
				l.mutex.Lock()
				l.dogs = append(l.dogs, dog)
				l.mutex.Unlock()
			}
			result <- err
		})
		select {
		case err := <-result:
			if err == nil {
				l.token = token
			}
			return err
		case <-ctx.Done():
			l.cancel() // too early: there is none yet
			return ctx.Err()
		}
	})
}

func (l *rpCallback) cancel() {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	for _, dog := range l.dogs {
		dog.end()
	}
}

func (l *rpCallback) Release(ctx context.Context) error {
	if l.token == "" {
		return strategies.ErrNotHeld
	}
	l.cancel()
	err := rpGive(ctx, l.env, l.env.Nodes[0], l.token)
	if rpKnown(err) {
		l.token = ""
	}
	return err
}

func (l *rpCallback) Close() error {
	l.calls.Wait()
	for _, dog := range l.dogs {
		_ = dog.Close()
	}
	return nil
}

// 15. https://github.com/baomidou/lock4j/pull/28: the condition for the automatic release is the wrong
// way round, so the release that should be does nothing.

var _ = rpAdd(rpSpec{
	name: "lock4j-auto-release", source: "baomidou/lock4j#28", tags: rpSingle(),
	bug: "the release does nothing if it is to release by itself",
	fix: "the release releases",
	make: func(env strategies.Env, fixed bool) strategies.Lock {
		return &rpAutoRelease{rpSound: rpSound{env: env}, autoRelease: true, inverted: !fixed}
	},
})

type rpAutoRelease struct {
	rpSound
	autoRelease, inverted bool
}

func (l *rpAutoRelease) Release(ctx context.Context) error {
	if l.token == "" {
		return strategies.ErrNotHeld
	}
	if l.autoRelease == l.inverted {
		l.token = ""
		return nil
	}
	return l.rpSound.Release(ctx)
}

// 16. https://github.com/symfony/symfony/issues/31426: the lock's lifetime is counted from before the
// wait, so who waited longer than it gets the key and the exception that it has expired.

var _ = rpAdd(rpSpec{
	name: "symfony-waited-too-long", source: "symfony/symfony#31426", tags: rpSingle(),
	bug: "the lifetime starts with the wait: who waited longer fails, and leaves the key that he got",
	fix: "the lifetime starts with the attempt that succeeds",
	make: func(env strategies.Env, fixed bool) strategies.Lock {
		if fixed {
			return rpSoundOf(env)
		}
		return &rpExpiredWaiting{rpSound{env: env}}
	},
})

type rpExpiredWaiting struct{ rpSound }

func (l *rpExpiredWaiting) Acquire(ctx context.Context) error {
	end := time.Now().Add(l.env.TTL)
	if err := l.rpSound.Acquire(ctx); err != nil {
		return err
	}
	if time.Now().After(end) {
		l.token = ""
		return strategies.ErrNotAcquired // "lock expired"
	}
	return nil
}

// 17. https://github.com/resque/resque-scheduler/issues/298: the script's digest is looked up once, and
// when the server has lost the script there is no way to recover.

var _ = rpAdd(rpSpec{
	name: "resque-noscript", source: "resque/resque-scheduler#298", tags: rpSingle(),
	bug: "SCRIPT LOAD once, then EVALSHA for ever",
	fix: "EVALSHA, and EVAL when the server does not know the script",
	make: func(env strategies.Env, fixed bool) strategies.Lock {
		if fixed {
			return rpSoundOf(env)
		}
		return &rpNoScript{env: env}
	},
})

type rpNoScript struct {
	env        strategies.Env
	token      string
	take, give string
}

// run loads a script if its digest is not known yet, and runs it by its digest.
func (l *rpNoScript) run(ctx context.Context, script *redis.Script, sha *string, args ...any) (int, error) {
	if *sha == "" {
		loaded, err := script.Load(ctx, l.env.Nodes[0]).Result()
		if err != nil {
			return 0, err
		}
		*sha = loaded
	}
	return l.env.Nodes[0].EvalSha(ctx, *sha, []string{l.env.Key}, args...).Int()
}

func (l *rpNoScript) Acquire(ctx context.Context) error {
	token := rpToken(l.env)
	return strategies.Poll(ctx, rpPause, func(ctx context.Context) error {
		n, err := l.run(ctx, rpTakeScript, &l.take, token, l.env.TTL.Milliseconds())
		if err == nil && n == 0 {
			return strategies.ErrNotAcquired
		}
		if err == nil {
			l.token = token
		}
		return err
	})
}

func (l *rpNoScript) Release(ctx context.Context) error {
	if l.token == "" {
		return strategies.ErrNotHeld
	}
	n, err := l.run(ctx, rpGiveScript, &l.give, l.token)
	if err == nil && n == 0 {
		err = strategies.ErrNotHeld
	}
	if rpKnown(err) {
		l.token = ""
	}
	return err
}

// 18. https://github.com/redisson/redisson/issues/5761 (and 1763, which tells the sequence): a waiter
// subscribes after it has failed, the release is published in between, and the waiter waits for it.

var _ = rpAdd(rpSpec{
	name: "redisson-missed-unlock", source: "redisson/redisson#5761", tags: rpSingle(),
	bug: "try, subscribe, and wait for a message, which may have come before",
	fix: "try, subscribe, try again, and wait for a message or a moment",
	make: func(env strategies.Env, fixed bool) strategies.Lock {
		return &rpNotified{env: env, waitsForever: !fixed}
	},
})

var rpGiveAndTellScript = redis.NewScript(`
if redis.call("GET", KEYS[1]) == ARGV[1] then
	redis.call("DEL", KEYS[1])
	redis.call("PUBLISH", ARGV[2], "free")
	return 1
end
return 0`)

type rpNotified struct {
	env          strategies.Env
	waitsForever bool // waits for a message, however long it takes
	token        string
}

func (l *rpNotified) channel() string { return l.env.Key + ":free" }

func (l *rpNotified) Acquire(ctx context.Context) error {
	token := rpToken(l.env)
	var sub *redis.PubSub
	for ctx.Err() == nil {
		won, err := rpAttempt(ctx, l.env, token)
		if won {
			l.token = token
		}
		if won || err != nil {
			return err
		}
		fresh := sub == nil
		if fresh {
			sub = l.env.Nodes[0].Subscribe(ctx, l.channel())
			defer sub.Close()
		}
		if fresh && !l.waitsForever {
			continue // the subscription is sent; the key may have become free before
		}
		for {
			if l.received(ctx, sub) || !l.waitsForever || ctx.Err() != nil {
				break
			}
		}
	}
	return strategies.ErrNotAcquired
}

// received waits a moment for a message of the channel, and reports whether there was one.
func (l *rpNotified) received(ctx context.Context, sub *redis.PubSub) bool {
	end := time.Now().Add(200 * time.Millisecond)
	for time.Now().Before(end) && ctx.Err() == nil {
		got, err := sub.ReceiveTimeout(ctx, max(time.Until(end), time.Millisecond)) // 0 would be for ever
		if _, ok := got.(*redis.Message); ok && err == nil {
			return true
		}
		var timeout net.Error
		if err != nil && !(errors.As(err, &timeout) && timeout.Timeout()) {
			rpSleep(ctx, rpPause) // the connection is gone, and the library makes another
		}
	}
	return false
}

func (l *rpNotified) Release(ctx context.Context) error {
	if l.token == "" {
		return strategies.ErrNotHeld
	}
	n, err := rpGiveAndTellScript.Run(ctx, l.env.Nodes[0], []string{l.env.Key}, l.token, l.channel()).Int()
	if err == nil && n == 0 {
		err = strategies.ErrNotHeld
	}
	if rpKnown(err) {
		l.token = ""
	}
	return err
}

// 19. https://github.com/zeromicro/go-zero/pull/1366: a lock that has the key may acquire it once more,
// and nothing counts, so the first release of two lets others in. (The pull request adds the count.)

var _ = rpAdd(rpSpec{
	name: "go-zero-no-count", source: "zeromicro/go-zero#1366", tags: rpSingle("reentrant"),
	bug: "its holder is let in again, and the first release deletes the key",
	fix: "its holder is let in again and counts, and the last release deletes the key",
	make: func(env strategies.Env, fixed bool) strategies.Lock {
		if fixed {
			return &rpReentrant{env: env}
		}
		return &rpUncounted{env: env, id: rpToken(env)}
	},
})

type rpUncounted struct {
	env strategies.Env
	id  string
}

func (l *rpUncounted) Acquire(ctx context.Context) error { return rpAcquire(ctx, l.env, l.id) }

func (l *rpUncounted) Release(ctx context.Context) error {
	return rpGive(ctx, l.env, l.env.Nodes[0], l.id)
}

type rpReentrant struct {
	env   strategies.Env
	token string // empty if the key is known not to be ours
	count int    // how often the caller has to release
}

func (l *rpReentrant) Acquire(ctx context.Context) error {
	if l.count > 0 {
		err := rpRenew(ctx, l.env, l.env.Nodes[0], l.token)
		if err == nil && ctx.Err() != nil {
			return strategies.ErrNotAcquired // what the caller has besides stays his
		}
		if err == nil {
			l.count++
		}
		if !errors.Is(err, strategies.ErrNotHeld) {
			return err
		}
		// The lease was over, so this holder queues up like everybody.
	}
	token := rpToken(l.env)
	if err := rpAcquire(ctx, l.env, token); err != nil {
		return err
	}
	l.token, l.count = token, l.count+1
	return nil
}

func (l *rpReentrant) Release(ctx context.Context) error {
	if l.token == "" {
		l.count = max(l.count-1, 0)
		return strategies.ErrNotHeld
	}
	if l.count > 1 {
		l.count--
		value, err := l.env.Nodes[0].Get(ctx, l.env.Key).Result()
		if errors.Is(err, redis.Nil) || err == nil && value != l.token {
			return strategies.ErrNotHeld
		}
		return err
	}
	l.count = 0
	err := rpGive(ctx, l.env, l.env.Nodes[0], l.token)
	if rpKnown(err) {
		l.token = ""
	}
	return err
}

// 20. https://github.com/simstudioai/sim/pull/6864: an acquire that times out counts as refused, though
// the command can reach Redis and take the lock, which then nobody releases.

var _ = rpAdd(rpSpec{
	name: "sim-timed-out-acquire", source: "simstudioai/sim#6864", tags: rpSingle(),
	bug: "an acquire without an answer counts as refused, and nobody takes it back",
	fix: "an acquire without an answer is unknown, and is taken back by its value",
	make: func(env strategies.Env, fixed bool) strategies.Lock {
		if fixed {
			return rpSoundOf(env)
		}
		return &rpTimedOut{rpSound{env: env}}
	},
})

type rpTimedOut struct{ rpSound }

func (l *rpTimedOut) Acquire(ctx context.Context) error {
	token := rpToken(l.env)
	return strategies.Poll(ctx, rpPause, func(ctx context.Context) error {
		won, err := l.env.Nodes[0].SetNX(ctx, l.env.Key, token, l.env.TTL).Result()
		if err != nil {
			token = rpToken(l.env) // the next attempt is another acquire
			return strategies.ErrNotAcquired
		}
		if !won {
			return strategies.ErrNotAcquired
		}
		l.token = token
		return nil
	})
}
