package main

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"time"

	redsyncredis "github.com/go-redsync/redsync/v4/redis"
	redsyncgoredis "github.com/go-redsync/redsync/v4/redis/goredis/v9"
	redsyncredigo "github.com/go-redsync/redsync/v4/redis/redigo"
	redsyncrueidis "github.com/go-redsync/redsync/v4/redis/rueidis"
	"github.com/gomodule/redigo/redis"
	goredis "github.com/redis/go-redis/v9"
	"github.com/redis/rueidis"
	"github.com/redis/rueidis/rueidiscompat"

	"github.com/lockfault/lockfault/strategies"
	"github.com/lockfault/lockfault/strategies/thirdparty"
)

// goRedis makes a go-redis client of the i-th node which repeats nothing. Whether it
// heeds the deadlines of contexts is for the caller to say, and not for the script.
func goRedis(env strategies.Env, i int, contextTimeout bool) *goredis.Client {
	return goredis.NewClient(&goredis.Options{
		Addr: env.Addr(i), Dialer: env.Dial, Protocol: 2,
		MaxRetries:            -1,
		DialerRetries:         1,
		ContextTimeoutEnabled: contextTimeout,
		ReadTimeout:           env.ReadTimeout(),
	})
}

// overGoRedis returns pools of go-redis clients; contextTimeout is their
// ContextTimeoutEnabled, which by default is false.
func overGoRedis(contextTimeout bool) thirdparty.RedsyncPools {
	return func(env strategies.Env, nodes int) (pools []redsyncredis.Pool, closeAll func() error, err error) {
		var closers closers
		for i := range nodes {
			client := goRedis(env, i, contextTimeout)
			closers = append(closers, client.Close)
			// Connections are open before the script begins: to connect, and to log in,
			// is bounded by a context whatever the library does with answers.
			if err := client.Ping(context.Background()).Err(); err != nil {
				return nil, nil, errors.Join(err, closers.closeAll())
			}
			pools = append(pools, redsyncgoredis.NewPool(client))
		}
		return pools, closers.closeAll, nil
	}
}

// overRedigo returns pools of redigo, whose connections wait for an answer for so long;
// redigo's default is for ever.
func overRedigo(timeout func(strategies.Env) time.Duration) thirdparty.RedsyncPools {
	return func(env strategies.Env, nodes int) (pools []redsyncredis.Pool, closeAll func() error, err error) {
		options := []redis.DialOption{redis.DialContextFunc(env.Dial), redis.DialReadTimeout(timeout(env))}
		var closers closers
		for i := range nodes {
			pool := &redis.Pool{MaxIdle: 2, DialContext: func(ctx context.Context) (redis.Conn, error) {
				return redis.DialContext(ctx, "tcp", env.Addr(i), options...)
			}}
			closers = append(closers, pool.Close)
			conn := pool.Get() // as above
			_, err := conn.Do("PING")
			if err = errors.Join(err, conn.Close()); err != nil {
				return nil, nil, errors.Join(err, closers.closeAll())
			}
			pools = append(pools, redsyncredigo.NewPool(pool))
		}
		return pools, closers.closeAll, nil
	}
}

// overRueidis returns pools of rueidis, with one connection each.
func overRueidis(env strategies.Env, nodes int) (pools []redsyncredis.Pool, closeAll func() error, err error) {
	var closers closers
	for i := range nodes {
		client, err := rueidis.NewClient(rueidis.ClientOption{
			InitAddress: []string{env.Addr(i)}, ForceSingleClient: true,
			DialCtxFn: func(ctx context.Context, addr string, _ *net.Dialer, _ *tls.Config) (net.Conn, error) {
				return env.Dial(ctx, "tcp", addr)
			},
			DisableRetry:      true,
			PipelineMultiplex: -1,                        // one connection, not any of several
			Dialer:            net.Dialer{KeepAlive: -1}, // no PING each second
			ConnWriteTimeout:  env.ReadTimeout(),
		})
		if err != nil {
			return nil, nil, errors.Join(err, closers.closeAll())
		}
		closers = append(closers, func() error { client.Close(); return nil })
		pools = append(pools, redsyncrueidis.NewPool(rueidiscompat.NewAdapter(client)))
	}
	return pools, closers.closeAll, nil
}

// closers are what a lock has to give up.
type closers []func() error

func (c closers) closeAll() error {
	var err error
	for _, one := range c {
		err = errors.Join(err, one())
	}
	return err
}
