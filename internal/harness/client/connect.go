package client

import (
	"context"
	"fmt"
	"net"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/lockfault/lockfault/internal/rediscli"
)

// connect makes the client of the i-th node.
func (c *Client) connect(i int, node string) (redis.UniversalClient, error) {
	if c.host.Connect != nil {
		return c.host.Connect(node)
	}
	options := c.setup.Options()
	// Nodes are dialled by name, but client libraries tell them apart by address.
	// Nobody listens at these: who connects without Env.Dial learns it at once.
	options.Addr = fmt.Sprintf("127.0.0.1:%d", i+1)
	options.Dialer = func(ctx context.Context, _, _ string) (net.Conn, error) {
		return c.host.Dial(ctx, node)
	}
	// A world that is there for a moment need not make room for much: a message that is
	// larger goes in parts, which come to the same.
	options.ReadBufferSize, options.WriteBufferSize = 1<<10, 1<<10
	return redis.NewClient(options), nil
}

// Options returns how a go-redis client is set up as the script says, all but
// where it connects to.
func (s Setup) Options() *redis.Options {
	o := rediscli.Options("")
	if s.Retries > 0 {
		o.MaxRetries = s.Retries
	}
	// go-redis draws its pauses from a source that can't be seeded, between
	// these two.
	o.MinRetryBackoff, o.MaxRetryBackoff = 8*time.Millisecond, 8*time.Millisecond
	o.DialTimeout, o.ReadTimeout, o.WriteTimeout = s.ReadTimeout, s.ReadTimeout, s.ReadTimeout
	o.ContextTimeoutEnabled = !s.IgnoreContext
	// Timers that wait for a free connection are shared between bubbles, which
	// is fatal: let there always be one.
	o.PoolSize, o.ConnMaxIdleTime = 128, -1
	return o
}
