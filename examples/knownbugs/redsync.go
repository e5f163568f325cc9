package main

import (
	"time"

	"github.com/go-redsync/redsync/v4"

	"github.com/lockfault/lockfault/strategies"
	"github.com/lockfault/lockfault/strategies/thirdparty"
)

// onRedsync returns redsync with options, and on client libraries, other than those of
// lockfault's own redsync and redsync-5.
func onRedsync() []strategies.Strategy {
	constant := redsync.WithGenValueFunc(func() (string, error) { return "worker", nil })
	return []strategies.Strategy{
		redsyncOn("redsync-constant-value", "redsync on one node, with a value that all have in common", 1, nil, constant),
		redsyncOn("redsync-setnx-on-extend", "redsync on one node, whose Extend takes what nobody has", 1, nil, redsync.WithSetNXOnExtend()),
		redsyncOn("redsync-no-retries", "redsync on one node, over go-redis with MaxRetries -1", 1, overGoRedis(true)),
		redsyncOn("redsync-5-fail-fast", "redsync on five nodes, which returns as soon as a majority has answered", 5, nil, redsync.WithFailFast(true)),
		redsyncOn("redsync-5-goredis-default", "redsync on five nodes, over go-redis with its defaults for deadlines", 5, overGoRedis(false)),
		redsyncOn("redsync-5-goredis-context", "redsync on five nodes, over go-redis with ContextTimeoutEnabled", 5, overGoRedis(true)),
		redsyncOn("redsync-5-redigo", "redsync on five nodes, over redigo with the script's read timeout", 5, overRedigo(strategies.Env.ReadTimeout)),
		redsyncOn("redsync-5-redigo-default", "redsync on five nodes, over redigo without a read timeout, its default", 5, overRedigo(func(strategies.Env) time.Duration { return 0 })),
		redsyncOn("redsync-5-redigo-timeout", "redsync on five nodes, over redigo with a read timeout of a twentieth of the lease", 5, overRedigo(func(env strategies.Env) time.Duration { return env.TTL / 20 })),
		redsyncOn("redsync-5-rueidis", "redsync on five nodes, over rueidis", 5, overRueidis),
	}
}

func redsyncOn(name, summary string, nodes int, connect thirdparty.RedsyncPools, options ...redsync.Option) strategies.Strategy {
	tags := []string{strategies.TagSingle, strategies.TagExtending}
	if nodes > 1 {
		tags = []string{strategies.TagMulti, strategies.TagQuorum, strategies.TagExtending}
	}
	return thirdparty.Redsync(strategies.Strategy{
		Name:    name,
		Summary: summary,
		Source:  "https://github.com/go-redsync/redsync (v4)",
		Nodes:   nodes, AnyNodes: nodes > 1,
		Tags: tags,
	}, connect, options...)
}
