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

// getsetTimestamp is the first lock of document 000 (II.2, by getset). The key
// has no TTL; its value ends in the time at which its owner wrote it. A client
// that finds the key older than the TTL by its own clock takes it over with
// GETSET, and if GETSET shows that another one was faster, puts back what
// GETSET returned. The document polls without a break; this one does so every
// 100 ms, with a new value each time, as there.
//
// Where GETSET finds no key, the document's code fails: its client library
// refuses to SET null. This one then sets nothing back and polls on. Either
// way the key keeps the loser's value, which blocks all until it is out of
// date.
//
// Known faults, the first two named by the document: the values put back need
// not be the winner's, who then can't release. The clients' clocks must agree:
// one that runs ahead takes over a lock in use. A value put back late
// overwrites the lock of whoever acquired meanwhile. The release is GET,
// compare, DEL with room in between.
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
		return l.taken() // it was released just now: the next attempt may win
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

// timestamp reads the milliseconds behind the last underscore.
func timestamp(value string) (time.Time, error) {
	text := value[strings.LastIndexByte(value, '_')+1:]
	millis, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return time.Time{}, errors.New("no timestamp behind an underscore")
	}
	return time.UnixMilli(millis), nil
}
