package strategies

import (
	"fmt"
	"strings"
	"time"
)

// Check returns an error if the named strategy, which needs the given number of nodes, cannot work
// with env. Strategies call Check at the beginning of New.
func (env Env) Check(strategy string, nodes int) error {
	switch {
	case len(env.Servers) > 0:
		return fmt.Errorf("strategies: %s runs on Redis, and there are servers of another kind", strategy)
	case len(env.Nodes) < nodes:
		return fmt.Errorf("strategies: %s runs on %d nodes, but Env.Nodes has %d", strategy, nodes, len(env.Nodes))
	case env.Key == "":
		return fmt.Errorf("strategies: %s: Env.Key is empty", strategy)
	case env.TTL < time.Millisecond:
		return fmt.Errorf("strategies: %s: Env.TTL is %s; Redis counts no less than 1ms", strategy, env.TTL)
	case env.Now == nil:
		return fmt.Errorf("strategies: %s: Env.Now is nil; time.Now will do", strategy)
	case env.Rand == nil:
		return fmt.Errorf("strategies: %s: Env.Rand is nil", strategy)
	}
	return nil
}

// token returns a new owner value: the name of the process for human readers, followed by 128
// random bits that make the value unique.
func (env Env) token() string {
	return fmt.Sprintf("%s-%016x%016x", env.Owner, env.Rand.Uint64(), env.Rand.Uint64())
}

// companion returns the name of an additional key of the lock that is in the same slot of Redis
// Cluster as key.
func companion(key, suffix string) string {
	return slotted(key) + ":" + suffix
}

// slotted returns the key in a form that keeps its Redis Cluster slot with any prefix or suffix.
func slotted(key string) string {
	if strings.Contains(key, "{") {
		return key
	}
	return "{" + key + "}"
}
