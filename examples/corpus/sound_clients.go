package main

import (
	"context"
	"crypto/tls"
	"errors"
	"net"

	redigo "github.com/gomodule/redigo/redis"
	"github.com/redis/go-redis/v9"
	"github.com/redis/rueidis"

	"github.com/lockfault/lockfault/strategies"
)

// unrepeated returns a client that sends what it is told once, as the libraries of
// other languages do.
func unrepeated(env strategies.Env) *redis.Client {
	return redis.NewClient(&redis.Options{
		Addr: env.Addr(0), Dialer: env.Dial, MaxRetries: -1, DialerRetries: 1,
		ContextTimeoutEnabled: true, ReadTimeout: env.ReadTimeout(),
	})
}

const (
	compareAndDelete = `
if redis.call("get", KEYS[1]) ~= ARGV[1] then return 0 end
return redis.call("del", KEYS[1])`
	compareAndExpire = `
if redis.call("get", KEYS[1]) ~= ARGV[1] then return 0 end
return redis.call("pexpire", KEYS[1], ARGV[2])`
)

// soundClients returns locks on other client libraries.
func soundClients() []strategies.Strategy {
	onRueidis := describe("sound-rueidis", classLease, "SET NX PX on rueidis; released by a script that compares", "Redis documentation (SET)", 1)
	onRueidis.New = func(env strategies.Env) (strategies.Lock, error) {
		if err := env.Check(onRueidis.Name, 1); err != nil {
			return nil, err
		}
		client, err := rueidis.NewClient(rueidis.ClientOption{
			InitAddress: []string{env.Addr(0)}, ForceSingleClient: true,
			DialCtxFn: func(ctx context.Context, addr string, _ *net.Dialer, _ *tls.Config) (net.Conn, error) {
				return env.Dial(ctx, "tcp", addr)
			},
			DisableCache: true, DisableRetry: true, PipelineMultiplex: -1,
			Dialer: net.Dialer{KeepAlive: -1}, ConnWriteTimeout: env.ReadTimeout(),
		})
		if err != nil {
			return nil, err
		}
		return &stepped{env: env, steps: rueidisSteps(env, client)}, nil
	}
	return []strategies.Strategy{
		defineProlonged("sound-redigo", classLease, "SET NX PX on redigo; released and prolonged by scripts that compare", "Redis documentation (SET)", redigoSteps),
		onRueidis,
	}
}

func redigoSteps(env strategies.Env) steps {
	pool := &redigo.Pool{MaxIdle: 1, DialContext: func(ctx context.Context) (redigo.Conn, error) {
		return redigo.DialContext(ctx, "tcp", env.Addr(0), redigo.DialContextFunc(env.Dial), redigo.DialReadTimeout(env.ReadTimeout()))
	}}
	release, prolong := redigo.NewScript(1, compareAndDelete), redigo.NewScript(1, compareAndExpire)
	with := func(ctx context.Context, do func(redigo.Conn) error) error {
		conn, err := pool.GetContext(ctx)
		if err != nil {
			return err
		}
		defer conn.Close()
		return do(conn)
	}
	return steps{
		take: func(ctx context.Context, value string) error {
			return with(ctx, func(conn redigo.Conn) error {
				_, err := redigo.String(redigo.DoContext(conn, ctx, "SET", env.Key, value, "NX", "PX", env.TTL.Milliseconds()))
				if errors.Is(err, redigo.ErrNil) {
					return strategies.ErrNotAcquired
				}
				return err
			})
		},
		give: func(ctx context.Context, value string) error {
			return with(ctx, func(conn redigo.Conn) error {
				return ownerError(redigo.Int64(release.DoContext(ctx, conn, env.Key, value)))
			})
		},
		prolong: func(ctx context.Context, value string) error {
			return with(ctx, func(conn redigo.Conn) error {
				return ownerError(redigo.Int64(prolong.DoContext(ctx, conn, env.Key, value, env.TTL.Milliseconds())))
			})
		},
		close: pool,
	}
}

// closeFunc makes a Close of a function.
type closeFunc func()

func (c closeFunc) Close() error {
	c()
	return nil
}

func rueidisSteps(env strategies.Env, client rueidis.Client) steps {
	release := rueidis.NewLuaScript(compareAndDelete)
	return steps{
		take: func(ctx context.Context, value string) error {
			set := client.B().Set().Key(env.Key).Value(value).Nx().PxMilliseconds(env.TTL.Milliseconds()).Build()
			err := client.Do(ctx, set).Error()
			if rueidis.IsRedisNil(err) {
				return strategies.ErrNotAcquired
			}
			return err
		},
		give: func(ctx context.Context, value string) error {
			return ownerError(release.Exec(ctx, client, []string{env.Key}, []string{value}).AsInt64())
		},
		close: closeFunc(client.Close),
	}
}
