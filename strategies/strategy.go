// Package strategies holds the lock algorithms under test: the [Lock]
// interface that each implements, the [Env] that each is given, and the
// registry of the built-in ones, one file per algorithm.
//
// What comes in is an Env (ordinary go-redis clients, a key, a TTL); what goes
// out is a Lock. A strategy is ordinary Go: goroutines, time.Sleep and
// contexts need no adaptation to run in virtual time. The package imports
// nothing else of this module.
package strategies

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"

	"github.com/redis/go-redis/v9"
)

// Errors that a [Lock] returns, possibly wrapped. Any other error means that
// the outcome is unknown to the caller.
var (
	// ErrNotAcquired says that the lock was not acquired, and that nothing
	// of the attempt was left behind as far as the lock can tell.
	ErrNotAcquired = errors.New("strategies: lock not acquired")
	// ErrNotHeld says that the lock was no longer (or never) the caller's.
	ErrNotHeld = errors.New("strategies: lock not held")
)

// Lock is one client's handle on one named lock. Implementations are used by
// one client at a time: no two of its methods are called concurrently.
//
// More abilities are found by type assertion: [TryAcquirer], [Extender],
// [Fenced], [Validity], [LossNotifier], and io.Closer for a lock that has
// goroutines or connections to give up at the end of its client's life.
type Lock interface {
	// Acquire blocks, retrying, until the lock is held. It returns
	// ErrNotAcquired when it gave up, which it must soon after ctx is done;
	// another error when it can't tell.
	Acquire(ctx context.Context) error
	// Release gives the lock up. It returns ErrNotHeld where the lock was
	// no longer the caller's.
	Release(ctx context.Context) error
}

// TryAcquirer is a Lock that can make a single attempt.
type TryAcquirer interface {
	// TryAcquire is Acquire without waiting for the lock to become free.
	TryAcquire(ctx context.Context) error
}

// Extender is a Lock whose lease its user can prolong.
type Extender interface {
	// Extend resets the lease to the full TTL. It returns ErrNotHeld where
	// the lock was no longer the caller's.
	Extend(ctx context.Context) error
}

// Fenced is a Lock that hands out a fencing token, a number that grows with
// each acquisition.
type Fenced interface {
	// Token returns the fencing token of the present hold; it is only
	// meaningful after a successful acquire.
	Token() int64
}

// Validity is a Lock that knows until when its hold can be relied on.
type Validity interface {
	// ValidUntil returns the moment, on the clock of Env.Now, up to which
	// the present hold is valid; it is only meaningful after a successful
	// acquire or extend.
	ValidUntil() time.Time
}

// LossNotifier is a Lock that tells its user when it has lost the lock.
type LossNotifier interface {
	// Lost returns a channel that is closed when the present hold is found
	// to be lost. It is asked for after each successful acquire.
	Lost() <-chan struct{}
}

// Env is what a strategy is given to build one client's lock. The clients of
// one run share nothing but the Redis nodes.
type Env struct {
	// Nodes holds one client per independent Redis node, in order n1, n2 …;
	// as many as the strategy asked for in [Strategy.Nodes]. The strategy
	// must not close them.
	Nodes []redis.UniversalClient
	// Key is the name of the lock. A strategy that needs further keys or
	// channels derives them from it.
	Key string
	// TTL is the lease.
	TTL time.Duration
	// Owner names this client's process; no two processes have the same.
	Owner string
	// Thread names the client's thread within its process. Other processes
	// may well use the same one.
	Thread string
	// Replicas is how many replicas each node has.
	Replicas int
	// Now reads this client's wall clock, which scenarios may set wrong.
	// Only an algorithm that compares or publishes wall-clock times needs
	// it; for measuring a time span, time.Now and time.Since will do.
	Now func() time.Time
	// Rand is this client's own seeded source of randomness. It is not safe
	// for concurrent use.
	Rand *rand.Rand
}

// Strategy describes one lock algorithm or library.
type Strategy struct {
	// Name is what scripts and commands call it: lower case, digits, dashes.
	Name string
	// Summary says in one line how it acquires and releases.
	Summary string
	// Source names where the algorithm comes from.
	Source string
	// Nodes is how many independent Redis nodes it runs on; 0 means 1.
	Nodes int
	// Tags put the strategy into groups that scripts can name as @tag.
	Tags []string
	// New builds one client's lock on the key in env. It may talk to Redis.
	New func(env Env) (Lock, error)
}
