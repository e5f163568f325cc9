package main

import (
	"context"
	"crypto/tls"
	"net"

	"github.com/redis/rueidis"

	"github.com/lockfault/lockfault/strategies"
)

// onRueidis is SET NX PX on rueidis, with one connection.
var onRueidis = strategies.Strategy{
	Name:     "my-rueidis",
	Summary:  "SET NX PX and a compare-and-delete script, on rueidis",
	Source:   "docs/other-clients.md",
	Tags:     []string{strategies.TagSingle},
	Expected: map[string][]string{"ghost-retry": {"unavailable"}}, // it repeats nothing
	New: func(env strategies.Env) (strategies.Lock, error) {
		if err := env.Check("my-rueidis", 1); err != nil {
			return nil, err
		}
		client, err := rueidis.NewClient(rueidis.ClientOption{
			InitAddress: []string{env.Addr(0)}, ForceSingleClient: true,
			DialCtxFn: func(ctx context.Context, addr string, _ *net.Dialer, _ *tls.Config) (net.Conn, error) {
				return env.Dial(ctx, "tcp", addr)
			},
			DisableRetry:      true,                      // what is sent again is the lock's decision
			PipelineMultiplex: -1,                        // one connection, not any of several
			Dialer:            net.Dialer{KeepAlive: -1}, // no PING each second
			ConnWriteTimeout:  env.ReadTimeout(),
		})
		if err != nil {
			return nil, err
		}
		return &rueidisLock{env: env, client: client}, nil
	},
}

type rueidisLock struct {
	env    strategies.Env
	client rueidis.Client
	value  string
}

func (l *rueidisLock) Acquire(ctx context.Context) error {
	l.value = newValue(l.env)
	return poll(ctx, func() error {
		set := l.client.B().Set().Key(l.env.Key).Value(l.value).Nx().PxMilliseconds(l.env.TTL.Milliseconds()).Build()
		err := l.client.Do(ctx, set).Error()
		if rueidis.IsRedisNil(err) {
			return strategies.ErrNotAcquired
		}
		return err
	})
}

var rueidisRelease = rueidis.NewLuaScript(compareAndDelete)

func (l *rueidisLock) Release(ctx context.Context) error {
	return deleted(rueidisRelease.Exec(ctx, l.client, []string{l.env.Key}, []string{l.value}).AsInt64())
}

func (l *rueidisLock) Close() error {
	l.client.Close()
	return nil
}
