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

// How long sentinels may take, in Redis's words their failover-timeout, for each step
// while they promote a replica, for the step that is left when all follow it, which is
// to look whether they do, and at other times. It is also how long they bear that a
// replica follows the link that leads to its primary, and not the primary itself: for
// ever, as what happens on links is what a script is about.
const (
	hasty  = time.Second
	done   = 50 * time.Millisecond
	steady = 24 * time.Hour
)

// promotion is how long sentinels may take to agree on a new primary.
const promotion = 60 * time.Second

// awaitPromotion waits until the sentinels have made a replica the primary, have the
// others follow it, all say so to clients, and none is still at it. Whom the others
// follow they leave alone from then on.
func (w *World) awaitPromotion(among []*topology.Server) (next *topology.Server, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), promotion)
	defer cancel()
	if err := w.allow(ctx, hasty); err != nil {
		return nil, err
	}
	for follow := false; ctx.Err() == nil; time.Sleep(5 * time.Millisecond) {
		for _, s := range among {
			// A server that is promoted closes its connections.
			if fields, err := w.of(s).replication(); next == nil && err == nil && fields["role"] == "master" {
				next = s
			}
		}
		switch {
		case next == nil:
		case !follow:
			if !w.followed(next, among) {
				continue
			}
			// Only who leads the failover names the new primary before it is done. Others
			// would begin another one. Who doesn't answer is asked again.
			_ = w.each(func(c *redis.SentinelClient) error {
				got, err := c.GetMasterAddrByName(ctx, master).Result()
				if err != nil || len(got) != 2 || net.JoinHostPort(got[0], got[1]) != w.of(next).addr {
					return err
				}
				err = allow(ctx, c, done)
				follow = follow || err == nil
				return err
			})
		case w.agreed(ctx, w.of(next).addr):
			return next, w.allow(ctx, steady)
		}
	}
	return nil, fmt.Errorf("the sentinels promoted no replica within %v", promotion)
}

// followed reports whether those that answer follow the new primary.
func (w *World) followed(next *topology.Server, among []*topology.Server) bool {
	for _, s := range among {
		if s == next || !s.Answers() {
			continue
		}
		fields, err := w.of(s).replication()
		if err != nil || !linked(fields) || net.JoinHostPort(fields["master_host"], fields["master_port"]) != w.of(next).addr {
			return false
		}
	}
	return true
}

// agreed reports whether all sentinels watch that address as the primary's, which they
// do when they are done with the one before.
func (w *World) agreed(ctx context.Context, addr string) bool {
	return w.each(func(c *redis.SentinelClient) error {
		got, err := c.Master(ctx, master).Result()
		switch at := net.JoinHostPort(got["ip"], got["port"]); {
		case err != nil:
			return err
		case at != addr || got["flags"] != "master":
			return fmt.Errorf("watches %s as %s", at, got["flags"])
		}
		return nil
	}) == nil
}

// allow sets the failover-timeout of all sentinels.
func (w *World) allow(ctx context.Context, timeout time.Duration) error {
	return w.each(func(c *redis.SentinelClient) error { return allow(ctx, c, timeout) })
}

// allow sets the failover-timeout of one.
func allow(ctx context.Context, c *redis.SentinelClient, timeout time.Duration) error {
	if err := c.Set(ctx, master, "failover-timeout", fmt.Sprint(timeout.Milliseconds())).Err(); err != nil {
		return fmt.Errorf("set a sentinel's failover-timeout: %w", err)
	}
	return nil
}

// each calls do for each sentinel, until one of them fails.
func (w *World) each(do func(*redis.SentinelClient) error) error {
	for _, sentinel := range w.sentinels {
		o := rediscli.Options(sentinel)
		o.Password = w.password
		c := redis.NewSentinelClient(o)
		err := do(c)
		_ = c.Close()
		if err != nil {
			return err
		}
	}
	return nil
}

// promoted takes note of how long the sentinels took to promote a replica, and for all
// promotions so far. That is no lateness while it is no more than half a lease, and a
// tenth of it if it is more: with twice the time as a lease, it is not.
func (w *World) promoted(took time.Duration) {
	w.granted += took
	w.promotions += took
	if w.promotions > w.cfg.TTL/2 {
		w.note("sentinels", "sentinels to promote a replica", w.promotions/10)
	}
}
