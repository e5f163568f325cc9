// Package etcd has locks on etcd, of its own client library. What comes in is a
// [strategies.Env] with Servers; what goes out are [strategies.Strategy]s.
package etcd

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/client/v3/concurrency"

	"github.com/lockfault/lockfault/strategies"
)

// Service is the name of the service.
const Service = "etcd"

// members is how many servers a cluster has: with fewer none may be missing.
const members = 3

// All returns the locks.
func All() []strategies.Strategy { return []strategies.Strategy{mutex(), fenced()} }

// mutex is the mutex of etcd's client library, as it is.
//
// What it promises: who holds has the oldest key below the lock's name, which lives as long as the
// lease of its session, and that is renewed every third of its time. Nobody else gets the key as
// long as the lease lasts, however the servers fail, if a majority is left.
//
// Its known fault: a client that stops for longer than its lease goes on believing that it holds, until
// it hears that its session has ended; and what it writes meanwhile nobody refuses. Jepsen lost 18 % of
// the updates of etcd 3.4.3 that way, with a lease of 2 s and a pause every 5 s
// (https://jepsen.io/analyses/etcd-3.4.3); etcd's own documentation says that a lock alone doesn't protect
// a resource that etcd doesn't guard (https://etcd.io/docs/v3.6/learning/why/#notes-on-the-usage-of-lock-and-lease).
func mutex() strategies.Strategy {
	return strategies.Strategy{
		Name:             "etcd-mutex",
		Service:          Service,
		Summary:          "a key of its session's lease, the oldest of all below the lock's name; the session renews the lease",
		Source:           "go.etcd.io/etcd/client/v3/concurrency, Session and Mutex",
		Nodes:            members,
		Tags:             []string{strategies.TagMulti, strategies.TagQuorum, strategies.TagRenewing},
		Query:            "$1/",
		Expected:         may("stale-write"),
		Nondeterministic: chance("gc-pause-holding"),
		New:              func(env strategies.Env) (strategies.Lock, error) { return newLock(env) },
	}
}

// may says what it shows where it differs from what scripts expect of locks that renew. A session has one
// key in the lock's queue, which an acquire finds again: who holds acquires once more at once, and one release
// gives back both. So nobody waits for himself, and after the first release another holds beside who believes that he does.
//
// A request that is on its way to a leader which has just died is lost, and its client hears nothing until
// its member gives up: after five seconds and two elections (ReqTimeout of etcd's server). n1 leads as long as
// nothing has happened.
//
// Who hears nothing of the servers for a lease knows by a clock of his own that the session is over.
//
// A request that a stopped member has taken waits until the client gives up the connection; and if it writes, nobody repeats it. So a client may
// have the key, and not know it, for as long as its session lasts, which it renews.
//
// When a leader goes on that was stopped, a lease may end within milliseconds, whether its holder heard that it was renewed or not.
//
// Whose answer is lost gives up and has the key nevertheless, which his session keeps.
//
// Without a majority no lease ends, so the key stays whose it was.
//
// A client that goes on after a pause learns from a timer of its own that its session must have ended, within
// a millisecond or so. What it writes before that, if it does, is stale.
func may(written ...string) map[string][]string {
	return map[string][]string{
		"gc-pause-holding":           append([]string{"overlap"}, written...),
		"fencing-order":              {"overlap", "stale-write"},
		"node-down":                  {"unavailable"},
		"holder-cut-off":             {},
		"leader-paused":              append([]string{"overlap"}, written...),
		"leader-cut-off":             {},
		"follower-behind":            {"unavailable", "stuck-lock"},
		"ghost-retry":                {"stuck-lock"},
		"all-cut-off":                {"stuck-lock"},
		"reentrant-acquire":          {},
		"acquire-twice-release-once": {"overlap", "stale-write"},
	}
}

// chance says what of it is chance. In more scenarios it is who of two comes first, A's timer or its write.
//
// gRPC's round robin asks one member after the other, and begins with any. An old leader that goes on may have leases ended that it takes
// to be over (https://github.com/etcd-io/etcd/issues/15247).
func chance(timed ...string) map[string]string {
	all := map[string]string{
		"node-down":       "an acquire takes some six seconds there, for which a lease of 4 s is too short and the one of a cell that is played again, since the machine was late, may not be",
		"leader-paused":   "as the old leader goes on A's lease ends within milliseconds, or doesn't",
		"follower-behind": "it is drawn by lot which member a client asks first, and only who asks the one that was stopped waits, or has a key that it doesn't know of",
	}
	for _, scenario := range timed {
		all[scenario] = "A's own timer tells it within a millisecond of its write that its session must be over"
	}
	return all
}

