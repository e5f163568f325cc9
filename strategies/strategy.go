// Package strategies holds the lock algorithms under test. The package defines the [Lock] interface
// of every strategy, the [Env] that a strategy receives, and the registry of the built-in
// strategies, with one file per algorithm.
//
// The input is an Env (ordinary go-redis clients, a key, a TTL); the output is a Lock. A strategy
// is ordinary Go: goroutines, time.Sleep and contexts run in virtual time without changes. The
// package imports no other package of this module.
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

// Errors that a [Lock] returns, possibly wrapped. Any other error means that the caller cannot know
// the outcome.
var (
	// ErrNotAcquired reports that the lock was not acquired, and that the attempt left nothing on
	// the servers as far as the lock can determine.
	ErrNotAcquired = errors.New("strategies: lock not acquired")
	// ErrNotHeld reports that the caller no longer held the lock, or never held the lock.
	ErrNotHeld = errors.New("strategies: lock not held")
)

// Lock is one client's handle on one named lock. A Lock is used by one client: no two of its
// methods are called concurrently.
//
// Optional abilities are found by type assertion: [TryAcquirer], [Extender], [Fenced], [Validity],
// [LossNotifier], and io.Closer for a lock with goroutines or connections that must end with its
// client.
type Lock interface {
	// Acquire retries until the lock is held, and blocks meanwhile. Acquire returns ErrNotAcquired
	// when it gives up, which it must do soon after ctx is done, and another error when the outcome
	// is unknown.
	Acquire(ctx context.Context) error
	// Release gives up the lock. Release returns ErrNotHeld if the caller no longer held the lock.
	Release(ctx context.Context) error
}

// TryAcquirer is a Lock that can make a single attempt.
type TryAcquirer interface {
	// TryAcquire makes one attempt to acquire the lock, and does not wait until the lock is free.
	// Its errors are those of Acquire.
	TryAcquire(ctx context.Context) error
}

// Extender is a Lock with a lease that its user can extend.
type Extender interface {
	// Extend resets the lease to the full TTL. Extend returns ErrNotHeld if the caller no longer
	// held the lock.
	Extend(ctx context.Context) error
}

// Fenced is a Lock that issues a fencing token, a number that grows with each acquisition.
type Fenced interface {
	// Token returns the fencing token of the current hold. The token is meaningful only after a
	// successful acquire.
	Token() int64
}

// Validity is a Lock that computes the end of its validity.
type Validity interface {
	// ValidUntil returns the end of the current hold's validity on the clock of Env.Now. The time
	// is meaningful only after a successful acquire or extend.
	ValidUntil() time.Time
}

// LossNotifier is a Lock that notifies its user when the lock is lost.
type LossNotifier interface {
	// Lost returns a channel that is closed when the current hold is found to be lost. Callers call
	// Lost after each successful acquire.
	Lost() <-chan struct{}
}

// Env holds the inputs from which a strategy builds one client's lock. The clients of one run share
// only the Redis nodes.
type Env struct {
	// Nodes holds one client per independent Redis node, in the order n1, n2 …; their number is
	// [Strategy.Nodes]. The strategy must not close them.
	Nodes []redis.UniversalClient
	// Servers holds the servers of a strategy that runs on another service than Redis, in the order
	// n1, n2 …. Nodes is empty then.
	Servers []Server
	// Key is the name of the lock. A strategy that needs more keys or channels derives their names
	// from Key.
	Key string
	// TTL is the lease.
	TTL time.Duration
	// Owner identifies this client's process. No two processes have the same Owner.
	Owner string
	// Thread identifies the client's thread within its process. Threads of other processes may have
	// the same value.
	Thread string
	// Replicas is the number of replicas of each node.
	Replicas int
	// Now reads this client's wall clock, which scenarios may set to a wrong time. Only an
	// algorithm that compares or publishes wall-clock times needs Now; to measure durations, use
	// time.Now and time.Since.
	Now func() time.Time
	// Rand is this client's own seeded random source. Rand is not safe for concurrent use.
	Rand *rand.Rand
}

// Server holds the address and the login of one server of another service than Redis.
type Server struct {
	// Addr is the host:port of this client's own link to the server. The faults of the link apply
	// to every connection to Addr, with any client library.
	Addr               string
	Username, Password string
}

// Redis is the service of a strategy whose Service is empty.
const Redis = "redis"

