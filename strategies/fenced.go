package strategies

import (
	"context"
	"errors"

	"github.com/redis/go-redis/v9"
)

// acquireFenced sets KEYS[1] to the caller's value and returns the next number of the counter
// KEYS[2], or nil if the key exists.
var acquireFenced = redis.NewScript(`
if redis.call("set", KEYS[1], ARGV[1], "NX", "PX", ARGV[2]) then
	return redis.call("incr", KEYS[2])
end
return nil`)

// fenced returns set-nx-px-lua with a fencing token: a number that grows with each acquisition and
// that the same script generates. The protected resource must refuse a token that is smaller than
// the largest token so far (Kleppmann 2016). Two clients may still believe that they hold the lock,
// but the writes of the earlier client are refused.
//
// Known faults: the counter is on the same server as the lock. After a failover or a restart that
// loses the counter, old numbers are issued again. The resource then accepts a stale write, or
// refuses a write of the rightful holder.
func fenced() Strategy {
	const name = "fenced"
	return Strategy{
		Name:    name,
		Summary: "SET NX PX and INCR of the fencing token in one script; released by a compare-and-delete script",
		Source:  "Kleppmann 2016, How to do distributed locking",
		Tags:    []string{TagSingle, TagExtending, TagFenced},
		New: func(env Env) (Lock, error) {
			l, err := newKeyLock(name, env)
			if err != nil {
				return nil, err
			}
			return &fencedLock{keyLock: l}, nil
		},
	}
}

type fencedLock struct {
	keyLock
	token int64
}

func (l *fencedLock) Acquire(ctx context.Context) error {
	value := l.env.token()
	return retry(ctx, every(retryDelay), func(ctx context.Context) error { return l.attempt(ctx, value) })
}

func (l *fencedLock) TryAcquire(ctx context.Context) error {
	return l.attempt(ctx, l.env.token())
}

func (l *fencedLock) Release(ctx context.Context) error { return l.compareAndDelete(ctx) }

func (l *fencedLock) Extend(ctx context.Context) error { return l.compareAndExpire(ctx) }

func (l *fencedLock) Token() int64 { return l.token }

func (l *fencedLock) attempt(ctx context.Context, value string) error {
	keys := []string{l.env.Key, companion(l.env.Key, "fence")}
	token, err := acquireFenced.Run(ctx, l.client, keys, value, l.env.TTL.Milliseconds()).Int64()
	if errors.Is(err, redis.Nil) {
		return l.taken()
	}
	l.value = value
	if err != nil {
		return l.failed("the acquire script on", err)
	}
	l.token = token
	return nil
}
