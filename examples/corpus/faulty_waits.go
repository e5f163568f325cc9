package main

import (
	"context"
	"errors"

	"github.com/redis/go-redis/v9"

	"github.com/lockfault/lockfault/strategies"
)

// faultyWaits are locks that wait in the wrong way.
func faultyWaits() []strategies.Strategy {
	return []strategies.Strategy{
		specimen("faulty-wakeup", "who waits is told when the lock is released, and never asks by itself", nil,
			func(env strategies.Env) strategies.Lock { return &wakeup{newPlain(env)} }),
	}
}

// wakeup waits for a message.
type wakeup struct{ *plain }

func (l *wakeup) Acquire(ctx context.Context) error {
	freed := l.db.Subscribe(ctx, l.key+":freed")
	defer freed.Close()
	if _, err := freed.Receive(ctx); err != nil {
		return err
	}
	for {
		err := l.take(ctx)
		if !errors.Is(err, strategies.ErrNotAcquired) {
			return err
		}
		if _, err := freed.ReceiveMessage(ctx); err != nil {
			return strategies.ErrNotAcquired // its time is up
		}
	}
}

func (l *wakeup) TryAcquire(ctx context.Context) error { return l.take(ctx) }

var freeAndTell = redis.NewScript(`
if redis.call("get", KEYS[1]) == ARGV[1] then
	redis.call("del", KEYS[1])
	redis.call("publish", ARGV[2], "freed")
	return 1
end
return 0`)

func (l *wakeup) Release(ctx context.Context) error {
	return ownerError(freeAndTell.Run(ctx, l.db, []string{l.key}, l.value, l.key+":freed").Int64())
}
