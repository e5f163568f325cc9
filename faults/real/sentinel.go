package real

import (
	"context"
	"fmt"
	"net"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/lockfault/lockfault/faults/topology"
	"github.com/lockfault/lockfault/internal/rediscli"
)

// master is the name under which sentinels know a node's primary.
const master = "lockfault"

// startSentinels sets sentinels to watch the only node.
func (w *World) startSentinels(ctx context.Context) error {
	host, ok := w.cfg.Host.(SentinelHost)
	if !ok {
		return fmt.Errorf("real: these servers can't be watched by sentinels")
	}
	if len(w.top.Nodes) != 1 {
		return fmt.Errorf("real: sentinels watch one node, not %d", len(w.top.Nodes))
	}
	var err error
	w.sentinels, err = host.StartSentinels(ctx, w.cfg.Sentinels, master, w.of(w.top.Nodes[0].Primary).addr, w.password)
	if err != nil {
		return fmt.Errorf("real: starting sentinels: %w", err)
	}
	return nil
}

// promotion is how long sentinels may take to agree on a new primary.
const promotion = 60 * time.Second

// awaitPromotion waits until the sentinels have made a replica the primary, and
// all of them say so to clients.
func (w *World) awaitPromotion(among []*topology.Server) (*topology.Server, error) {
	var next *topology.Server
	for deadline := time.Now().Add(promotion); time.Now().Before(deadline); time.Sleep(5 * time.Millisecond) {
		for _, s := range among {
			// A server that is promoted closes its connections.
			if fields, err := w.of(s).replication(); next == nil && err == nil && fields["role"] == "master" {
				next = s
			}
		}
		if next != nil && w.agreed(context.Background(), w.of(next).addr) {
			return next, nil
		}
	}
	return nil, fmt.Errorf("the sentinels promoted no replica within %v", promotion)
}

// agreed reports whether all sentinels name that address as the primary's.
func (w *World) agreed(ctx context.Context, addr string) bool {
	for _, sentinel := range w.sentinels {
		o := rediscli.Options(sentinel)
		o.Password = w.password
		c := redis.NewSentinelClient(o)
		got, err := c.GetMasterAddrByName(ctx, master).Result()
		_ = c.Close()
		if err != nil || len(got) != 2 || net.JoinHostPort(got[0], got[1]) != addr {
			return false
		}
	}
	return true
}
