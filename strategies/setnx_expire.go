package strategies

import (
	"context"
	"time"
)

// setnxExpire returns the lock of SETNX followed by EXPIRE. Document 002 ("why not setnx") and
// document 004 (second paragraph) warn of this lock.
//
// Known faults: a client that dies between the two commands, or whose EXPIRE is lost, leaves a key
// that never expires, so no client can acquire again. The release reads, compares and deletes in
// separate steps, so it can delete the key of another client that acquired between the steps.
func setnxExpire() Strategy {
	const name = "setnx-expire"
	return Strategy{
		Name:    name,
		Summary: "SETNX, then EXPIRE; released by GET, compare, DEL",
		Source:  "documents 002 (why not setnx) and 004",
		Tags:    []string{TagSingle, TagPlainDel},
		New: func(env Env) (Lock, error) {
			l, err := newKeyLock(name, env)
			if err != nil {
				return nil, err
			}
			return &setnxExpireLock{keyLock: l}, nil
		},
	}
}

type setnxExpireLock struct {
	keyLock
	// repair makes a client that finds the lock taken set a TTL on a key without TTL.
	repair bool
}

func (l *setnxExpireLock) Acquire(ctx context.Context) error {
	value := l.env.token()
	return retry(ctx, every(retryDelay), func(ctx context.Context) error { return l.attempt(ctx, value) })
}

func (l *setnxExpireLock) TryAcquire(ctx context.Context) error {
	return l.attempt(ctx, l.env.token())
}

func (l *setnxExpireLock) Release(ctx context.Context) error {
	return l.getCompareDel(ctx)
}

func (l *setnxExpireLock) attempt(ctx context.Context, value string) error {
	won, err := l.setNX(ctx, value)
	if err != nil {
		return err
	}
	if won {
		return l.expire(ctx)
	}
	if l.repair {
		left, err := l.ttl(ctx)
		if err != nil {
			return err
		}
		// A negative result means no TTL or no key, as in the document.
		if left < 0 {
			if err := l.expire(ctx); err != nil {
				return err
			}
		}
	}
	return l.taken()
}

// expire sets the key's TTL without a check of its owner. expire uses seconds, as the documents do,
// or milliseconds if the TTL is not a whole number of seconds.
func (l *setnxExpireLock) expire(ctx context.Context) error {
	if l.env.TTL%time.Second != 0 {
		if err := l.client.PExpire(ctx, l.env.Key, l.env.TTL).Err(); err != nil {
			return l.failed("PEXPIRE", err)
		}
		return nil
	}
	if err := l.client.Expire(ctx, l.env.Key, l.env.TTL).Err(); err != nil {
		return l.failed("EXPIRE", err)
	}
	return nil
}

// ttl returns the rest of the key's TTL; ttl asks the server in the unit of expire.
func (l *setnxExpireLock) ttl(ctx context.Context) (time.Duration, error) {
	if l.env.TTL%time.Second != 0 {
		left, err := l.client.PTTL(ctx, l.env.Key).Result()
		if err != nil {
			return 0, l.failed("PTTL", err)
		}
		return left, nil
	}
	left, err := l.client.TTL(ctx, l.env.Key).Result()
	if err != nil {
		return 0, l.failed("TTL", err)
	}
	return left, nil
}
