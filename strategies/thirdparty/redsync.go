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

// redsyncOne returns redsync on a single node. The lock uses SET NX with an expiry, a timeout of 5
// % of the TTL, and a release by redsync's own compare-and-delete script.
//
// Known faults: those of any lock on one server without renewal.
func redsyncOne() strategies.Strategy {
	return redsyncOn("redsync", 1, []string{strategies.TagSingle, strategies.TagExtending},
		"the library redsync on one node")
}

// redsyncFive returns redsync on five nodes, which is its Redlock. The lock asks all nodes at once,
// each with a timeout of 5 % of the TTL.
//
// Known faults: those of redlock. If the caller's context ends during an attempt, the library
// starts the clean-up with a context that has also ended, so nothing is sent, and granted keys
// remain for their TTL.
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

// RedsyncPools returns one pool for each node of a lock, in the order of the nodes. A RedsyncPools
// serves for another client library than go-redis, or for other settings. The lock's Close calls
// closeAll if closeAll is not nil.
type RedsyncPools func(env strategies.Env, nodes int) (pools []redsyncredis.Pool, closeAll func() error, err error)

// Redsync returns the strategy s with a New that creates a redsync mutex with the given options. If
// connect is nil, the pools use Env.Nodes.
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
		// The pools keep the order of the nodes. WithShufflePools, which is off by default, would
		// shuffle them with the global random source.
		pools, closeAll, err := connect(env, nodes)
		if err != nil {
			return nil, err
		}
		// The delay is the library's own, 50 to 250 ms, but comes from the client's seed instead of
		// the global random source. The lock has its own generator, since Env.Rand is not safe for
		// concurrent use.
		random := rand.New(rand.NewPCG(env.Rand.Uint64(), env.Rand.Uint64()))
		delay := func(int) time.Duration {
			return 50*time.Millisecond + time.Duration(random.Int64N(int64(200*time.Millisecond)))
		}
		mutex := redsync.New(pools...).NewMutex(env.Key, append([]redsync.Option{
			redsync.WithExpiry(env.TTL),
			redsync.WithRetryDelayFunc(delay),
			// The caller's context limits the retries, not a number of tries.
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

// goRedisPools returns the pools of Env.Nodes, which the lock must not close.
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

// closingRedsync is a redsyncLock that owns its connections.
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

// acquired translates the result of an attempt. The library reports that a majority of the nodes
// refused, that it gave up, or all errors that occurred. Only an error in the communication with a
// node makes the outcome unknown.
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

// held translates the result of an operation on a held lock. The lock is not held if a majority of
// the nodes said so, or if the operation failed and all nodes replied.
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

// ValidUntil converts the library's time, which is on the clock of time.Now, to the client's clock.
func (l *redsyncLock) ValidUntil() time.Time {
	return l.env.Now().Add(time.Until(l.mutex.Until()))
}

// isRedisError reports whether the communication with a node failed.
func isRedisError(err error) bool {
	var unreachable *redsync.RedisError
	return errors.As(err, &unreachable)
}
