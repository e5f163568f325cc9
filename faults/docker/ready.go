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

// loopback is where servers' ports are published, and nowhere else.
const loopback = "127.0.0.1"

// port is where servers listen in their containers; the Redis module publishes
// no other.
const port = 6379

// ready waits for a server's answer, at each start of its container. The
// module's own strategies look for a line in the log ten times a second, and run a
// shell in the container, which may have none. Safe for concurrent use.
type ready struct {
	password string
	addr     atomic.Pointer[string] // nil until it has answered
}

var _ wait.Strategy = (*ready)(nil)

// Addr is where the server answered last.
func (r *ready) Addr() string {
	if addr := r.addr.Load(); addr != nil {
		return *addr
	}
	return ""
}

// WaitUntilReady returns when the server answers PING, or when the container
// has ended, or with why ctx is done.
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
		timer := time.NewTimer(pause)
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return fmt.Errorf("%w (%w)", context.Cause(ctx), err)
		}
		pause = min(2*pause, 10*time.Millisecond)
	}
}

// find returns a client of the server, and the address that its port is
// published at, which is another one after each start.
func (r *ready) find(ctx context.Context, target wait.StrategyTarget) (*redis.Client, string, error) {
	published, err := target.MappedPort(ctx, fmt.Sprint(port, "/tcp"))
	if err != nil {
		// One that has ended publishes nothing any more.
		return nil, "", cmp.Or(alive(ctx, target), err)
	}
	addr := net.JoinHostPort(loopback, published.Port())
	o := rediscli.Options(addr)
	o.Password, o.PoolSize, o.ReadTimeout = r.password, 1, time.Second
	return redis.NewClient(o), addr, nil
}

// errEnded says that the container ended by itself.
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
