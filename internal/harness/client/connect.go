package client

import (
	"context"
	"fmt"
	"net"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/lockfault/lockfault/internal/rediscli"
)

// connect returns the Redis client of the i-th node.
func (c *Client) connect(i int, node string) (redis.UniversalClient, error) {
	if c.host.Connect != nil {
		return c.host.Connect(node)
	}
	options := c.setup.Options()
	// Nodes are dialled by name, but client libraries distinguish them by address. No server
	// listens on these addresses, so a connection without Env.Dial fails at once.
	options.Addr = fmt.Sprintf("127.0.0.1:%d", i+1)
	options.Dialer = func(ctx context.Context, _, _ string) (net.Conn, error) {
		return c.host.Dial(ctx, node)
	}
	// Small buffers save memory in short-lived worlds; a larger message is sent in parts, with the
	// same effect.
	options.ReadBufferSize, options.WriteBufferSize = 1<<10, 1<<10
	options.PipelineReadBufferSize, options.PipelineWriteBufferSize = 1<<10, 1<<10
	return redis.NewClient(options), nil
}

// Options returns the options of a go-redis client with the script's settings, without an address.
func (s Setup) Options() *redis.Options {
	o := rediscli.Options("")
	if s.Retries > 0 {
		o.MaxRetries = s.Retries
	}
	// go-redis draws its pauses between these two limits from a source that cannot be seeded.
	o.MinRetryBackoff, o.MaxRetryBackoff = 8*time.Millisecond, 8*time.Millisecond
	o.DialTimeout, o.ReadTimeout, o.WriteTimeout = s.ReadTimeout, s.ReadTimeout, s.ReadTimeout
	o.ContextTimeoutEnabled = !s.IgnoreContext
	// Timers that wait for a free connection are shared between bubbles. Such sharing is a fatal
	// error; with a large pool there is always a free connection.
	o.PoolSize, o.ConnMaxIdleTime = 128, -1
	// Pipelines have their own connections with these sizes set. Without them, that depends on the
	// version of go-redis, and the history of a lock would depend on it, too.
	o.PipelineReadBufferSize, o.PipelineWriteBufferSize = 128<<10, 128<<10
	return o
}
