package sim_test

import (
	"context"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"

	"github.com/lockfault/lockfault/checker"
	"github.com/lockfault/lockfault/faults/sim"
)

func client(dial func(context.Context, string, string) (net.Conn, error)) *redis.Client {
	return redis.NewClient(&redis.Options{
		Addr:     "127.0.0.1:6379",
		Protocol: 2, DisableIdentity: true, MaxRetries: -1, PoolSize: 64, ContextTimeoutEnabled: true,
		MaintNotificationsConfig: &maintnotifications.Config{Mode: maintnotifications.ModeDisabled},
		Dialer:                   dial,
	})
}

func connect(w *sim.World, name, node string) *redis.Client {
	return client(func(ctx context.Context, _, _ string) (net.Conn, error) { return w.Dial(ctx, name, node) })
}

func TestSpike(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var events []checker.Event
		w, err := sim.New(sim.Config{Nodes: 1, Replicas: 1, Key: "lock", TTL: 30 * time.Second, Seed: 1, Record: func(e checker.Event) { events = append(events, e) }})
		if err != nil {
			t.Fatal(err)
		}
		w.Begin()
		a := connect(w, "A", "n1")
		done := false
		go func() {
			t.Log(a.SetNX(context.Background(), "lock", "value-of-a-1234", 30*time.Second).Result())
			t.Log(a.Wait(context.Background(), 1, time.Second).Result())
			t.Log(redis.NewScript("return redis.call('del',KEYS[1])").Run(context.Background(), a, []string{"lock"}).Result())
			time.Sleep(time.Second)
			done = true
			w.Notify()
		}()
		t.Log(w.Run(10*time.Second, func() bool { return done }))
		t.Log(w.Now())
		a.Close()
		w.Close()
		for _, e := range events {
			t.Logf("%+v", e)
		}
	})
}
