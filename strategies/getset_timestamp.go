package strategies

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
)

// getsetTimestamp returns the first lock of document 000 (II.2, by getset). The key has no TTL; its
// value ends in the time at which its owner wrote it. A client that finds the key older than the
// TTL, by its own clock, takes the key over with GETSET. If the result of GETSET shows that another
// client was faster, the client writes that result back. The document polls without a delay; this
// lock polls every 100 ms, with a new value for each attempt, as in the document.
//
// If GETSET finds no key, the document's code fails, because its client library refuses to SET
// null. This lock writes nothing back and continues to poll. In both cases the key keeps the
// loser's value, which blocks all clients until the value is older than the TTL.
//
// Known faults (the document names the first two): the value that a client writes back may not be
// the winner's value, so the winner cannot release. The clients' clocks must agree: a client whose
// clock is ahead takes over a held lock. A value that is written back late overwrites the value of
// a client that acquired in the meantime. The release is GET, compare, DEL, which is not atomic.
func getsetTimestamp() Strategy {
	const name = "getset-timestamp"
	return Strategy{
		Name:    name,
		Summary: "SETNX of value_timestamp; GETSET once it is out of date; released by GET, compare, DEL",
		Source:  "document 000, II.2",
		Tags:    []string{TagSingle, TagPlainDel},
		New: func(env Env) (Lock, error) {
			l, err := newKeyLock(name, env)
			if err != nil {
				return nil, err
			}
			return &getsetTimestampLock{l}, nil
		},
	}
}

type getsetTimestampLock struct{ keyLock }

func (l *getsetTimestampLock) Acquire(ctx context.Context) error {
	return retry(ctx, every(retryDelay), l.TryAcquire)
}

func (l *getsetTimestampLock) TryAcquire(ctx context.Context) error {
	value := fmt.Sprintf("%s_%d", l.env.token(), l.env.Now().UnixMilli())
	won, err := l.setNX(ctx, value)
	if won || err != nil {
		return err
	}

	old, err := l.client.Get(ctx, l.env.Key).Result()
	if errors.Is(err, redis.Nil) {
		return l.taken() // the key was deleted just now: the next attempt may succeed
	}
	if err != nil {
		return l.failed("GET", err)
	}
	written, err := timestamp(old)
	if err != nil {
		return fmt.Errorf("strategies: %s: %s holds %q: %w: %w", l.strategy, l.env.Key, old, err, ErrNotAcquired)
	}
	if l.env.Now().Sub(written) < l.env.TTL {
		return l.taken()
	}

	previous, err := l.client.GetSet(ctx, l.env.Key, value).Result()
	if errors.Is(err, redis.Nil) {
		return l.taken()
	}
	if err != nil {
		l.value = value
		return l.failed("GETSET", err)
	}
	if previous == old {
		l.value = value
		return nil
	}
	if err := l.client.Set(ctx, l.env.Key, previous, 0).Err(); err != nil {
		return l.failed("SET", err)
	}
	return l.taken()
}

func (l *getsetTimestampLock) Release(ctx context.Context) error {
	return l.getCompareDel(ctx)
}

// timestamp parses the milliseconds after the last underscore.
func timestamp(value string) (time.Time, error) {
	text := value[strings.LastIndexByte(value, '_')+1:]
	millis, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return time.Time{}, errors.New("no timestamp behind an underscore")
	}
	return time.UnixMilli(millis), nil
}
