package real

import (
	"context"
	"fmt"
	"time"

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

// awaitPromotion waits until the sentinels have made a replica the primary.
func (w *World) awaitPromotion(ctx context.Context, n *node) error {
	for deadline := time.Now().Add(promotion); time.Now().Before(deadline); time.Sleep(5 * time.Millisecond) {
		for _, s := range n.replicas() {
			fields, err := s.replication()
			if err != nil {
				return err
			}
			if fields["role"] == "master" {
				n.primary = s
				w.observe(s, checker.ByFailover, "", nil)
				return nil
			}
		}
	}
	return fmt.Errorf("real: the sentinels promoted no replica of %s within %v", n.name, promotion)
}
