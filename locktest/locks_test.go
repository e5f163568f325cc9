package locktest_test

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/lockfault/lockfault/locktest"
)

// Locks as users have them.

var deleteIfMine = redis.NewScript(`if redis.call("GET", KEYS[1]) == ARGV[1] then return redis.call("DEL", KEYS[1]) end return 0`)

var errTaken = errors.New("somebody else has it")

// simple is SET NX PX, released by its value; what it does beside that goes wrong.
type simple struct {
	env     locktest.Env
	release func(ctx context.Context) error // in place of its own
	acquire func(ctx context.Context) error // before its own
}

func newSimple(env locktest.Env) *simple { return &simple{env: env} }

func (l *simple) Acquire(ctx context.Context) error {
	if l.acquire != nil {
		if err := l.acquire(ctx); err != nil {
			return err
		}
	}
	return locktest.Poll(ctx, 100*time.Millisecond, func(ctx context.Context) (bool, error) {
		return l.env.Nodes[0].SetNX(ctx, l.env.Key, l.env.Owner, l.env.TTL).Result()
	})
}

func (l *simple) Release(ctx context.Context) error {
	if l.release != nil {
		return l.release(ctx)
	}
	n, err := deleteIfMine.Run(ctx, l.env.Nodes[0], []string{l.env.Key}, l.env.Owner).Int()
	if err == nil && n == 0 {
		return locktest.ErrNotHeld
	}
	return err
}

func sound() locktest.Subject {
	return locktest.Subject{New: func(env locktest.Env) (locktest.Lock, error) { return newSimple(env), nil }}
}

// quick is sound and can make one attempt.
func quick() locktest.Subject {
	return locktest.Subject{Refused: []error{errTaken}, New: func(env locktest.Env) (locktest.Lock, error) {
		l := newSimple(env)
		return locktest.Funcs{Lock: l.Acquire, Unlock: l.Release, TryLock: func(ctx context.Context) error {
			won, err := env.Nodes[0].SetNX(ctx, env.Key, env.Owner, env.TTL).Result()
			if err == nil && !won {
				err = errTaken
			}
			return err
		}}, nil
	}}
}

// careless looks whose the lock is, and then deletes it.
func careless() locktest.Subject {
	return locktest.Subject{New: func(env locktest.Env) (locktest.Lock, error) {
		l := newSimple(env)
		l.release = func(ctx context.Context) error {
			owner, err := env.Nodes[0].Get(ctx, env.Key).Result()
			switch {
			case errors.Is(err, redis.Nil), err == nil && owner != env.Owner:
				return locktest.ErrNotHeld
			case err != nil:
				return err
			}
			return env.Nodes[0].Del(ctx, env.Key).Err()
		}
		return l, nil
	}}
}

// renewing prolongs its lease until it is released.
type renewing struct {
	*simple
	stop func()
}

func (l *renewing) Acquire(ctx context.Context) error {
	if err := l.simple.Acquire(ctx); err != nil {
		return err
	}
	life, stop := context.WithCancel(context.Background())
	var done sync.WaitGroup
	l.stop = func() { stop(); done.Wait() }
	done.Go(func() {
		ticker := time.NewTicker(l.env.TTL / 3)
		defer ticker.Stop()
		for {
			select {
			case <-ticker.C:
				l.env.Nodes[0].PExpire(life, l.env.Key, l.env.TTL)
			case <-life.Done():
				return
			}
		}
	})
	return nil
}

func (l *renewing) Release(ctx context.Context) error {
	l.Close()
	return l.simple.Release(ctx)
}

func (l *renewing) Close() error {
	if l.stop != nil {
		l.stop()
		l.stop = nil
	}
	return nil
}

// majority is the same value on most of some nodes.
type majority struct{ env locktest.Env }

func (l majority) Acquire(ctx context.Context) error {
	return locktest.Poll(ctx, 100*time.Millisecond, func(ctx context.Context) (bool, error) {
		won := 0
		for _, node := range l.env.Nodes {
			if ok, err := node.SetNX(ctx, l.env.Key, l.env.Owner, l.env.TTL).Result(); err == nil && ok {
				won++
			}
		}
		if won > len(l.env.Nodes)/2 {
			return true, nil
		}
		return false, l.drop(ctx)
	})
}

func (l majority) drop(ctx context.Context) error {
	for _, node := range l.env.Nodes {
		_ = deleteIfMine.Run(ctx, node, []string{l.env.Key}, l.env.Owner).Err()
	}
	return nil
}

func (l majority) Release(ctx context.Context) error { return l.drop(ctx) }
