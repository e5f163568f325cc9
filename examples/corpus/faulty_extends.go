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
		validFor("faulty-extend-unchecked", "its extend says that all is well, and until when, when the lock is not its own any more",
			func(l *validLock) { l.trusting = true }),
		validFor("faulty-validity-late", "it counts the time for which its lock is valid from the reply, and not from the request",
			func(l *validLock) { l.late = true }),
	}
}

// extended returns a lock like plain with an Extend.
func extended(name, bug string, extend func(context.Context, *plain) error) strategies.Strategy {
	return specimen(name, bug, []string{strategies.TagExtending}, func(env strategies.Env) strategies.Lock {
		l := newPlain(env)
		return extending{polled{l.take, l.free}, func(ctx context.Context) error { return extend(ctx, l) }}
	})
}

// validFor returns a lock that says until when it is held, by a rule that change makes
// wrong.
func validFor(name, bug string, change func(*validLock)) strategies.Strategy {
	return specimen(name, bug, []string{strategies.TagExtending}, func(env strategies.Env) strategies.Lock {
		l := &validLock{plain: newPlain(env)}
		change(l)
		return l
	})
}

type validLock struct {
	*plain
	until    time.Time
	late     bool // it begins to count when it is answered
	trusting bool // it doesn't look what its extend is answered
}

func (l *validLock) Acquire(ctx context.Context) error {
	return poll(ctx, func() error { return l.TryAcquire(ctx) })
}

func (l *validLock) TryAcquire(ctx context.Context) error {
	return l.valid(func() error { return l.take(ctx) })
}

func (l *validLock) Extend(ctx context.Context) error {
	return l.valid(func() error {
		if err := l.prolong(ctx); !l.trusting {
			return err
		}
		return nil
	})
}

// valid asks for a lease, and notes when that ends.
func (l *validLock) valid(ask func() error) error {
	from := l.env.Now()
	err := ask()
	if l.late {
		from = l.env.Now()
	}
	if err == nil {
		l.until = from.Add(l.env.TTL)
	}
	return err
}

func (l *validLock) Release(ctx context.Context) error { return l.free(ctx) }

func (l *validLock) ValidUntil() time.Time { return l.until }
