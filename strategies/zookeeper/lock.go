package zookeeper

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/lockfault/lockfault/strategies"
)

// lock is one client's lock. Its session begins with it, and anew when it has ended. It is used by
// one goroutine at a time.
type lock struct {
	env     strategies.Env
	path    string
	named   bool // its node must be found, for its zxid
	session *session
	recipe  *zk.Lock // of that session
	token   int64    // the zxid of the last hold's node
}

// leave is how long a lock takes at most to tell the servers that it goes: a tenth of the lease.
func (l *lock) leave() time.Duration { return l.env.TTL / 10 }

func newLock(env strategies.Env, named bool) (*lock, error) {
	if len(env.Servers) == 0 {
		return nil, errors.New("zookeeper: Env.Servers is empty: this lock runs on ZooKeeper")
	}
	l := &lock{env: env, path: "/" + env.Key, named: named}
	if err := l.begin(); err != nil {
		return nil, err
	}
	// Where no server is to be had now, an acquire waits for one.
	ctx, cancel := context.WithTimeout(context.Background(), env.TTL)
	defer cancel()
	_ = l.session.await(ctx)
	return l, nil
}

// begin begins a session, and a recipe in it: one of an expired session says for ever that it holds.
func (l *lock) begin() error {
	s, err := open(l.env)
	if err != nil {
		return err
	}
	l.session, l.recipe = s, l.newRecipe(s)
	return nil
}

// newRecipe returns a recipe that holds nothing. What it makes belongs to whoever has said the same password.
func (l *lock) newRecipe(s *session) *zk.Lock {
	return zk.NewLock(s.conn, l.path, zk.AuthACL(zk.PermAll))
}

// end ends the session, and begins another one.
func (l *lock) end() error {
	l.session.close()
	return l.begin()
}

// Acquire implements [strategies.Lock]. An attempt that a broken connection ends is made again, until ctx is done.
func (l *lock) Acquire(ctx context.Context) error {
	unclear := false // whether a former attempt left its node, for as long as its session lasts
	for {
		err := l.attempt(ctx, false)
		if err == nil {
			return nil
		}
		unclear = unclear || !errors.Is(err, strategies.ErrNotAcquired)
		if errors.Is(err, zk.ErrDeadlock) || !pause(ctx, nil) {
			if unclear {
				return errors.New(err.Error()) // what it wraps is about the last attempt alone
			}
			return err
		}
	}
}

// TryAcquire implements [strategies.TryAcquirer]. The recipe has no such thing: it is told to acquire, and given up when
// its node is seen behind another.
func (l *lock) TryAcquire(ctx context.Context) error { return l.attempt(ctx, true) }

// errTaken says that somebody else is there.
var errTaken = errors.New("another node is before its own")

// attempt has the recipe acquire once, and does not wait for its turn if it is but to try. The error wraps
// [strategies.ErrNotAcquired] if nothing is left of that.
func (l *lock) attempt(ctx context.Context, try bool) error {
	if l.session.over() {
		if err := l.end(); err != nil {
			return not(strategies.ErrNotAcquired, err)
		}
	}
	if err := l.session.await(ctx); err != nil {
		return not(strategies.ErrNotAcquired, err) // nothing but a session can be there
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

// errNoNode says that the recipe believes that it holds and has no node.
var errNoNode = errors.New("the session that had the node has expired")

// name finds out the token of a hold that has just begun.
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

// abandon gives up what may be there of a hold or an attempt, and says so by an error: it wraps
// [strategies.ErrNotAcquired] if a server said that nothing is left. Else what is left goes with its session,
// which nobody renews any more. If the recipe has not come back, that ends it too, and it is not known what
// it has yet to do.
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

// Release implements [strategies.Lock]. Where a broken connection took the answer along it asks again, until ctx is
// done; then the session ends, and the lock is free at the latest when it would have expired.
func (l *lock) Release(ctx context.Context) error {
	asked := false // whether a former attempt may have deleted the node
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

// notHeld says that the lock is not the caller's, and has the recipe believe that, too.
func (l *lock) notHeld(err error) error {
	l.recipe = l.newRecipe(l.session)
	return not(strategies.ErrNotHeld, err)
}

// unclear says that nobody knows what a release came to, and gives up what may be there of the hold.
func (l *lock) unclear(ctx context.Context, why error) error {
	s := l.session
	err := l.abandon(ctx, why, true)
	switch {
	case !errors.Is(err, strategies.ErrNotAcquired):
		return err
	case s.over():
		return not(strategies.ErrNotHeld, why)
	}
	return nil // a server said that the node is gone
}

// not says that something is not so, and why.
func not(what, why error) error { return fmt.Errorf("zookeeper: %w: %w", what, why) }

// Lost implements [strategies.LossNotifier]: a server has said that the session is over.
func (l *lock) Lost() <-chan struct{} { return l.session.expired }

// Close ends the session and the connection.
func (l *lock) Close() error {
	select {
	case <-l.session.close():
	case <-time.After(l.leave()): // the session expires by itself
	}
	return nil
}
