package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/lockfault/lockfault/strategies"
)

const pause = 100 * time.Millisecond

type fn func(ctx context.Context, l *lk) error

// lk is the frame that the locks share: a try, a release, one value per acquire.
type lk struct {
	env   strategies.Env
	c     redis.UniversalClient
	val   string
	fixed bool // value is env.Owner
	try   fn
	wait  func(ctx context.Context, l *lk) // nil: pause
	rel   fn
	// watchdog
	stop context.CancelFunc
	done chan struct{}
	tok  int64
	cnt  int
	sha  map[string]string
	at   time.Time
	keep []func()
}

func (l *lk) newval() {
	if l.fixed {
		l.val = l.env.Owner
		return
	}
	l.val = fmt.Sprintf("%s/%x", l.env.Owner, l.env.Rand.Uint64())
}

func (l *lk) TryAcquire(ctx context.Context) error { l.newval(); return l.try(ctx, l) }

func (l *lk) Acquire(ctx context.Context) error {
	l.newval()
	for {
		err := l.try(ctx, l)
		if !errors.Is(err, strategies.ErrNotAcquired) {
			return err
		}
		if ctx.Err() != nil {
			return strategies.ErrNotAcquired
		}
		if l.wait != nil {
			l.wait(ctx, l)
		} else {
			select {
			case <-ctx.Done():
			case <-time.After(pause):
			}
		}
		if ctx.Err() != nil {
			return strategies.ErrNotAcquired
		}
	}
}
func (l *lk) Release(ctx context.Context) error { return l.rel(ctx, l) }
func (l *lk) Close() error                      { l.stopDog(); return nil }
func (l *lk) stopDog() {
	if l.stop != nil {
		l.stop()
		<-l.done
		l.stop = nil
	}
}

func add(name, sum string, tags []string, mk func(*lk) strategies.Lock, opts ...func(*strategies.Strategy)) {
	s := strategies.Strategy{Name: name, Summary: sum, Source: "a stranger", Tags: tags,
		New: func(env strategies.Env) (strategies.Lock, error) {
			l := &lk{env: env, c: env.Nodes[0]}
			return mk(l), nil
		}}
	for _, o := range opts {
		o(&s)
	}
	mine = append(mine, s)
}

func single(t ...string) []string { return append([]string{"single"}, t...) }
func ms(d time.Duration) int64    { return d.Milliseconds() }

// nx maps the reply of a SET NX.
func nx(won bool, err error) error {
	if err != nil && !errors.Is(err, redis.Nil) {
		return err
	}
	if !won {
		return strategies.ErrNotAcquired
	}
	return nil
}
func one(n int64, err error) error {
	if err == nil && n == 0 {
		return strategies.ErrNotHeld
	}
	return err
}
func got(n int64, err error) error {
	if err == nil && n == 0 {
		return strategies.ErrNotAcquired
	}
	return err
}
func setnx(ctx context.Context, l *lk) error {
	return nx(l.c.SetNX(ctx, l.env.Key, l.val, l.env.TTL).Result())
}

var cad = redis.NewScript(`if redis.call("GET",KEYS[1])==ARGV[1] then return redis.call("DEL",KEYS[1]) end return 0`)
var cax = redis.NewScript(`if redis.call("GET",KEYS[1])==ARGV[1] then return redis.call("PEXPIRE",KEYS[1],ARGV[2]) end return 0`)

func relLua(ctx context.Context, l *lk) error {
	return one(cad.Run(ctx, l.c, []string{l.env.Key}, l.val).Int64())
}

// dog starts a goroutine that calls f each third of a lease until f says stop.
func (l *lk) dog(f func(ctx context.Context) bool) {
	l.stopDog()
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	l.stop, l.done = cancel, done
	go func() {
		defer close(done)
		t := time.NewTicker(l.env.TTL / 3)
		defer t.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-t.C:
			}
			if ctx.Err() != nil || !f(ctx) {
				return
			}
		}
	}()
}
