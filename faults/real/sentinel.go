package real

import (
	"context"
	"fmt"
	"net"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/lockfault/lockfault/checker"
)

// master is the name under which sentinels know a node's primary.
const master = "lockfault"

// startSentinels sets sentinels to watch the only node.
func (w *World) startSentinels(ctx context.Context) error {
	host, ok := w.cfg.Host.(SentinelHost)
	if !ok {
		return fmt.Errorf("real: these servers can't be watched by sentinels")
	}
	if len(w.nodes) != 1 {
		return fmt.Errorf("real: sentinels watch one node, not %d", len(w.nodes))
	}
	var err error
	w.sentinels, err = host.StartSentinels(ctx, w.cfg.Sentinels, master, w.nodes[0].primary.addr, w.password)
	if err != nil {
		return fmt.Errorf("real: starting sentinels: %w", err)
	}
	return nil
}

// promotion is how long sentinels may take to agree on a new primary.
const promotion = 60 * time.Second

// awaitPromotion waits until the sentinels have made a replica the primary, and
// all of them say so to clients.
func (w *World) awaitPromotion(ctx context.Context, n *node) error {
	var next *server
	for deadline := time.Now().Add(promotion); time.Now().Before(deadline); time.Sleep(5 * time.Millisecond) {
		for _, s := range n.replicas() {
			// A server that is promoted closes its connections.
			if fields, err := s.replication(); next == nil && err == nil && fields["role"] == "master" {
				next = s
			}
		}
		if next != nil && w.agreed(ctx, next.addr) {
			n.primary = next
			w.observe(next, checker.ByFailover, "", nil)
			return nil
		}
	}
	return fmt.Errorf("real: the sentinels promoted no replica of %s within %v", n.name, promotion)
}

// agreed reports whether all sentinels name that address as the primary's.
func (w *World) agreed(ctx context.Context, addr string) bool {
	for _, sentinel := range w.sentinels {
		c := redis.NewSentinelClient(&redis.Options{Addr: sentinel, Password: w.password, Protocol: 2, DisableIdentity: true, MaxRetries: -1})
		got, err := c.GetMasterAddrByName(ctx, master).Result()
		_ = c.Close()
		if err != nil || len(got) != 2 || net.JoinHostPort(got[0], got[1]) != addr {
			return false
		}
	}
	return true
}
