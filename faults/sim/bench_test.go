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
	"github.com/lockfault/lockfault/faults/sim"
)

// inBubble runs a benchmark's body in a bubble. The T is only there to satisfy
// synctest: a benchmark has none. The benchmark's timer must not be touched
// inside, where the clock is virtual.
func inBubble(f func()) { synctest.Test(new(testing.T), func(*testing.T) { f() }) }

// command is what both sides of the comparison send.
func command(ctx context.Context, c *redis.Client) error {
	return c.SetNX(ctx, "lock", "owner-value-of-a", 30*time.Second).Err()
}

// BenchmarkCommandBare is a go-redis command against miniredis over its own
// in-memory connection, in a bubble.
func BenchmarkCommandBare(b *testing.B) {
	b.ReportAllocs()
	inBubble(func() {
		m := miniredis.NewMiniRedis()
		m.ClockTTL(true)
		c := client(func(context.Context, string, string) (net.Conn, error) { return m.Dial() })
		ctx := context.Background()
		_ = command(ctx, c)
		for range b.N {
			if err := command(ctx, c); err != nil && err != redis.Nil {
				b.Error(err)
			}
		}
		c.Close()
		m.Close()
	})
}

// BenchmarkCommandGate is the same command through the gate of a world that
// records everything, latency included.
func BenchmarkCommandGate(b *testing.B) {
	b.ReportAllocs()
	inBubble(func() {
		events := 0
		w, err := sim.New(sim.Config{
			Nodes: 1, Key: "lock", TTL: 30 * time.Second, Seed: 1, Record: func(checker.Event) { events++ },
		})
		if err != nil {
			b.Fatal(err)
		}
		w.Begin()
		c := client(func(ctx context.Context, _, _ string) (net.Conn, error) { return w.Dial(ctx, "A", "n1") })
		ctx := context.Background()
		done := false
		go func() {
			_ = command(ctx, c)
			for range b.N {
				if err := command(ctx, c); err != nil && err != redis.Nil {
					b.Error(err)
				}
			}
			done = true
			w.Notify()
		}()
		w.Run(1000*time.Hour, func() bool { return done })
		c.Close()
		w.Close()
	})
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "commands/s")
}
