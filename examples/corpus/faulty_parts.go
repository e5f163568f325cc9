package main

import (
	"context"
	"errors"

	"github.com/redis/go-redis/v9"

	"github.com/lockfault/lockfault/strategies"
)

// ownSource is the Source of locks that were made for their bug.
const ownSource = "made up for its bug"

// specimen returns the strategy of a lock on one node.
func specimen(name, bug string, tags []string, made func(strategies.Env) strategies.Lock) strategies.Strategy {
	return strategies.Strategy{
		Name: name, Summary: bug, Source: ownSource, Tags: append([]string{strategies.TagSingle}, tags...),
		New: func(env strategies.Env) (strategies.Lock, error) {
			if err := env.Check(name, 1); err != nil {
				return nil, err
			}
			return made(env), nil
		},
	}
}

// polled is a lock of two functions: a single attempt to acquire it, and a release.
type polled struct{ attempt, release func(context.Context) error }

func (l polled) Acquire(ctx context.Context) error {
	return poll(ctx, func() error { return l.attempt(ctx) })
}

func (l polled) TryAcquire(ctx context.Context) error { return l.attempt(ctx) }

func (l polled) Release(ctx context.Context) error { return l.release(ctx) }

// extending is a lock whose user can prolong its lease.
type extending struct {
	polled
	extend func(context.Context) error
}

func (l extending) Extend(ctx context.Context) error { return l.extend(ctx) }

var (
	// deleteOurs and prolongOurs touch KEYS[1] if it holds the value ARGV[1].
	deleteOurs = redis.NewScript(`if redis.call("get", KEYS[1]) == ARGV[1] then return redis.call("del", KEYS[1]) end return 0`)

	prolongOurs = redis.NewScript(`if redis.call("get", KEYS[1]) == ARGV[1] then return redis.call("pexpire", KEYS[1], ARGV[2]) end return 0`)
)

// plain is what all that is right is made of: SET NX PX with a value of one's own,
// and scripts that look whose the key is. The specimens replace a part of it.
type plain struct {
	env   strategies.Env
	db    redis.UniversalClient
	key   string
	value string // of the hold, or of an attempt that may have succeeded
}

func newPlain(env strategies.Env) *plain {
	return &plain{env: env, db: env.Nodes[0], key: env.Key}
}

// ms is the lease as Redis counts it.
func (l *plain) ms() int64 { return l.env.TTL.Milliseconds() }

func (l *plain) take(ctx context.Context) error { return l.takeAs(ctx, newValue(l.env)) }

func (l *plain) takeAs(ctx context.Context, value string) error {
	err := l.db.Do(ctx, "SET", l.key, value, "NX", "PX", l.ms()).Err()
	if !errors.Is(err, redis.Nil) {
		l.value = value
	}
	return won(true, err)
}

func (l *plain) free(ctx context.Context) error {
	return ownerError(deleteOurs.Run(ctx, l.db, []string{l.key}, l.value).Int64())
}

func (l *plain) prolong(ctx context.Context) error {
	return ownerError(prolongOurs.Run(ctx, l.db, []string{l.key}, l.value, l.ms()).Int64())
}

// get reads the key; it is empty if there is none.
func (l *plain) get(ctx context.Context) (string, error) {
	value, err := l.db.Get(ctx, l.key).Result()
	if errors.Is(err, redis.Nil) {
		return "", nil
	}
	return value, err
}
