package main

import (
	"context"
	"time"

	"github.com/lockfault/lockfault/strategies"
)

// faultyExtends are locks whose user prolongs what isn't there any more, or is told a
// wrong end.
func faultyExtends() []strategies.Strategy {
	return []strategies.Strategy{
		extended("faulty-extend-blind", "its extend prolongs whosever key it finds",
			func(ctx context.Context, l *plain) error {
				ok, err := l.db.PExpire(ctx, l.key, l.env.TTL).Result()
				if err == nil && !ok {
					return strategies.ErrNotHeld
				}
				return err
			}),
		extended("faulty-extend-resurrects", "its extend takes what nobody has, and so hides that others had it in between",
			func(ctx context.Context, l *plain) error {
				if err := l.prolong(ctx); err == nil {
					return nil
				}
				if won(true, l.db.Do(ctx, "SET", l.key, l.value, "NX", "PX", l.ms()).Err()) != nil {
					return strategies.ErrNotHeld
				}
				return nil
			}),
		extended("faulty-extend-keepttl", "its extend is SET XX KEEPTTL, which takes others' keys and prolongs nothing",
			func(ctx context.Context, l *plain) error {
				if won(true, l.db.Do(ctx, "SET", l.key, l.value, "XX", "KEEPTTL").Err()) != nil {
					return strategies.ErrNotHeld
				}
				return nil
			}),
		extended("faulty-extend-unchecked", "its extend says that all is well when the lock is not its own any more",
			func(ctx context.Context, l *plain) error {
				_ = l.prolong(ctx) // the bug
				return nil
			}),
		lateValidity(),
	}
}

// extended returns a lock like plain with an Extend.
func extended(name, bug string, extend func(context.Context, *plain) error) strategies.Strategy {
	return specimen(name, bug, []string{strategies.TagExtending}, func(env strategies.Env) strategies.Lock {
		l := newPlain(env)
		return extending{polled{l.take, l.free}, func(ctx context.Context) error { return extend(ctx, l) }}
	})
}

// lateValidity counts its lease from the reply on.
func lateValidity() strategies.Strategy {
	return specimen("faulty-validity-late", "it counts the time for which its lock is valid from the reply, and not from the request", nil,
		func(env strategies.Env) strategies.Lock { return &lateValidityLock{plain: newPlain(env)} })
}

type lateValidityLock struct {
	*plain
	until time.Time
}

func (l *lateValidityLock) Acquire(ctx context.Context) error {
	return poll(ctx, func() error { return l.TryAcquire(ctx) })
}

func (l *lateValidityLock) TryAcquire(ctx context.Context) error {
	err := l.take(ctx)
	if err == nil {
		l.until = l.env.Now().Add(l.env.TTL)
	}
	return err
}

func (l *lateValidityLock) Release(ctx context.Context) error { return l.free(ctx) }

func (l *lateValidityLock) ValidUntil() time.Time { return l.until }
