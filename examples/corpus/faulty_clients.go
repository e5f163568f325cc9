package main

import (
	"context"
	"crypto/tls"
	"net"

	"github.com/gomodule/redigo/redis"
	"github.com/redis/rueidis"

	"github.com/lockfault/lockfault/strategies"
)

// onRedigo is a pool of one connection of redigo's to the first node.
type onRedigo struct{ pool *redis.Pool }

func newRedigo(env strategies.Env) onRedigo {
	dial := func(ctx context.Context) (redis.Conn, error) {
		return redis.DialContext(ctx, "tcp", env.Addr(0), redis.DialContextFunc(env.Dial), redis.DialReadTimeout(env.ReadTimeout()))
	}
	return onRedigo{&redis.Pool{DialContext: dial, MaxIdle: 1}}
}

// with lends a connection.
func (db onRedigo) with(ctx context.Context, use func(redis.Conn) error) error {
	conn, err := db.pool.GetContext(ctx)
	if err != nil {
		return err
	}
	defer conn.Close()
	return use(conn)
}

// lock returns l with a Close that gives the pool up.
func (db onRedigo) lock(l polled) strategies.Lock { return closing{l, db.pool.Close} }

// closing is a lock that has something to give up in the end.
type closing struct {
	polled
	end func() error
}

func (l closing) Close() error { return l.end() }

// newRueidis returns one connection of rueidis's to the first node.
func newRueidis(env strategies.Env) (rueidis.Client, error) {
	return rueidis.NewClient(rueidis.ClientOption{
		InitAddress: []string{env.Addr(0)}, ForceSingleClient: true,
		DialCtxFn: func(ctx context.Context, addr string, _ *net.Dialer, _ *tls.Config) (net.Conn, error) {
			return env.Dial(ctx, "tcp", addr)
		},
		DisableCache: true, DisableRetry: true, PipelineMultiplex: -1,
		Dialer: net.Dialer{KeepAlive: -1}, ConnWriteTimeout: env.ReadTimeout(),
	})
}

// rueidisSpecimen returns the strategy of a lock on rueidis.
func rueidisSpecimen(name, bug string, tags []string, made func(strategies.Env, rueidis.Client) polled) strategies.Strategy {
	s := specimen(name, bug, tags, nil)
	s.New = func(env strategies.Env) (strategies.Lock, error) {
		if err := env.Check(name, 1); err != nil {
			return nil, err
		}
		client, err := newRueidis(env)
		if err != nil {
			return nil, err
		}
		return closing{made(env, client), func() error { client.Close(); return nil }}, nil
	}
	return s
}

// taken says what the answer of rueidis to a SET NX means.
func taken(err error) error {
	if rueidis.IsRedisNil(err) {
		return strategies.ErrNotAcquired
	}
	return err
}
