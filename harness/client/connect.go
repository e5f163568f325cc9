package client

import (
	"context"
	"net"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"
)

func (c *Client) connect(node string) (redis.UniversalClient, error) {
	if c.host.Connect != nil {
		return c.host.Connect(node)
	}
	options := c.setup.Options()
	options.Dialer = func(ctx context.Context, _, _ string) (net.Conn, error) {
		return c.host.Dial(ctx, node)
	}
	return redis.NewClient(options), nil
}

// Options returns how a go-redis client is set up as the script says, all but
// where it connects to.
func (s Setup) Options() *redis.Options {
	retries := s.Retries
	if retries == 0 {
		retries = -1 // go-redis takes 0 for its default of 3
	}
	return &redis.Options{
		Addr:       "127.0.0.1:6379", // not dialled, but a host name would be looked up
		MaxRetries: retries,
		// go-redis draws its pauses from a source that can't be seeded,
		// between these two.
		MinRetryBackoff: 8 * time.Millisecond, MaxRetryBackoff: 8 * time.Millisecond,
		DialerRetries:         1,
		DialTimeout:           s.ReadTimeout,
		ReadTimeout:           s.ReadTimeout,
		WriteTimeout:          s.ReadTimeout,
		ContextTimeoutEnabled: !s.IgnoreContext,
		// Timers that wait for a free connection are shared between
		// bubbles, which is fatal: let there always be one.
		PoolSize: 128, ConnMaxIdleTime: -1,
		Protocol: 2, DisableIdentity: true,
		MaintNotificationsConfig: &maintnotifications.Config{Mode: maintnotifications.ModeDisabled},
	}
}
