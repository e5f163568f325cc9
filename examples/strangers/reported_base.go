package main

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/lockfault/lockfault/strategies"
)

// rpSpec describes a pair of locks: the defective one of a public report, and a sound one of the
// same class.
type rpSpec struct {
	name, source, bug, fix string
	tags                   []string
	nodes                  int
	creator                bool // whether the defective lock's value names nobody
	make                   func(env strategies.Env, fixed bool) strategies.Lock
}

// rpAdd registers both locks of a pair.
func rpAdd(spec rpSpec) bool {
	for _, fixed := range []bool{false, true} {
		strategy := strategies.Strategy{
			Name: "reported-" + spec.name, Summary: spec.bug, Source: spec.source,
			Tags: spec.tags, Nodes: max(spec.nodes, 1),
		}
		if fixed {
			strategy.Name, strategy.Summary = strategy.Name+"-fixed", spec.fix
		} else if spec.creator {
			strategy.Owner = strategies.OwnerIsCreator
		}
		name, nodes := strategy.Name, strategy.Nodes
		strategy.New = func(env strategies.Env) (strategies.Lock, error) {
			if err := env.Check(name, nodes); err != nil {
				return nil, err
			}
			return spec.make(env, fixed), nil
		}
		mine = append(mine, strategy)
	}
	return true
}

const rpPause = 50 * time.Millisecond

var (
	// rpTakeScript takes a free key, and recognises its own value if it is asked again.
	rpTakeScript = redis.NewScript(`
if redis.call("SET", KEYS[1], ARGV[1], "NX", "PX", ARGV[2]) then
	return 1
end
if redis.call("GET", KEYS[1]) == ARGV[1] then
	redis.call("PEXPIRE", KEYS[1], ARGV[2])
	return 1
end
return 0`)
	rpGiveScript = redis.NewScript(`
if redis.call("GET", KEYS[1]) == ARGV[1] then
	return redis.call("DEL", KEYS[1])
end
return 0`)
	rpRenewScript = redis.NewScript(`
if redis.call("GET", KEYS[1]) == ARGV[1] then
	return redis.call("PEXPIRE", KEYS[1], ARGV[2])
end
return 0`)
)

// rpToken returns a value that no other acquire has.
func rpToken(env strategies.Env) string {
	return fmt.Sprintf("%s-%016x", env.Owner, env.Rand.Uint64())
}

func rpTake(ctx context.Context, env strategies.Env, node redis.UniversalClient, token string) (bool, error) {
	n, err := rpTakeScript.Run(ctx, node, []string{env.Key}, token, env.TTL.Milliseconds()).Int()
	return n == 1, err
}

func rpGive(ctx context.Context, env strategies.Env, node redis.UniversalClient, token string) error {
	n, err := rpGiveScript.Run(ctx, node, []string{env.Key}, token).Int()
	if err == nil && n == 0 {
		return strategies.ErrNotHeld
	}
	return err
}

func rpRenew(ctx context.Context, env strategies.Env, node redis.UniversalClient, token string) error {
	n, err := rpRenewScript.Run(ctx, node, []string{env.Key}, token, env.TTL.Milliseconds()).Int()
	if err == nil && n == 0 {
		return strategies.ErrNotHeld
	}
	return err
}

// rpUndo takes back an acquire, though its caller has given up. The result is nil if the key is
// known not to have the token.
func rpUndo(ctx context.Context, env strategies.Env, node redis.UniversalClient, token string) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), max(env.TTL/30, rpPause))
	defer cancel()
	if err := rpGive(ctx, env, node, token); !errors.Is(err, strategies.ErrNotHeld) {
		return err
	}
	return nil
}

// rpSleep waits, and reports whether ctx is still alive.
func rpSleep(ctx context.Context, pause time.Duration) bool {
	select {
	case <-ctx.Done():
		return false
	case <-time.After(pause):
		return true
	}
}

// rpAttempt makes one sound attempt on the first node.
func rpAttempt(ctx context.Context, env strategies.Env, token string) (bool, error) {
	sent := time.Now()
	won, err := rpTake(ctx, env, env.Nodes[0], token)
	switch {
	case err != nil:
		_ = rpUndo(ctx, env, env.Nodes[0], token) // it may arrive yet, so the outcome stays unknown
		return false, err
	case won && (ctx.Err() != nil || time.Since(sent) > env.TTL*9/10):
		return false, rpUndo(ctx, env, env.Nodes[0], token)
	}
	return won, nil
}

// rpAcquire polls until the first node's key has the token.
func rpAcquire(ctx context.Context, env strategies.Env, token string) error {
	for ctx.Err() == nil {
		if won, err := rpAttempt(ctx, env, token); won || err != nil {
			return err
		}
		if !rpSleep(ctx, rpPause) {
			break
		}
	}
	return strategies.ErrNotAcquired
}

// rpKnown reports whether a release's result says that the key is gone.
func rpKnown(err error) bool { return err == nil || errors.Is(err, strategies.ErrNotHeld) }

// rpSound is SET NX PX with a new value for each acquire, and a release by a script.
type rpSound struct {
	env   strategies.Env
	token string // empty if nothing is held
}

func (l *rpSound) Acquire(ctx context.Context) error {
	token := rpToken(l.env)
	err := rpAcquire(ctx, l.env, token)
	if err == nil {
		l.token = token
	}
	return err
}

func (l *rpSound) Release(ctx context.Context) error {
	if l.token == "" {
		return strategies.ErrNotHeld
	}
	err := rpGive(ctx, l.env, l.env.Nodes[0], l.token)
	if rpKnown(err) {
		l.token = ""
	}
	return err
}

// rpSoundExtending is a rpSound that its user can extend.
type rpSoundExtending struct{ rpSound }

func (l *rpSoundExtending) Extend(ctx context.Context) error {
	if l.token == "" {
		return strategies.ErrNotHeld
	}
	return rpRenew(ctx, l.env, l.env.Nodes[0], l.token)
}

// rpDog renews a lease in the background. Its zero value renews nothing.
type rpDog struct {
	stop func()
	all  sync.WaitGroup
}

// start renews until it is stopped, or renew says that the lock is not held.
func (d *rpDog) start(every time.Duration, renew func(context.Context) error) {
	d.end()
	ctx, cancel := context.WithCancel(context.Background())
	d.stop = cancel
	d.all.Go(func() {
		tick := time.NewTicker(every)
		defer tick.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
			}
			if errors.Is(renew(ctx), strategies.ErrNotHeld) {
				return
			}
		}
	})
}

func (d *rpDog) end() {
	if d.stop != nil {
		d.stop()
	}
}

func (d *rpDog) Close() error {
	d.end()
	d.all.Wait()
	return nil
}

// rpSoundWatched is a rpSound with a watchdog that ends before the release is sent.
type rpSoundWatched struct {
	rpSound
	rpDog
}

func (l *rpSoundWatched) Acquire(ctx context.Context) error {
	if err := l.rpSound.Acquire(ctx); err != nil {
		return err
	}
	token := l.token
	l.start(l.env.TTL/3, func(ctx context.Context) error {
		return rpRenew(ctx, l.env, l.env.Nodes[0], token)
	})
	return nil
}

func (l *rpSoundWatched) Release(ctx context.Context) error {
	l.end()
	return l.rpSound.Release(ctx)
}