// fenced is the same lock, and its token is the revision of the store at which it was acquired, which
// every write makes larger. Who guards a resource by that refuses what is written by whoever held before.
func fenced() strategies.Strategy {
	s := mutex()
	s.Name = "etcd-mutex-revision"
	s.Summary = "etcd-mutex, with the store's revision at the acquire as fencing token"
	s.Source = "the same, with Mutex.Header, as etcd's documentation proposes"
	s.Tags = append(s.Tags, strategies.TagFenced)
	s.Expected, s.Nondeterministic = may(), chance() // the resource turns away what is written with the older revision
	s.New = func(env strategies.Env) (strategies.Lock, error) {
		l, err := newLock(env)
		if err != nil {
			return nil, err
		}
		return &tokenLock{l}, nil
	}
	return s
}

// lock is one client's lock. Its session begins with the first acquire, and anew when it has
// ended.
type lock struct {
	client  *clientv3.Client
	key     string
	ttl     int // seconds
	session *concurrency.Session
	mutex   *concurrency.Mutex // of the present hold, or the last
}

// leave is how long a lock takes at most to tell the servers that it goes.
const leave = 100 * time.Millisecond

func newLock(env strategies.Env) (*lock, error) {
	if len(env.Servers) == 0 {
		return nil, errors.New("etcd: Env.Servers is empty: this lock runs on etcd")
	}
	cfg := clientv3.Config{
		DialTimeout: env.TTL, Username: env.Servers[0].Username, Password: env.Servers[0].Password,
		// Else a connection on which nothing comes through would never be given up.
		DialKeepAliveTime: max(env.TTL/2, time.Second), DialKeepAliveTimeout: max(env.TTL/4, 500*time.Millisecond),
	}
	for _, s := range env.Servers {
		cfg.Endpoints = append(cfg.Endpoints, s.Addr)
	}
	client, err := clientv3.New(cfg)
	if err != nil {
		return nil, fmt.Errorf("etcd: %w", err)
	}
	client.KV = signed{client.KV, env.Owner}
	return &lock{client: client, key: env.Key, ttl: int(math.Ceil(env.TTL.Seconds()))}, nil
}

// ready sees to it that there is a session.
func (l *lock) ready(ctx context.Context) error {
	if l.session != nil {
		select {
		case <-l.session.Done():
		default:
			return nil
		}
	}
	lease, err := l.client.Grant(ctx, int64(l.ttl))
	if err != nil {
		return err
	}
	l.session, err = concurrency.NewSession(l.client, concurrency.WithTTL(l.ttl), concurrency.WithLease(lease.ID))
	return err
}

// Acquire implements [strategies.Lock].
func (l *lock) Acquire(ctx context.Context) error {
	return l.acquire(ctx, (*concurrency.Mutex).Lock)
}

// TryAcquire implements [strategies.TryAcquirer].
func (l *lock) TryAcquire(ctx context.Context) error {
	return l.acquire(ctx, (*concurrency.Mutex).TryLock)
}

func (l *lock) acquire(ctx context.Context, how func(*concurrency.Mutex, context.Context) error) error {
	if err := l.ready(ctx); err != nil {
		if ctx.Err() != nil { // nothing but a lease can be there
			return fmt.Errorf("%w: %w", strategies.ErrNotAcquired, err)
		}
		return err
	}
	l.mutex = concurrency.NewMutex(l.session, l.key)
	err := how(l.mutex, ctx)
	// Lock deletes its key if it gives up while it waits, and says so by a key of this name. If it gave up before,
	// nobody knows whether the key is there.
	gone := l.mutex.Key() == "\x00"
	if errors.Is(err, concurrency.ErrLocked) || errors.Is(err, concurrency.ErrSessionExpired) || err != nil && gone {
		return fmt.Errorf("%w: %w", strategies.ErrNotAcquired, err)
	}
	return err
}

// Release implements [strategies.Lock].
func (l *lock) Release(ctx context.Context) error {
	if l.mutex == nil {
		return strategies.ErrNotHeld
	}
	err := l.mutex.Unlock(ctx)
	if errors.Is(err, concurrency.ErrLockReleased) {
		return fmt.Errorf("%w: %w", strategies.ErrNotHeld, err)
	}
	return err
}

// Lost implements [strategies.LossNotifier].
func (l *lock) Lost() <-chan struct{} { return l.session.Done() }

// Close ends the session and the connections.
func (l *lock) Close() error {
	if l.session != nil {
		ctx, cancel := context.WithTimeout(context.Background(), leave)
		defer cancel()
		l.session.Orphan()
		_, _ = l.client.Revoke(ctx, l.session.Lease()) // else it ends by itself
	}
	return l.client.Close()
}

// tokenLock is a lock that hands out revisions.
type tokenLock struct{ *lock }

// Token implements [strategies.Fenced].
func (l *tokenLock) Token() int64 {
	if l.mutex == nil || l.mutex.Header() == nil { // it was never acquired
		return 0
	}
	return l.mutex.Header().Revision
}
