package main

import (
	"fmt"
	"strings"

	"github.com/lockfault/lockfault/strategies"
	"github.com/lockfault/lockfault/strategies/thirdparty"
)

// onRedislock returns redislock with tokens of its user's.
func onRedislock() []strategies.Strategy {
	redislock := func(name, summary string, token func(strategies.Env) string) strategies.Strategy {
		return thirdparty.Redislock(strategies.Strategy{
			Name:    name,
			Summary: summary,
			Source:  "https://github.com/bsm/redislock",
			Tags:    []string{strategies.TagSingle, strategies.TagExtending},
		}, token)
	}
	return []strategies.Strategy{
		redislock("redislock-custom-token", "redislock, with the tokens worker-10 (client A), worker-1 (B) …",
			func(env strategies.Env) string { return fmt.Sprintf("worker-%d", number(env)) }),
		redislock("redislock-fixed-length-token", "redislock, with the tokens worker-0010 (client A), worker-0001 (B) …",
			func(env strategies.Env) string { return fmt.Sprintf("worker-%04d", number(env)) }),
	}
}

// number returns a number that no other client has: 10 of client A, and of those that
// follow 1, 2 and so on, so that one is the beginning of another.
func number(env strategies.Env) int {
	client, _, _ := strings.Cut(env.Owner, "-")
	if client == "A" {
		return 10
	}
	return int(client[0] - 'A')
}
