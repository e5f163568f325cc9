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

// master is the name of the node's primary in sentinels.
const master = "lockfault"

// startSentinels starts sentinels that monitor the only node.
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

// The values of the sentinels' failover-timeout. hasty limits each step while they promote a
// replica, done the last step, the check that all replicas follow the new primary, and steady
// applies at other times. The timeout is also how long sentinels tolerate that a replica follows
// the link to its primary instead of the primary itself: forever, because scripts inject faults
// into links.
const (
	hasty  = time.Second
	done   = 50 * time.Millisecond
	steady = 24 * time.Hour
)

// promotion is the maximum time for sentinels to agree on a new primary.
const promotion = 60 * time.Second

// awaitPromotion waits until the sentinels have promoted a replica, the other replicas follow it,
// all sentinels report it to clients, and none is still in the failover. From then on the sentinels
// leave the replicas' leaders alone.
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
			// Only the leader of the failover reports the new primary before the failover is done;
			// with the short timeout, other sentinels would begin another failover. A sentinel that
			// doesn't answer is asked again.
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

// followed reports whether all replicas that answer follow the new primary.
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

// agreed reports whether all sentinels monitor that address as the primary's, which they do when
// the failover is done.
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

// allow sets the failover-timeout of one sentinel.
func allow(ctx context.Context, c *redis.SentinelClient, timeout time.Duration) error {
	if err := c.Set(ctx, master, "failover-timeout", fmt.Sprint(timeout.Milliseconds())).Err(); err != nil {
		return fmt.Errorf("set a sentinel's failover-timeout: %w", err)
	}
	return nil
}

// each calls do for each sentinel, and returns the first error at once.
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

// promoted adds up the time that the sentinels took for all promotions so far. Up to half a lease
// in total is no lateness. Beyond that, a tenth of the total counts as lateness, so that a lease of
// twice that time is long enough.
func (w *World) promoted(took time.Duration) {
	w.granted += took
	w.promotions += took
	if w.promotions > w.cfg.TTL/2 {
		w.note("sentinels", "sentinels to promote a replica", w.promotions/10)
	}
}
