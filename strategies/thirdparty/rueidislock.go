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

// rueidislockStrategy is the library rueidislock with its default of two out of three
// keys, all on one server, each taken by a script that does SET NX PXAT, renewed by PEXPIREAT each
// half of the lease, released by a compare-and-delete script. Each script reads its
// key, too, under CLIENT TRACKING: who waits for the lock, or holds it, is told by the
// server that a key has changed, and then tries again, or asks whether it is still
// its own.
//
// NoLoopTracking is set, which Redis has to be 7.0.5 for. Without it a renewal is a
// change that its client is told of, which renews again for that, and so on: from the
// first renewal to the release commands follow each other as fast as the network lets
// them.
//
// Its histories aren't the same each time: a goroutine for each key sends that key's
// release, and repeats what was on its way when a connection broke, and in which order
// those of one hold send nobody decides by a seed. With KeyMajority 1 there is one
// key, and a race that is worse: an attempt that fails starts a goroutine before it
// counts the failure. If that is first, which is rare, it takes the attempt for a
// release and removes what its client waits by. Nothing wakes that client then, before
// the caller gives up.
//
// Known faults:
//   - Dates come from time.Now, which no option replaces, not even FallbackSETPX: that
//     is for the acquire alone, and renewals go on with PEXPIREAT. If the client's clock
//     is behind the server's by a lease, its keys are gone as soon as they are written, and
//     the acquire succeeds all the same: everybody gets the lock. If it is ahead, keys whose
//     holder died stay for so much longer. A script can move the server's clock. The
//     client's it moves in Env.Now, which the library doesn't ask: client-clock-skew
//     has nothing to say of this lock.
//   - The hold outlives the lease. A renewal may take a whole lease from the moment at
//     which it sets out, half a lease after the one before: until that has passed, the
//     context that stands for the hold isn't cancelled.
//   - Who waits asks again when he is told to, and never else. A message that is lost is
//     waited for until the caller gives up, though the lock be free.
//   - A failed attempt and a release return when the scripts that delete the keys were
//     answered, for which they wait as long as the lease may last, whatever context
//     there is. A release returns nothing: that it failed is not said.
//   - Those of any lock on one server.
func rueidislockStrategy() strategies.Strategy {
	return Rueidislock("rueidislock", "the library rueidislock: SET NX PXAT on two of three keys, renewed by itself, woken by the server's invalidations", nil)
}

// Rueidislock is the library under another name, with other options than those of the
// strategy rueidislock where set changes them.
func Rueidislock(name, summary string, set func(*rueidislock.LockerOption)) strategies.Strategy {
	return strategies.Strategy{
		Name:    name,
		Summary: summary,
		Source:  "https://github.com/redis/rueidis/tree/main/rueidislock",
		Tags:    []string{strategies.TagSingle, strategies.TagRenewing},
		Keys: func(key string) []string {
			return []string{rueidislockPrefix + ":0:" + key, rueidislockPrefix + ":1:" + key, rueidislockPrefix + ":2:" + key}
		},
		Owner:         majority,
		HistoryVaries: "its goroutines send the releases of its keys on one connection, in the order in which Go runs them",
		New: func(env strategies.Env) (strategies.Lock, error) {
			if err := env.Check(name, 1); err != nil {
				return nil, err
			}
			option := rueidislock.LockerOption{
				ClientOption: rueidis.ClientOption{
					InitAddress: []string{env.Addr(0)}, ForceSingleClient: true,
					DialCtxFn: func(ctx context.Context, addr string, _ *net.Dialer, _ *tls.Config) (net.Conn, error) {
						return env.Dial(ctx, "tcp", addr)
					},
					ConnWriteTimeout: env.ReadTimeout(),
					ClientSetInfo:    rueidis.DisableClientSetInfo, // for CLIENT LIST, and a right more to be given
					// A connection that is idle for a second is asked whether it is
					// there; as all else here, in proportion to a lease of 30 s.
					Dialer: net.Dialer{KeepAlive: env.TTL / 30},
					// The library's own delays without their share of chance, which
					// comes from the global source.
					RetryDelay: func(attempts int, _ rueidis.Completed, _ error) time.Duration {
						return min(env.TTL/30, time.Microsecond<<min(20, attempts))
					},
				},
				KeyPrefix:      rueidislockPrefix,
				KeyValidity:    env.TTL,
				NoLoopTracking: true,
				// For how long an answer is waited for is for the script to say. The
				// library's own 20 ms, whatever the lease, are over on a busy machine
				// before a connection has been made, and nothing wakes a client whose
				// attempt ended so.
				TryNextAfter: env.ReadTimeout(),
			}
			if set != nil {
				set(&option)
			}
			locker, err := rueidislock.NewLocker(option)
			if err != nil {
				return nil, err
			}
			return &rueidislockLock{env: env, locker: locker}, nil
		},
	}
}

// rueidislockPrefix is the library's default.
const rueidislockPrefix = "rueidislock"

// majority reads that the lock is whose most of its keys are.
func majority(c strategies.Change) (client string, known bool) {
	keys := map[string]int{}
	for _, key := range c.After {
		if !key.Exists() {
			continue
		}
		if key.Type != "string" {
			return "", false
		}
		who := c.Wrote(key.Words[0])
		if who == "" {
			return "", false
		}
		if keys[who]++; 2*keys[who] > len(c.After) {
			client = who
		}
	}
	return client, true
}

type rueidislockLock struct {
	env    strategies.Env
	locker rueidislock.Locker
	held   context.Context // ends when the library takes the lock for lost; nil while it isn't held
	free   context.CancelFunc
	under  sync.WaitGroup // releases on their way
}

// Acquire returns what the library says of a caller who gives up: that he did, even if
// the last attempt was cut short and nobody knows what came of it.
func (l *rueidislockLock) Acquire(ctx context.Context) error {
	err := l.acquire(ctx, l.locker.WithContext)
	if err != nil && ctx.Err() != nil {
		return l.notAcquired(ctx.Err())
	}
	return err
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
	if errors.Is(err, rueidislock.ErrNotLocked) {
		return l.notAcquired(err)
	}
	return fmt.Errorf("strategies: rueidislock: %s: %w", l.env.Key, err)
}

func (l *rueidislockLock) notAcquired(why error) error {
	return fmt.Errorf("strategies: rueidislock: %s: %w: %w", l.env.Key, why, strategies.ErrNotAcquired)
}

// Release says of a lock that the library took for lost that it isn't held. What
// came of a release that was tried the library doesn't tell. It goes on when ctx is
// done; Close waits for it.
func (l *rueidislockLock) Release(ctx context.Context) error {
	if l.held == nil || l.held.Err() != nil {
		return fmt.Errorf("strategies: rueidislock: %s: %w", l.env.Key, strategies.ErrNotHeld)
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
		return fmt.Errorf("strategies: rueidislock: %s: %w", l.env.Key, ctx.Err())
	}
}

// Lost is closed when the library cancels the context that stands for the hold.
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
