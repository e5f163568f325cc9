package sim_test

import (
	"context"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"

	"github.com/lockfault/lockfault/checker"
	"github.com/lockfault/lockfault/faults"
	"github.com/lockfault/lockfault/faults/sim"
)

// inBubble runs a benchmark's body in a bubble. The T only satisfies synctest, which does not
// accept a B. The benchmark's timer must not be used inside, where the clock is virtual.
func inBubble(f func()) { synctest.Test(new(testing.T), func(*testing.T) { f() }) }

// command sends the request that both sides of the comparison send.
func command(ctx context.Context, c *redis.Client) error {
	return c.SetNX(ctx, "lock", "owner-value-of-a", 30*time.Second).Err()
}

// BenchmarkCommand compares a go-redis command in a bubble: "bare" against
// miniredis over its own in-memory connection, "gate" through the gate of a world
// that records everything, latency included.
func BenchmarkCommand(b *testing.B) {
	for _, c := range []struct {
		via string
		run func(*testing.B)
	}{{"bare", bare}, {"gate", gate}} {
		b.Run("via="+c.via, func(b *testing.B) {
			b.ReportAllocs()
			inBubble(func() { c.run(b) })
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "commands/s")
		})
	}
}

func bare(b *testing.B) {
	m := miniredis.NewMiniRedis()
	m.ClockTTL(true)
	c := client(func(context.Context, string, string) (net.Conn, error) { return m.Dial() })
	repeat(b, c)
	c.Close()
	m.Close()
}

func gate(b *testing.B) {
	events := 0
	w, err := sim.New(sim.Config{
		Nodes: 1, Lock: faults.SingleKeyLock("lock"), TTL: 30 * time.Second, Seed: 1, Record: func(checker.Event) { events++ },
	})
	if err != nil {
		b.Fatal(err)
	}
	w.Begin()
	c := client(func(ctx context.Context, _, _ string) (net.Conn, error) { return w.Dial(ctx, "A", "n1") })
	done := false
	go func() {
		repeat(b, c)
		done = true
		w.Notify()
	}()
	w.Run(1000*time.Hour, func() bool { return done })
	if events < 2*b.N {
		b.Errorf("%d events of %d commands", events, b.N)
	}
	c.Close()
	w.Close()
}

func repeat(b *testing.B, c *redis.Client) {
	ctx := context.Background()
	for range b.N {
		if err := command(ctx, c); err != nil && err != redis.Nil {
			b.Error(err)
		}
	}
}
