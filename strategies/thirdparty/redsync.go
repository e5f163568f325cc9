package thirdparty

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"time"

	"github.com/go-redsync/redsync/v4"
	redsyncredis "github.com/go-redsync/redsync/v4/redis"
	"github.com/go-redsync/redsync/v4/redis/goredis/v9"

	"github.com/lockfault/lockfault/strategies"
)

// redsyncOne is redsync on a single node: SET NX with an expiry, within 5 % of
// the TTL, released by its own compare-and-delete script.
//
// Known faults: those of any lock on one server without renewal.
func redsyncOne() strategies.Strategy {
	return redsyncOn("redsync", 1, []string{strategies.TagSingle, strategies.TagExtending},
		"the library redsync on one node")
}

// redsyncFive is redsync on five nodes, its Redlock: it asks all of them at
// once, each for 5 % of the TTL at most.
//
// Known faults: those of redlock. When the caller's context ends in the middle
// of an attempt, the clean-up is sent with a context that has ended too, so it
// isn't sent, and what was granted stays for its TTL.
func redsyncFive() strategies.Strategy {
	return redsyncOn("redsync-5", 5, []string{strategies.TagMulti, strategies.TagQuorum, strategies.TagExtending},
		"the library redsync, Redlock on a majority of five nodes asked at once")
}

func redsyncOn(name string, nodes int, tags []string, summary string) strategies.Strategy {
	return Redsync(strategies.Strategy{
		Name:    name,
		Summary: summary,
		Source:  "https://github.com/go-redsync/redsync (v4)",
		Nodes:   nodes, AnyNodes: nodes > 1,
		Tags: tags,
	}, nil)
}

// RedsyncPools makes one pool for each node that a lock is to live on, given in order,
// on another client library than go-redis or set up in another way. The lock's Close
// calls closeAll, if there is one.
type RedsyncPools func(env strategies.Env, nodes int) (pools []redsyncredis.Pool, closeAll func() error, err error)

// Redsync completes a strategy, which has everything but New, with a redsync mutex of
// these options. Its pools are those of Env.Nodes if connect is nil.
func Redsync(s strategies.Strategy, connect RedsyncPools, options ...redsync.Option) strategies.Strategy {
	if connect == nil {
		connect = goRedisPools
	}
	s.New = func(env strategies.Env) (strategies.Lock, error) {
		if err := env.Check(s.Name, 1); err != nil {
			return nil, err
		}
		nodes := len(env.Nodes)
		if s.Nodes <= 1 {
			nodes = 1
		}
		// In the order of the nodes, which WithShufflePools would mix up
		// by the global source of randomness; it is off by default.
		pools, closeAll, err := connect(env, nodes)
		if err != nil {
			return nil, err
		}
		// The library's own delay, 50 to 250 ms, drawn from the client's
		// seed rather than from the global source. The generator is the
		// lock's own, since Env.Rand is not for concurrent use.
		random := rand.New(rand.NewPCG(env.Rand.Uint64(), env.Rand.Uint64()))
		delay := func(int) time.Duration {
			return 50*time.Millisecond + time.Duration(random.Int64N(int64(200*time.Millisecond)))
		}
		mutex := redsync.New(pools...).NewMutex(env.Key, append([]redsync.Option{
			redsync.WithExpiry(env.TTL),
			redsync.WithRetryDelayFunc(delay),
			// How long to go on is for the caller's context to say, not
			// for a number of tries.
			redsync.WithTries(math.MaxInt),
		}, options...)...)
		lock := &redsyncLock{name: s.Name, env: env, mutex: mutex}
		if closeAll == nil {
			return lock, nil
		}
		return &closingRedsync{lock, closeAll}, nil
	}
	return s
}

// goRedisPools are the pools of Env.Nodes, which the lock must not close.
func goRedisPools(env strategies.Env, nodes int) (pools []redsyncredis.Pool, closeAll func() error, err error) {
	for _, client := range env.Nodes[:nodes] {
		pools = append(pools, goredis.NewPool(client))
	}
	return pools, nil, nil
}

type redsyncLock struct {
	name  string
	env   strategies.Env
	mutex *redsync.Mutex
}

// closingRedsync is a redsyncLock whose connections are its own.
type closingRedsync struct {
	*redsyncLock
	closeAll func() error
}

func (l *closingRedsync) Close() error { return l.closeAll() }

func (l *redsyncLock) Acquire(ctx context.Context) error {
	return l.acquired(l.mutex.LockContext(ctx))
}

func (l *redsyncLock) TryAcquire(ctx context.Context) error {
	return l.acquired(l.mutex.TryLockContext(ctx))
}

// acquired translates the result of an attempt. The library reports that a
// majority of the nodes said no, that it gave up, or all that went wrong; only
// an error on the way to a node leaves the outcome open.
func (l *redsyncLock) acquired(err error) error {
	var taken *redsync.ErrTaken
	switch {
	case err == nil:
		return nil
	case errors.As(err, &taken), !isRedisError(err):
		return fmt.Errorf("strategies: %s: %s: %w: %w", l.name, l.env.Key, err, strategies.ErrNotAcquired)
	default:
		return fmt.Errorf("strategies: %s: %s: %w", l.name, l.env.Key, err)
	}
}

func (l *redsyncLock) Release(ctx context.Context) error {
	released, err := l.mutex.UnlockContext(ctx)
	return l.held(released, err)
}

func (l *redsyncLock) Extend(ctx context.Context) error {
	extended, err := l.mutex.ExtendContext(ctx)
	return l.held(extended, err)
}

// held translates the result of an operation on a lock that is held: it is not
// if a majority said so, or if no node failed to answer.
func (l *redsyncLock) held(done bool, err error) error {
	var taken *redsync.ErrTaken
	switch {
	case done:
		return nil
	case err == nil:
		return fmt.Errorf("strategies: %s: %s: %w", l.name, l.env.Key, strategies.ErrNotHeld)
	case errors.As(err, &taken), !isRedisError(err):
		return fmt.Errorf("strategies: %s: %s: %w: %w", l.name, l.env.Key, err, strategies.ErrNotHeld)
	default:
		return fmt.Errorf("strategies: %s: %s: %w", l.name, l.env.Key, err)
	}
}

// ValidUntil translates the library's time, which is time.Now's, to the
// client's clock.
func (l *redsyncLock) ValidUntil() time.Time {
	return l.env.Now().Add(time.Until(l.mutex.Until()))
}

// isRedisError reports whether a node could not be asked.
func isRedisError(err error) bool {
	var unreachable *redsync.RedisError
	return errors.As(err, &unreachable)
}
