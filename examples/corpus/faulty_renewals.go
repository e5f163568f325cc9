package main

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/lockfault/lockfault/strategies"
)

// dog renews a lock while it is held. It is right, but for what a specimen replaces.
type dog struct {
	period time.Duration
	renew  func(context.Context) error
	// after says what to do when a renewal failed: go on or not.
	after func(error) (on bool)

	stop chan struct{} // nil if it doesn't run
	runs sync.WaitGroup
}

func (d *dog) start() {
	if d.stop != nil {
		return
	}
	stop := make(chan struct{})
	d.stop = stop
	d.runs.Go(func() {
		for {
			select {
			case <-stop:
				return
			case <-time.After(d.period):
			}
			if err := d.renew(context.Background()); err != nil && !d.after(err) {
				return
			}
		}
	})
}

func (d *dog) end() {
	if d.stop != nil {
		close(d.stop)
		d.stop = nil
	}
}

// goOn keeps a dog running until the lock is not its client's.
func goOn(err error) bool { return !errors.Is(err, strategies.ErrNotHeld) }

// watched is a lock with a dog.
type watched struct {
	*plain
	dog      *dog
	early    bool // it starts before the lock is held
	immortal bool // it doesn't end with the release
}

func (l *watched) Acquire(ctx context.Context) error {
	return l.started(poll(ctx, func() error { return l.attempt(ctx) }))
}

func (l *watched) TryAcquire(ctx context.Context) error { return l.started(l.attempt(ctx)) }

func (l *watched) attempt(ctx context.Context) error {
	if l.early {
		l.dog.start()
	}
	return l.take(ctx)
}

func (l *watched) started(err error) error {
	switch {
	case err == nil:
		l.dog.start()
	case l.early:
		l.dog.end()
	}
	return err
}

func (l *watched) Release(ctx context.Context) error {
	if !l.immortal {
		l.dog.end()
	}
	return l.free(ctx)
}

func (l *watched) Close() error {
	l.dog.end()
	l.dog.runs.Wait()
	return nil
}

// renewed returns a lock with a dog that change makes worse.
func renewed(name, bug string, change func(*watched)) strategies.Strategy {
	return specimen(name, bug, []string{strategies.TagRenewing}, func(env strategies.Env) strategies.Lock {
		l := &watched{plain: newPlain(env)}
		l.dog = &dog{period: env.TTL / 3, renew: l.prolong, after: goOn}
		change(l)
		return l
	})
}

// faultyRenewals are locks whose leases are renewed in the wrong way.
func faultyRenewals() []strategies.Strategy {
	blind := func(l *watched) func(context.Context) error {
		return func(ctx context.Context) error {
			ok, err := l.db.PExpire(ctx, l.key, l.env.TTL).Result()
			if err == nil && !ok {
				return strategies.ErrNotHeld
			}
			return err
		}
	}
	return []strategies.Strategy{
		renewed("faulty-dog-blind", "its watchdog renews whatever key it finds",
			func(l *watched) { l.dog.renew = blind(l) }),
		renewed("faulty-dog-recreates", "its watchdog renews with SET, which makes the key anew and takes it from others",
			func(l *watched) {
				l.dog.renew = func(ctx context.Context) error {
					return l.db.Do(ctx, "SET", l.key, l.value, "PX", l.ms()).Err()
				}
			}),
		renewed("faulty-dog-xx", "its watchdog renews with SET XX, which takes the key from whoever has it",
			func(l *watched) {
				l.dog.renew = func(ctx context.Context) error {
					err := won(true, l.db.Do(ctx, "SET", l.key, l.value, "XX", "PX", l.ms()).Err())
					if errors.Is(err, strategies.ErrNotAcquired) {
						return strategies.ErrNotHeld
					}
					return err
				}
			}),
		renewed("faulty-dog-immortal", "its watchdog, which relies on being told, goes on after the release, and renews what others hold",
			func(l *watched) {
				l.immortal, l.dog.renew = true, blind(l)
				l.dog.after = func(error) bool { return true }
			}),
		renewed("faulty-dog-early", "its watchdog, which relies on the lock being held, starts when the acquire begins",
			func(l *watched) { l.early, l.dog.renew = true, blind(l) }),
		renewed("faulty-dog-quits", "its watchdog ends at the first renewal that gets no answer",
			func(l *watched) { l.dog.after = func(error) bool { return false } }),
		renewed("faulty-dog-late", "its watchdog comes once a lease, when that is over",
			func(l *watched) { l.dog.period = l.env.TTL }),
		onceRenewed(),
		notifying("faulty-lost-never", "it has a channel for the loss of the lock, and never closes it", func(*notifyingLock) {}),
		notifying("faulty-lost-late", "it tells of the loss of the lock a lease after it has learned of it",
			func(l *notifyingLock) { l.late = l.env.TTL }),
	}
}

// onceRenewed keeps the first watchdog for all holds.
func onceRenewed() strategies.Strategy {
	return specimen("faulty-dog-once", "it starts its watchdog once, so only the first hold is renewed", []string{strategies.TagRenewing},
		func(env strategies.Env) strategies.Lock {
			l := &watched{plain: newPlain(env)}
			l.dog = &dog{period: env.TTL / 3, renew: l.prolong, after: goOn}
			return &onceLock{watched: l}
		})
}

type onceLock struct {
	*watched
	once sync.Once
}

func (l *onceLock) Acquire(ctx context.Context) error {
	err := poll(ctx, func() error { return l.take(ctx) })
	if err == nil {
		l.once.Do(l.dog.start)
	}
	return err
}

func (l *onceLock) TryAcquire(ctx context.Context) error {
	err := l.take(ctx)
	if err == nil {
		l.once.Do(l.dog.start)
	}
	return err
}

// notifying returns a lock that tells of its loss, if change doesn't see to it that
// it doesn't.
func notifying(name, bug string, change func(*notifyingLock)) strategies.Strategy {
	return specimen(name, bug, []string{strategies.TagRenewing, classWatchdogTold}, func(env strategies.Env) strategies.Lock {
		l := &notifyingLock{watched: &watched{plain: newPlain(env)}, over: make(chan struct{})}
		change(l)
		l.dog = &dog{period: env.TTL / 3, renew: l.prolong, after: func(err error) bool {
			on := goOn(err)
			if !on && l.late > 0 {
				l.notify()
			}
			return on
		}}
		return l
	})
}

type notifyingLock struct {
	*watched
	late time.Duration // 0 is never
	lost chan struct{}
	over chan struct{} // closed by Close
}

func (l *notifyingLock) Acquire(ctx context.Context) error {
	lost := make(chan struct{})
	err := poll(ctx, func() error { return l.take(ctx) })
	if err == nil {
		l.lost = lost
		l.dog.start()
	}
	return err
}

func (l *notifyingLock) TryAcquire(ctx context.Context) error {
	err := l.take(ctx)
	if err == nil {
		l.lost = make(chan struct{})
		l.dog.start()
	}
	return err
}

func (l *notifyingLock) notify() {
	select {
	case <-l.over:
	case <-time.After(l.late):
		close(l.lost)
	}
}

func (l *notifyingLock) Lost() <-chan struct{} { return l.lost }

func (l *notifyingLock) Close() error {
	close(l.over)
	return l.watched.Close()
}
