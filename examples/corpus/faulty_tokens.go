package main

import (
	"context"

	"github.com/redis/go-redis/v9"

	"github.com/lockfault/lockfault/strategies"
)

// faultyTokens are locks whose fencing tokens don't do what they are for.
func faultyTokens() []strategies.Strategy {
	return []strategies.Strategy{
		fencedBy("faulty-token-before", "it draws its token before it waits for the lock, and others come first with larger ones",
			count, nil),
		fencedBy("faulty-token-after", "it draws its token when it has the lock, which may be over by then", nil, count),
		fencedBy("faulty-token-random", "its tokens are random", nil,
			func(_ context.Context, l *plain) (int64, error) { return 1 + l.env.Rand.Int64N(1<<40), nil }),
		fencedBy("faulty-token-clock", "its tokens are the time by its own clock", nil,
			func(_ context.Context, l *plain) (int64, error) { return l.env.Now().UnixMicro(), nil }),
		fencedBy("faulty-token-own", "each client counts its tokens for itself", nil,
			func(ctx context.Context, l *plain) (int64, error) {
				return l.db.Incr(ctx, l.key+":fence:"+l.env.Owner).Result()
			}),
		fencedBy("faulty-token-expires", "its counter of tokens has the lock's lease, and begins anew after it", nil,
			func(ctx context.Context, l *plain) (int64, error) {
				return countAndExpire.Run(ctx, l.db, []string{l.key + ":fence"}, l.ms()).Int64()
			}),
		forgetful(fencedBy("faulty-token-deleted", "its release deletes the counter of tokens along with the lock", nil, count)),
	}
}

// count draws the next number of the lock's counter.
func count(ctx context.Context, l *plain) (int64, error) {
	return l.db.Incr(ctx, l.key+":fence").Result()
}

var countAndExpire = redis.NewScript(`
local n = redis.call("incr", KEYS[1])
redis.call("pexpire", KEYS[1], ARGV[1])
return n`)

type drawing func(context.Context, *plain) (int64, error)

// fencedBy returns a lock that draws its tokens before it waits, or when it has the lock.
func fencedBy(name, bug string, before, after drawing) strategies.Strategy {
	return specimen(name, bug, []string{strategies.TagFenced}, func(env strategies.Env) strategies.Lock {
		return &drawn{plain: newPlain(env), before: before, after: after}
	})
}

// forgetful returns the strategy with a release that deletes the counter.
func forgetful(s strategies.Strategy) strategies.Strategy {
	made := s.New
	s.New = func(env strategies.Env) (strategies.Lock, error) {
		l, err := made(env)
		if err == nil {
			l.(*drawn).forgets = true
		}
		return l, err
	}
	return s
}

type drawn struct {
	*plain
	before, after drawing
	forgets       bool // its release deletes the counter
	token         int64
}

func (l *drawn) Acquire(ctx context.Context) error {
	return l.with(ctx, func() error { return poll(ctx, func() error { return l.take(ctx) }) })
}

func (l *drawn) TryAcquire(ctx context.Context) error {
	return l.with(ctx, func() error { return l.take(ctx) })
}

func (l *drawn) with(ctx context.Context, acquire func() error) (err error) {
	token := int64(0)
	if l.before != nil {
		if token, err = l.before(ctx, l.plain); err != nil {
			return err
		}
	}
	if err := acquire(); err != nil {
		return err
	}
	if l.after != nil {
		if token, err = l.after(ctx, l.plain); err != nil {
			return err
		}
	}
	l.token = token
	return nil
}

func (l *drawn) Token() int64 { return l.token }

func (l *drawn) Release(ctx context.Context) error {
	err := l.free(ctx)
	if err == nil && l.forgets {
		err = l.db.Del(ctx, l.key+":fence").Err()
	}
	return err
}
