package cli_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"os"
	"strings"
	"time"

	"github.com/lockfault/lockfault/strategies"
)

// users returns the locks of a user, who knows what is wrong with some of them.
func users() []strategies.Strategy {
	return []strategies.Strategy{
		{
			Name: "my-lock", Summary: "SET NX PX; its release is a DEL", Source: "here",
			Tags: []string{strategies.TagSingle},
			New: func(env strategies.Env) (strategies.Lock, error) {
				return myLock{env}, env.Check("my-lock", 1)
			},
		},
		{
			Name: "my-count", Summary: "INCR, and DEL", Source: "here",
			Tags: []string{strategies.TagSingle},
			New: func(env strategies.Env) (strategies.Lock, error) {
				return myCount{env}, env.Check("my-count", 1)
			},
		},
		// It does better under gc-pause-holding than others of its group.
		fencedAs("my-fenced", nil),
		fencedAs("my-modest", map[string][]string{
			"gc-pause-holding": {"stale-write", "overlap", "ghost"}, "flush": {"lost-lock", "token-order"}, "late-release": {"overlap"},
		}),
		fencedAs("my-slip", slip()),
		lucky(),
		{
			Name: "my-sidecar", Summary: "SET NX PX, then the owner in a key beside it", Source: "here",
			Tags: []string{strategies.TagSingle},
			New: func(env strategies.Env) (strategies.Lock, error) {
				return sidecarLock{env}, env.Check("my-sidecar", 1)
			},
		},
		dice(),
		idle("my-idle"),
		idle("my-idle-replicas", "replicas"),
	}
}

// lucky is a lock that says that it is chance what it shows under flush.
func lucky() strategies.Strategy {
	s := fencedAs("my-lucky", map[string][]string{"flush": {"overlap", "token-order", "lost-lock", "ghost"}})
	s.Nondeterministic = map[string]string{"flush": "it draws lots"}
	return s
}

// dice is a sound lock that looks at its key before an acquire, or not, by chance.
func dice() strategies.Strategy {
	s := fencedAs("my-dice", nil)
	made := s.New
	s.New = func(env strategies.Env) (strategies.Lock, error) {
		l, err := made(env)
		return diceLock{l, env}, err
	}
	return s
}

type diceLock struct {
	strategies.Lock
	env strategies.Env
}

func (l diceLock) Acquire(ctx context.Context) error {
	if rand.IntN(2) == 0 {
		l.env.Nodes[0].Exists(ctx, l.env.Key)
	}
	return l.Lock.Acquire(ctx)
}

// idle is a lock that nobody gets but the warm-up.
func idle(name string, tags ...string) strategies.Strategy {
	return strategies.Strategy{
		Name: name, Summary: "refuses every acquire but that of the warm-up", Source: "here", Tags: append(tags, strategies.TagSingle),
		Expected: map[string][]string{"flush": {"overlap", "lost-lock", "unavailable"}, "gc-pause-holding": {"overlap", "unavailable"}},
		New: func(env strategies.Env) (strategies.Lock, error) {
			if strings.Contains(env.Key, "warm-up") {
				return myLock{env}, env.Check(name, 1)
			}
			return noLock{}, env.Check(name, 1)
		},
	}
}

// noLock is never acquired.
type noLock struct{}

func (noLock) Acquire(context.Context) error { return strategies.ErrNotAcquired }
func (noLock) Release(context.Context) error { return strategies.ErrNotHeld }

// sidecarLock keeps its owner in a second key. Until that is written it names the owner before, whose
// release then removes the lock.
type sidecarLock struct{ env strategies.Env }

func (l sidecarLock) keys() []string { return []string{l.env.Key, "{" + l.env.Key + "}:owner"} }

func (l sidecarLock) Acquire(ctx context.Context) error {
	return strategies.Poll(ctx, 100*time.Millisecond, func(ctx context.Context) error {
		won, err := l.env.Nodes[0].SetNX(ctx, l.keys()[0], 1, l.env.TTL).Result()
		if err == nil && !won {
			return strategies.ErrNotAcquired
		}
		return errors.Join(err, l.env.Nodes[0].Set(ctx, l.keys()[1], l.env.Owner, 2*l.env.TTL).Err())
	})
}

func (l sidecarLock) Release(ctx context.Context) error {
	const release = `if redis.call("GET", KEYS[2]) ~= ARGV[1] then return 0 end return redis.call("DEL", KEYS[1], KEYS[2])`
	n, err := l.env.Nodes[0].Eval(ctx, release, l.keys(), l.env.Owner).Int()
	if err == nil && n == 0 {
		err = strategies.ErrNotHeld
	}
	return err
}

// slipIn is the environment variable that names a scenario of which the strategy
// my-slip speaks.
const slipIn = "LOCKFAULT_TEST_SLIP"

func slip() map[string][]string {
	if name := os.Getenv(slipIn); name != "" {
		return map[string][]string{name: nil}
	}
	return nil
}

func fencedAs(name string, may map[string][]string) strategies.Strategy {
	s, _ := strategies.Builtin().Lookup("fenced")
	s.Name, s.Tags, s.Expected = name, []string{strategies.TagSingle}, may
	return s
}

// myLock deletes locks that others hold.
type myLock struct{ env strategies.Env }

func (l myLock) Acquire(ctx context.Context) error {
	for ctx.Err() == nil {
		won, err := l.env.Nodes[0].SetNX(ctx, l.env.Key, l.env.Owner, l.env.TTL).Result()
		if won || err != nil {
			return err
		}
		time.Sleep(100 * time.Millisecond)
	}
	return strategies.ErrNotAcquired
}

func (l myLock) Release(ctx context.Context) error {
	return l.env.Nodes[0].Del(ctx, l.env.Key).Err()
}

// myCount is a lock whose key says nothing of its owner.
type myCount struct{ env strategies.Env }

func (l myCount) Acquire(ctx context.Context) error {
	for ctx.Err() == nil {
		n, err := l.env.Nodes[0].Incr(ctx, l.env.Key).Result()
		if n == 1 && err == nil {
			err = l.env.Nodes[0].PExpire(ctx, l.env.Key, l.env.TTL).Err()
		}
		if n == 1 || err != nil {
			return err
		}
		time.Sleep(100 * time.Millisecond)
	}
	return strategies.ErrNotAcquired
}

func (l myCount) Release(ctx context.Context) error {
	return l.env.Nodes[0].Del(ctx, l.env.Key).Err()
}
