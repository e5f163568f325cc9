package main

import (
	"context"
	"fmt"
	"net"
	"time"

	"github.com/redis/go-redis/v9"
	gozero "github.com/zeromicro/go-zero/core/stores/redis"

	"github.com/lockfault/lockfault/strategies"
)

// onGoZero returns go-zero's RedisLock: one object for all acquires of a client, and one
// for each acquire.
//
// The library never closes its clients. Where a node is down go-redis goes on trying to
// connect, and a cell in virtual time ends with an error that says so.
func onGoZero() []strategies.Strategy {
	lock := func(name, summary string, each bool) strategies.Strategy {
		return strategies.Strategy{
			Name:          name,
			Summary:       summary,
			Source:        "https://github.com/zeromicro/go-zero/blob/v1.10.3/core/stores/redis/redislock.go",
			Tags:          []string{strategies.TagSingle},
			HistoryVaries: "its client asks again after random pauses, which no option of the library's sets",
			New: func(env strategies.Env) (strategies.Lock, error) {
				if err := env.Check(name, 1); err != nil {
					return nil, err
				}
				dial := &dialled{env: env}
				// The library keeps its clients for ever, by their addresses, and
				// would give one client's to another: so each has an address of its
				// own, by which nobody dials.
				addr := fmt.Sprintf("%s-%016x:6379", env.Owner, env.Rand.Uint64())
				return &goZeroLock{env: env, store: gozero.New(addr, gozero.WithHook(dial)), each: each}, nil
			},
		}
	}
	return []strategies.Strategy{
		lock("gozero", "go-zero's RedisLock, one object for all acquires of a client", false),
		lock("gozero-object-each", "go-zero's RedisLock, an object for each acquire", true),
	}
}

type goZeroLock struct {
	env   strategies.Env
	store *gozero.Redis
	each  bool
	lock  *gozero.RedisLock
}

func (l *goZeroLock) Acquire(ctx context.Context) error {
	return strategies.Poll(ctx, 100*time.Millisecond, l.TryAcquire)
}

// TryAcquire asks for a lease of whole seconds; the library adds half a second.
func (l *goZeroLock) TryAcquire(ctx context.Context) error {
	lock := l.lock
	if lock == nil || l.each {
		lock = gozero.NewRedisLock(l.store, l.env.Key)
		lock.SetExpire(int(l.env.TTL / time.Second))
	}
	taken, err := lock.AcquireCtx(ctx)
	if err != nil {
		return err
	}
	if !taken {
		return strategies.ErrNotAcquired
	}
	l.lock = lock
	return nil
}

func (l *goZeroLock) Release(ctx context.Context) error {
	if l.lock == nil {
		return strategies.ErrNotHeld
	}
	released, err := l.lock.ReleaseCtx(ctx)
	if err == nil && !released {
		return strategies.ErrNotHeld
	}
	return err
}

// dialled is a hook that dials to the client's node whatever the address.
type dialled struct{ env strategies.Env }

func (d *dialled) DialHook(redis.DialHook) redis.DialHook {
	return func(ctx context.Context, network, _ string) (net.Conn, error) {
		return d.env.Dial(ctx, network, d.env.Addr(0))
	}
}

func (d *dialled) ProcessHook(next redis.ProcessHook) redis.ProcessHook { return next }

func (d *dialled) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}
