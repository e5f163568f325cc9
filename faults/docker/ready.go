package docker

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/testcontainers/testcontainers-go/wait"

	"github.com/lockfault/lockfault/internal/rediscli"
)

// loopback is the only address on which servers' ports are published.
const loopback = "127.0.0.1"

// port is the port of servers in their containers; the Redis module publishes no other port.
const port = 6379

// ready waits for a server's answer at each start of its container. The module's own strategies
// look for a line in the log ten times per second, and run a shell in the container, which may have
// none. It is safe for concurrent use.
type ready struct {
	password string
	addr     atomic.Pointer[string] // nil until the first answer
}

var _ wait.Strategy = (*ready)(nil)

// Addr returns the address of the server's last answer; empty before the first.
func (r *ready) Addr() string {
	if addr := r.addr.Load(); addr != nil {
		return *addr
	}
	return ""
}

// WaitUntilReady returns nil when the server answers PING. It returns an error when the container
// has ended, or the cause when ctx is done.
func (r *ready) WaitUntilReady(ctx context.Context, target wait.StrategyTarget) error {
	c, addr, err := r.find(ctx, target)
	if err != nil {
		return err
	}
	defer c.Close()
	pause := time.Millisecond
	for look := time.Now(); ; {
		err := c.Ping(ctx).Err()
		if err == nil {
			r.addr.Store(&addr)
			return nil
		}
		if time.Since(look) > 50*time.Millisecond {
			look = time.Now()
			if err := alive(ctx, target); err != nil {
				return err
			}
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return fmt.Errorf("%w (%w)", context.Cause(ctx), err)
		}
		pause = min(2*pause, 10*time.Millisecond)
	}
}

// find returns a client of the server, and the published address of its port, which changes at each
// start.
func (r *ready) find(ctx context.Context, target wait.StrategyTarget) (*redis.Client, string, error) {
	published, err := target.MappedPort(ctx, fmt.Sprint(port, "/tcp"))
	if err != nil {
		// A container that has ended publishes no port.
		return nil, "", cmp.Or(alive(ctx, target), err)
	}
	addr := net.JoinHostPort(loopback, published.Port())
	o := rediscli.Options(addr)
	o.Password, o.PoolSize, o.ReadTimeout = r.password, 1, time.Second
	return redis.NewClient(o), addr, nil
}

// errEnded reports that the container ended by itself.
var errEnded = errors.New("it ended before it answered")

func alive(ctx context.Context, target wait.StrategyTarget) error {
	state, err := target.State(ctx)
	if err != nil {
		return fmt.Errorf("ask for its state: %w", err)
	}
	if !state.Running {
		return fmt.Errorf("%w (exit status %d)", errEnded, state.ExitCode)
	}
	return nil
}
