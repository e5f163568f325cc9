package thirdparty

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"sync"
	"time"

	"github.com/redis/rueidis"
	"github.com/redis/rueidis/rueidislock"

	"github.com/lockfault/lockfault/strategies"
)

func rueidislockStrategy() strategies.Strategy {
	const name = "rueidislock"
	return strategies.Strategy{
		Name:    name,
		Summary: "the library rueidislock: SET NX PXAT, renewed by itself, woken by the server's invalidations",
		Source:  "https://github.com/redis/rueidis/tree/main/rueidislock",
		Tags:    []string{strategies.TagSingle, strategies.TagRenewing},
		Keys:    func(key string) []string { return []string{rueidislockPrefix + ":0:" + key} },
		New: func(env strategies.Env) (strategies.Lock, error) {
			if err := env.Check(name, 1); err != nil {
				return nil, err
			}
			locker, err := rueidislock.NewLocker(rueidislock.LockerOption{
				ClientOption: rueidis.ClientOption{
					InitAddress: []string{env.Addr(0)}, ForceSingleClient: true,
					DialCtxFn: func(ctx context.Context, addr string, _ *net.Dialer, _ *tls.Config) (net.Conn, error) {
						return env.Dial(ctx, "tcp", addr)
					},
					ConnWriteTimeout: env.ReadTimeout(),
					// A connection that is idle for a second is asked whether it is
					// there; as all else here, in proportion to a lease of 30 s.
					Dialer: net.Dialer{KeepAlive: env.TTL / 30},
					// The library's own delays without their share of chance, which
					// comes from the global source.
					RetryDelay: func(attempts int, _ rueidis.Completed, _ error) time.Duration {
						return min(time.Second, time.Microsecond<<min(20, attempts))
					},
				},
				KeyPrefix:      rueidislockPrefix,
				KeyValidity:    env.TTL,
				KeyMajority:    1, // there is one node
				NoLoopTracking: true,
			})
			if err != nil {
				return nil, err
			}
			return &rueidislockLock{name: name, env: env, locker: locker}, nil
		},
	}
}

// rueidislockPrefix is the library's default.
const rueidislockPrefix = "rueidislock"

type rueidislockLock struct {
	name   string
	env    strategies.Env
	locker rueidislock.Locker
	held   context.Context // ends when the library takes the lock for lost; nil while it isn't held
	free   context.CancelFunc
	under  sync.WaitGroup // releases on their way
}

func (l *rueidislockLock) Acquire(ctx context.Context) error {
	return l.acquire(ctx, l.locker.WithContext)
}

func (l *rueidislockLock) TryAcquire(ctx context.Context) error {
	return l.acquire(ctx, l.locker.TryWithContext)
}

// acquire lets the library acquire. The context that it is given is about the hold,
// too, and a deadline of it cuts the lease short. So it is given one of its own,
// which ends with the caller's only as long as the caller waits.
func (l *rueidislockLock) acquire(ctx context.Context, by func(context.Context, string) (context.Context, context.CancelFunc, error)) error {
	if ctx.Err() != nil {
		return l.notAcquired(ctx.Err())
	}
	whole, end := context.WithCancel(context.WithoutCancel(ctx))
	stop := context.AfterFunc(ctx, end)
	held, free, err := by(whole, l.env.Key)
	if !stop() && err == nil { // it is being released again
		free()
		err = ctx.Err()
	}
	if err == nil {
		l.held, l.free = held, func() { free(); end() }
		return nil
	}
	end()
	switch {
	case ctx.Err() != nil:
		return l.notAcquired(ctx.Err())
	case errors.Is(err, rueidislock.ErrNotLocked):
		return l.notAcquired(err)
	default:
		return fmt.Errorf("strategies: %s: %s: %w", l.name, l.env.Key, err)
	}
}

func (l *rueidislockLock) notAcquired(why error) error {
	return fmt.Errorf("strategies: %s: %s: %w: %w", l.name, l.env.Key, why, strategies.ErrNotAcquired)
}

func (l *rueidislockLock) Release(ctx context.Context) error {
	if l.held == nil || l.held.Err() != nil {
		return fmt.Errorf("strategies: %s: %s: %w", l.name, l.env.Key, strategies.ErrNotHeld)
	}
	free, done := l.free, make(chan struct{})
	l.held, l.free = nil, nil
	l.under.Go(func() {
		free()
		close(done)
	})
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("strategies: %s: %s: %w", l.name, l.env.Key, ctx.Err())
	}
}

func (l *rueidislockLock) Lost() <-chan struct{} {
	if l.held == nil {
		return nil
	}
	return l.held.Done()
}

func (l *rueidislockLock) Close() error {
	l.locker.Close()
	if l.free != nil {
		l.free() // what renews it has ended by now, or will
	}
	l.under.Wait()
	return nil
}