// Strategy describes one lock algorithm or library.
type Strategy struct {
	// Name identifies the strategy in scripts and commands. Name consists of lower-case letters,
	// digits and dashes.
	Name string
	// Service is the kind of server, if not Redis, such as "etcd". A lock of another service runs
	// in real time only.
	Service string
	// Summary describes in one line how the lock is acquired and released.
	Summary string
	// Source names the origin of the algorithm.
	Source string
	// Nodes is the number of independent Redis nodes, or of servers of the service; 0 means 1.
	Nodes int
	// AnyNodes reports that New accepts any number of nodes in Env.Nodes from 1. Nodes is then the
	// default number.
	AnyNodes bool
	// Tags are the strategy's groups, which scripts select as @tag.
	Tags []string
	// Keys returns the keys that identify the owner of the named lock on each node. If Keys is nil,
	// the lock's name is the only key. Counters and queues that outlive a hold do not belong to
	// Keys. The lease of a hold ends with the keys that have a word of the owner; if none has, and
	// Owner is set, with the first key.
	Keys func(key string) []string
	// Owner computes the new owner of the lock from a change of the keys. The result is a client's
	// name as the change has it, or an empty string if the lock is free. If Owner cannot determine
	// the owner, known is false, and the anomalies of the server side are not judged. Owner must
	// depend on its argument only. If Owner is nil, the words in the keys determine the owner: a
	// word that only one client has sent names that client.
	Owner func(Change) (client string, known bool)
	// Query asks a server of Service for the owners of the lock, in the service's own query
	// language. Without Query the anomalies of the server side are not judged. In Query, $1 stands
	// for Env.Key.
	//
	// PostgreSQL: a SELECT with one row for each owner. The first column is a text that only the
	// owner's client has sent, such as Env.Owner. The second column is the rest of the lease in
	// seconds: infinity if the lease never ends, NULL if the lock lasts as long as the session.
	//
	// etcd: a prefix of keys; the oldest key holds the lock. ZooKeeper: the path above sequential
	// nodes; the first node holds the lock. The key's value, or the node's data, is the text that
	// only the owner's client has sent.
	Query string
	// Expected lists, by scenario, the anomalies that the lock may show: at most these, and none
	// for an empty list. For a scenario that is not in the map, the expectations of the script
	// apply. A user's own script has the name of its file, such as "mine.txt".
	Expected map[string][]string
	// Nondeterministic gives, by scenario, the reason why chance decides which of the anomalies in
	// Expected the lock shows. The reason is one line that continues a sentence after "since". In
	// such a scenario, fewer anomalies do not count as an improvement.
	Nondeterministic map[string]string
	// HistoryVaries gives the reason why two runs with the same seed may differ in the order of
	// simultaneous events. The reason is one line that continues a sentence after "since". For such
	// a lock, the library's scenarios give the same verdict for the same seed, but not the same
	// history. If HistoryVaries is empty, the same seed gives a byte-identical history.
	HistoryVaries string
	// Refusals lists the lock's own errors that mean ErrNotAcquired or ErrNotHeld, as errors.Is
	// matches them. With Refusals, the lock of a library need not translate its errors.
	Refusals []error
	// New builds one client's lock on the key in env. A client calls New once for the lock and once
	// for a warm-up lock, from one goroutine.
	//
	// New may use Redis: connect, load scripts, start a goroutine that subscribes. Before a script
	// begins, this traffic is not recorded and its time does not count. In a client that the script
	// restarts, the faults of that moment apply to New. New has no context, so it must limit its
	// waiting itself. An error, a panic, or a New that does not return is an error of its cell.
	New func(env Env) (Lock, error)
	// Program, if not nil, is the program that runs as each client's process. New is nil then.
	Program *Program

	builtin bool // set by registries only
}

// On returns a copy of the strategy that runs on the given number of nodes. On returns an error if
// the strategy supports only its own number of nodes and that number differs.
func (s Strategy) On(nodes int) (Strategy, error) {
	if own := max(1, s.Nodes); nodes < 1 || nodes != own && !s.AnyNodes {
		return s, fmt.Errorf("strategies: %s runs on a number of nodes of its own, which is %d, and not on %d", s.Name, own, nodes)
	}
	s.Nodes = nodes
	return s, nil
}

// RunsOn returns the strategy's service, or [Redis] if Service is empty.
func (s Strategy) RunsOn() string { return cmp.Or(s.Service, Redis) }

// Builtin reports whether the strategy was taken from a registry as a strategy of this module. For
// a built-in strategy, the library's scripts expect exactly the anomalies that the strategy shows.
// For any other strategy, the scripts have only the expectations of its groups.
func (s Strategy) Builtin() bool { return s.builtin }
