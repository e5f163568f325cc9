// Package etcd implements locks on etcd with etcd's own client library. The input is a
// [strategies.Env] with Servers; the outputs are [strategies.Strategy]s. The locks run in real time
// only.
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

// members is the number of servers of a cluster: a smaller cluster could not lose a member.
const members = 3

// All returns the locks.
func All() []strategies.Strategy { return []strategies.Strategy{mutex(), fenced()} }

// mutex returns the unmodified mutex of etcd's client library.
//
// Guarantee: the holder has the oldest key below the lock's name. The key lives as long as the
// lease of the client's session, which is renewed every third of its time. No other client gets the
// lock while the lease lasts, as long as a majority of the servers is left.
//
// Known fault: a client that stops for longer than its lease believes that it holds the lock until
// it learns that its session has ended, and its writes in the meantime are not refused. Jepsen lost
// 18 % of the updates of etcd 3.4.3 this way, with a lease of 2 s and a pause every 5 s
// (https://jepsen.io/analyses/etcd-3.4.3). According to etcd's own documentation, a lock alone does
// not protect a resource outside etcd
// (https://etcd.io/docs/v3.6/learning/why/#notes-on-the-usage-of-lock-and-lease).
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

// may returns the expected anomalies in scenarios where the lock differs from other locks that
// renew; written are additional anomalies of a lock without fencing.
//
// A session has one key in the lock's queue, which a second acquire finds again: the holder
// acquires again at once, and one release releases both. So a client never waits for itself, and
// after the first release another client holds the lock while the first client believes that it
// still holds it.
//
// A request in transit to a leader that has just died is lost. Its client gets no reply until its
// member gives up, after five seconds and two elections (ReqTimeout of etcd's server). n1 is the
// leader until the first fault.
//
// A client that gets no reply for the length of a lease concludes from its own clock that the
// session has ended.
//
// A request that a stopped member has received waits until the client gives up the connection; the
// client library does not retry a request that writes. So a client may hold the key without knowing
// it for as long as its session lasts, which the client renews.
//
// When a stopped leader resumes, a lease may end within milliseconds, even if its holder got a
// reply to its renewal.
//
// A client whose reply is lost gives up, but its session keeps the key.
//
// Without a majority no lease ends, so the owner keeps the key.
//
// A client that resumes after a pause learns from its own timer that its session must have ended,
// within about a millisecond. A write before that is stale.
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

// chance returns the reasons for nondeterministic results. In the scenarios timed, the result
// depends on whether A's timer or A's write is first.
//
// gRPC's round robin asks one member after the other and begins with a random member. An old leader
// that resumes may end leases that it considers expired
// (https://github.com/etcd-io/etcd/issues/15247).
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

// fenced returns the same lock with a fencing token: the revision of the store at the acquire,
// which every write increases. A resource that checks the token refuses the writes of previous
// holders.
func fenced() strategies.Strategy {
	s := mutex()
	s.Name = "etcd-mutex-revision"
	s.Summary = "etcd-mutex, with the store's revision at the acquire as fencing token"
	s.Source = "the same, with Mutex.Header, as etcd's documentation proposes"
	s.Tags = append(s.Tags, strategies.TagFenced)
	s.Expected, s.Nondeterministic = may(), chance() // the resource refuses writes with the older revision
	s.New = func(env strategies.Env) (strategies.Lock, error) {
		l, err := newLock(env)
		if err != nil {
			return nil, err
		}
		return &tokenLock{l}, nil
	}
	return s
}

// lock is one client's lock. Its session begins with the first acquire. If the session has ended,
// the next acquire begins a new session.
type lock struct {
	client  *clientv3.Client
	key     string
	ttl     int // seconds
	session *concurrency.Session
	mutex   *concurrency.Mutex // of the current or the last hold
}

// leave is the maximum time for revoking the session's lease in Close.
const leave = 100 * time.Millisecond

func newLock(env strategies.Env) (*lock, error) {
	if len(env.Servers) == 0 {
		return nil, errors.New("etcd: Env.Servers is empty: this lock runs on etcd")
	}
	cfg := clientv3.Config{
		DialTimeout: env.TTL, Username: env.Servers[0].Username, Password: env.Servers[0].Password,
		// Without keep-alives a connection without replies would never be given up.
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

// ready begins a session unless there is a live session.
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
		if ctx.Err() != nil { // at most a lease can exist
			return fmt.Errorf("%w: %w", strategies.ErrNotAcquired, err)
		}
		return err
	}
	l.mutex = concurrency.NewMutex(l.session, l.key)
	err := how(l.mutex, ctx)
	// Lock deletes its key if it gives up while it waits, and then sets Key to this value. If Lock
	// gave up earlier, it is unknown whether the key exists.
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
		_, _ = l.client.Revoke(ctx, l.session.Lease()) // otherwise the lease expires
	}
	return l.client.Close()
}

// tokenLock is a lock with revisions as fencing tokens.
type tokenLock struct{ *lock }

// Token implements [strategies.Fenced].
func (l *tokenLock) Token() int64 {
	if l.mutex == nil || l.mutex.Header() == nil { // the lock was never acquired
		return 0
	}
	return l.mutex.Header().Revision
}
