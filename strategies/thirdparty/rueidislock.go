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

// rueidislockStrategy returns the library rueidislock with its default of two out of three keys.
// All keys are on one server. A script with SET NX PXAT acquires each key, PEXPIREAT renews it each
// half of the lease, and a compare-and-delete script releases it. Each script also reads its key
// under CLIENT TRACKING: the server notifies waiting clients and the holder that a key has changed.
// A waiting client then tries again; the holder checks whether the key still has its own value.
//
// The strategy sets NoLoopTracking, which requires Redis 7.0.5. Without NoLoopTracking, the server
// notifies a client of its own renewal, the client renews again because of the notification, and so
// on: from the first renewal to the release, commands follow each other as fast as the network
// permits.
//
// Histories of rueidislock are not reproducible. One goroutine per key sends the key's release, and
// repeats a command that was in progress when a connection broke. No seed controls the order in
// which the goroutines of one hold send. With KeyMajority 1 there is only one key, but a worse
// race: a failed attempt starts a goroutine before the attempt counts the failure. If the goroutine
// is first, which is rare, it mistakes the attempt for a release and removes the state with which
// its client waits. Nothing then wakes that client before the caller gives up.
//
// Known faults:
//   - Expiry times use time.Now, which no option replaces. FallbackSETPX applies to the acquire
//     only; renewals still use PEXPIREAT. If the client's clock is behind the server's clock by a
//     lease, its keys expire as soon as they are written, and the acquire succeeds nevertheless:
//     every client gets the lock. If the client's clock is ahead, the keys of a dead holder
//     remain longer by the difference. A script can move the server's clock. A script moves the
//     client's clock in Env.Now, which the library does not read, so client-clock-skew tests
//     nothing for this lock.
//   - The hold outlives the lease. A renewal may take a whole lease from its start, which is half
//     a lease after the previous renewal: until then, the context of the hold is not cancelled.
//   - A waiting client tries again only after a notification. After a lost notification it waits
//     until the caller gives up, even if the lock is free.
//   - A failed attempt and a release return when the scripts that delete the keys have been
//     answered. They wait up to a lease, regardless of the context. A release returns no result,
//     so its failure is not reported.
//   - Those of any lock on one server.
func rueidislockStrategy() strategies.Strategy {
	return Rueidislock("rueidislock", "the library rueidislock: SET NX PXAT on two of three keys, renewed by itself, woken by the server's invalidations", nil)
}

// Rueidislock returns a strategy of the library under another name. If set is not nil, it changes
// the options of the strategy rueidislock.
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
					ClientSetInfo:    rueidis.DisableClientSetInfo, // needed only for CLIENT LIST, and would require another permission
					// The keep-alive probes an idle connection after 1 s. Like all times here, the
					// value is proportional to a lease of 30 s.
					Dialer: net.Dialer{KeepAlive: env.TTL / 30},
					// The library's own delays without their random part, which uses the global
					// random source.
					RetryDelay: func(attempts int, _ rueidis.Completed, _ error) time.Duration {
						return min(env.TTL/30, time.Microsecond<<min(20, attempts))
					},
				},
				KeyPrefix:      rueidislockPrefix,
				KeyValidity:    env.TTL,
				NoLoopTracking: true,
				// The script determines how long to wait for a reply. The library's own 20 ms, for
				// any lease, pass on a busy machine before a connection exists, and nothing wakes a
				// client whose attempt ended this way.
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

// rueidislockPrefix is the library's default prefix.
const rueidislockPrefix = "rueidislock"

// majority returns the client that owns most of the lock's keys. majority is a
// [strategies.Strategy] Owner.
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
	held   context.Context // ends when the library considers the lock lost; nil while the lock is not held
	free   context.CancelFunc
	under  sync.WaitGroup // releases in progress
}

// Acquire returns the library's result for a caller that gives up: not acquired, even if the last
// attempt was interrupted and its outcome is unknown.
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

// acquire lets the library acquire the lock. The library uses its context for the hold, too, and a
// deadline of the context shortens the lease. Therefore the library gets a separate context, which
// ends with the caller's context only while the caller waits.
func (l *rueidislockLock) acquire(ctx context.Context, by func(context.Context, string) (context.Context, context.CancelFunc, error)) error {
	if ctx.Err() != nil {
		return l.notAcquired(ctx.Err())
	}
	whole, end := context.WithCancel(context.WithoutCancel(ctx))
	stop := context.AfterFunc(ctx, end)
	held, free, err := by(whole, l.env.Key)
	if !stop() && err == nil { // the caller gave up: release the lock again
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

// Release returns ErrNotHeld for a lock that the library considers lost. The library does not
// report the result of a release. The release continues after ctx is done; Close waits for it.
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

// Lost returns a channel that is closed when the library cancels the context of the hold.
func (l *rueidislockLock) Lost() <-chan struct{} {
	if l.held == nil {
		return nil
	}
	return l.held.Done()
}

func (l *rueidislockLock) Close() error {
	l.locker.Close()
	if l.free != nil {
		l.free() // the renewals have ended or will end
	}
	l.under.Wait()
	return nil
}
