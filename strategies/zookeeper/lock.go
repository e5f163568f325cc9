package zookeeper

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/lockfault/lockfault/strategies"
)

// lock is one client's lock. Its session begins with the lock, and begins again after it has ended.
// Only one goroutine at a time may use a lock.
type lock struct {
	env     strategies.Env
	path    string
	named   bool // acquire must find the node, for its zxid
	session *session
	recipe  *zk.Lock // of that session
	token   int64    // the zxid of the last hold's node
}

// leave returns the maximum time that a lock waits for its clean-up, in abandon and in Close: a
// tenth of the lease.
func (l *lock) leave() time.Duration { return l.env.TTL / 10 }

func newLock(env strategies.Env, named bool) (*lock, error) {
	if len(env.Servers) == 0 {
		return nil, errors.New("zookeeper: Env.Servers is empty: this lock runs on ZooKeeper")
	}
	l := &lock{env: env, path: "/" + env.Key, named: named}
	if err := l.begin(); err != nil {
		return nil, err
	}
	// If no server is available now, an acquire waits for one.
	ctx, cancel := context.WithTimeout(context.Background(), env.TTL)
	defer cancel()
	_ = l.session.await(ctx)
	return l, nil
}

// begin begins a session and makes a recipe in it. A recipe of an expired session stays locked
// forever.
func (l *lock) begin() error {
	s, err := open(l.env)
	if err != nil {
		return err
	}
	l.session, l.recipe = s, l.newRecipe(s)
	return nil
}

// newRecipe returns an unlocked recipe. Its nodes belong to the clients that logged in with the
// same password.
func (l *lock) newRecipe(s *session) *zk.Lock {
	return zk.NewLock(s.conn, l.path, zk.AuthACL(zk.PermAll))
}

// end ends the session and begins a new one.
func (l *lock) end() error {
	l.session.close()
	return l.begin()
}

// Acquire implements [strategies.Lock]. An attempt that ends with a broken connection is repeated
// until ctx is done.
func (l *lock) Acquire(ctx context.Context) error {
	unclear := false // a previous attempt may have left its node, which lasts as long as its session
	for {
		err := l.attempt(ctx, false)
		if err == nil {
			return nil
		}
		unclear = unclear || !errors.Is(err, strategies.ErrNotAcquired)
		if errors.Is(err, zk.ErrDeadlock) || !pause(ctx, nil) {
			if unclear {
				return errors.New(err.Error()) // the wrapped error is about the last attempt only
			}
			return err
		}
	}
}

// TryAcquire implements [strategies.TryAcquirer]. The recipe has no such operation: the adapter
// starts an acquire, and gives up when it sees another node before its own.
func (l *lock) TryAcquire(ctx context.Context) error { return l.attempt(ctx, true) }

// errTaken reports that another client is first in the queue.
var errTaken = errors.New("another node is before its own")

// attempt makes the recipe acquire once. If try is true, attempt does not wait for its turn. The
// error wraps [strategies.ErrNotAcquired] if the attempt left no node.
func (l *lock) attempt(ctx context.Context, try bool) error {
	if l.session.over() {
		if err := l.end(); err != nil {
			return not(strategies.ErrNotAcquired, err)
		}
	}
	if err := l.session.await(ctx); err != nil {
		return not(strategies.ErrNotAcquired, err) // at most a session can exist
	}
	recipe, done := l.recipe, make(chan error, 1)
	go func() { done <- recipe.LockWithData([]byte(l.env.Owner)) }()
	var taken <-chan struct{}
	if try {
		watching, stop := context.WithCancel(ctx)
		defer stop()
		taken = l.session.queues(watching, l.path)
	}
	select {
	case <-ctx.Done():
		return l.abandon(ctx, context.Cause(ctx), false)
	case <-taken:
		return l.abandon(ctx, errTaken, false)
	case err := <-done:
		switch {
		case errors.Is(err, zk.ErrDeadlock):
			return not(strategies.ErrNotAcquired, err)
		case err != nil:
			return l.abandon(ctx, err, true)
		case l.named:
			return l.name(ctx)
		}
		return nil
	}
}

