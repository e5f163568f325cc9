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
	"cmp"
	"context"
	"errors"
	"fmt"
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
	// Servers are where the servers of a strategy are that is one of another service
	// than Redis, in order n1, n2 …; there are no Nodes then.
	Servers []Server
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

// A Server is where a server is that is not Redis, and how to log in there.
type Server struct {
	// Addr is its host:port, of a link of this client's: faults befall what is dialled there,
	// by whatever client library.
	Addr               string
	Username, Password string
}

// Redis is the service of a strategy that says nothing else.
const Redis = "redis"

// Strategy describes one lock algorithm or library.
type Strategy struct {
	// Name is what scripts and commands call it: lower case, digits, dashes.
	Name string
	// Service is what its servers are, if not Redis, such as "etcd". Such a lock is played
	// in real time alone.
	Service string
	// Summary says in one line how it acquires and releases.
	Summary string
	// Source names where the algorithm comes from.
	Source string
	// Nodes is how many independent Redis nodes, or servers of its service, it runs on; 0 means 1.
	Nodes int
	// AnyNodes says that New makes the lock on as many nodes as Env.Nodes has, one or
	// more, and that Nodes is their number where nobody asks for another.
	AnyNodes bool
	// Tags put the strategy into groups that scripts can name as @tag.
	Tags []string
	// Keys returns the keys whose contents say whose the lock of that name is, on
	// each node; nil is the lock's name alone. Counters and queues that outlive a
	// hold are none of them.
	Keys func(key string) []string
	// Owner reads from a change of these keys whose the lock is now: a client by
	// the name that the change has for it, nobody if empty. If it can't tell,
	// known is false, and the anomalies that are read off servers are not judged.
	// It must be a function of its argument alone. Nil reads it by the words in
	// the keys: one that a single client has sent names that client.
	Owner func(Change) (client string, known bool)
	// Query asks a server of Service whose the lock is, in a language of that service's own; without it the anomalies that
	// are read off servers are not judged. In it $1 is Env.Key. For PostgreSQL it is a SELECT of those who have the lock: of each a text that
	// only his client has sent, such as Env.Owner, and for how many seconds he still has it: infinity if for good, NULL if as long as his
	// session lasts. For etcd it is a prefix of keys, of which the oldest has the lock, and for ZooKeeper the path above
	// sequential nodes, of which the first has it; its value, or data, is such a text.
	Query string
	// Expected says which anomalies the lock may show, by scenario: these at most, of
	// an empty list none. Under a scenario that it doesn't name the script says what
	// is expected. A script of one's own goes by its file's name, such as "mine.txt".
	Expected map[string][]string
	// Nondeterministic says, by scenario, in a line that goes on after "since", why it is chance which of the anomalies in May the
	// lock shows there. To show fewer is not better then.
	Nondeterministic map[string]string
	// HistoryVaries says, in a line that goes on after "since", why two runs of the same seed
	// may differ in the order of what happens at one instant. Under the library's
	// scenarios the same verdict is promised of such a lock, and nowhere the same
	// history. Empty promises that the same seed gives the same history, byte for byte.
	HistoryVaries string
	// Refusals are errors of the lock's own that say what ErrNotAcquired and ErrNotHeld
	// say: errors.Is tells them. A library's lock need not translate its errors then.
	Refusals []error
	// New builds one client's lock on the key in env. It may talk to Redis:
	// connect, load scripts, start a goroutine that subscribes. Before a
	// script begins nothing of that is recorded, and its time doesn't count.
	// In a client that the script restarts New meets the faults of that
	// moment. It has no context, so it bounds what it waits for by itself;
	// an error, a panic, or a New that doesn't return is its cell's error.
	// A client calls it once for the lock and once for the one that it warms
	// up with, from one goroutine.
	New func(env Env) (Lock, error)
	// Program, if there is one, is each client's process, and there is no New.
	Program *Program

	builtin bool // only a registry says so
}

// On returns the strategy on that number of nodes. The error says that it runs on
// another, and on no other.
func (s Strategy) On(nodes int) (Strategy, error) {
	if own := max(1, s.Nodes); nodes < 1 || nodes != own && !s.AnyNodes {
		return s, fmt.Errorf("strategies: %s runs on a number of nodes of its own, which is %d, and not on %d", s.Name, own, nodes)
	}
	s.Nodes = nodes
	return s, nil
}

// RunsOn returns its service, which is [Redis] if it says none.
func (s Strategy) RunsOn() string { return cmp.Or(s.Service, Redis) }

// Builtin reports whether the strategy is one of those that come with this
// module, as the registry says that it was taken from. What the library's scripts
// expect of such a strategy is what it shows, no more and no less; of any other they
// know only the group that it belongs to.
func (s Strategy) Builtin() bool { return s.builtin }