// errNoNode reports that the recipe is locked but has no node.
var errNoNode = errors.New("the session that had the node has expired")

// name determines the token of a hold that has just begun.
func (l *lock) name(ctx context.Context) error {
	type answer struct {
		node
		err error
	}
	s, done := l.session, make(chan answer, 1)
	go func() {
		for {
			n, err := s.node(l.path)
			if err == nil || !pause(ctx, s.closed) {
				done <- answer{n, err}
				return
			}
		}
	}()
	var got answer
	select {
	case got = <-done:
	case <-ctx.Done():
		got.err = context.Cause(ctx)
	}
	if got.err == nil && got.name == "" {
		got.err = errNoNode
	}
	if got.err != nil {
		return l.abandon(ctx, got.err, true)
	}
	l.token = got.zxid
	return nil
}

// abandon gives up a hold or an attempt and returns an error. The error wraps
// [strategies.ErrNotAcquired] if a server confirmed that no node is left. Otherwise a remaining
// node ends with its session, which is no longer renewed. If the recipe has not returned, abandon
// ends the session, too, because the recipe's remaining actions are unknown.
func (l *lock) abandon(ctx context.Context, why error, returned bool) error {
	s, gone := l.session, make(chan bool, 1)
	go func() {
		found, err := s.clear(l.path)
		gone <- err == nil && (found || returned)
	}()
	nothing := false
	select {
	case nothing = <-gone:
	case <-ctx.Done():
		select {
		case nothing = <-gone:
		case <-time.After(l.leave()):
		}
	}
	if nothing && returned && !s.over() {
		l.recipe = l.newRecipe(s)
	} else if err := l.end(); err != nil {
		return fmt.Errorf("zookeeper: %w", errors.Join(why, err))
	}
	if nothing {
		return not(strategies.ErrNotAcquired, why)
	}
	return fmt.Errorf("zookeeper: %w", why)
}

// Release implements [strategies.Lock]. If a broken connection lost the reply, Release retries
// until ctx is done. The session then ends, and the lock is free at the latest when the session
// would have expired.
func (l *lock) Release(ctx context.Context) error {
	asked := false // a previous attempt may have deleted the node
	for {
		recipe, done := l.recipe, make(chan error, 1)
		go func() { done <- recipe.Unlock() }()
		var err error
		select {
		case <-ctx.Done():
			return l.unclear(ctx, context.Cause(ctx))
		case err = <-done:
		}
		switch {
		case err == nil:
			return nil
		case errors.Is(err, zk.ErrNotLocked), errors.Is(err, zk.ErrSessionExpired):
			return l.notHeld(err)
		case errors.Is(err, zk.ErrNoNode):
			if asked && !l.session.over() {
				l.recipe = l.newRecipe(l.session)
				return nil
			}
			return l.notHeld(err)
		}
		asked = true
		if !pause(ctx, nil) {
			return l.unclear(ctx, err)
		}
	}
}

// notHeld returns an error for a lock that the caller does not hold, and replaces the recipe with
// an unlocked one.
func (l *lock) notHeld(err error) error {
	l.recipe = l.newRecipe(l.session)
	return not(strategies.ErrNotHeld, err)
}

// unclear gives up a hold after a release with an unknown outcome, and returns the result of the
// release.
func (l *lock) unclear(ctx context.Context, why error) error {
	s := l.session
	err := l.abandon(ctx, why, true)
	switch {
	case !errors.Is(err, strategies.ErrNotAcquired):
		return err
	case s.over():
		return not(strategies.ErrNotHeld, why)
	}
	return nil // a server confirmed that the node is deleted
}

// not returns an error that wraps the result and its reason.
func not(what, why error) error { return fmt.Errorf("zookeeper: %w: %w", what, why) }

// Lost implements [strategies.LossNotifier]: the channel is closed when a server has reported the
// end of the session.
func (l *lock) Lost() <-chan struct{} { return l.session.expired }

// Close ends the session and the connection.
func (l *lock) Close() error {
	select {
	case <-l.session.close():
	case <-time.After(l.leave()): // the session expires without a message
	}
	return nil
}
