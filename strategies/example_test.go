package strategies_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"

	"github.com/lockfault/lockfault/strategies"
)

// A strategy builds the lock of one client on ordinary go-redis clients.
func Example() {
	server := miniredis.NewMiniRedis()
	if err := server.Start(); err != nil {
		fmt.Println(err)
		return
	}
	defer server.Close()
	client := redis.NewClient(&redis.Options{Addr: server.Addr()})
	defer func() { _ = client.Close() }()

	strategy, _ := strategies.Builtin().Lookup("fenced")
	lock, err := strategy.New(strategies.Env{
		Nodes: []redis.UniversalClient{client},
		Key:   "orders",
		TTL:   30 * time.Second,
		Owner: "worker-1",
		Now:   time.Now,
		Rand:  rand.New(rand.NewPCG(1, 2)),
	})
	if err != nil {
		fmt.Println(err)
		return
	}

	ctx := context.Background()
	fmt.Println("acquire:", lock.Acquire(ctx))
	if fenced, ok := lock.(strategies.Fenced); ok {
		fmt.Println("fencing token:", fenced.Token())
	}
	fmt.Println("release:", lock.Release(ctx))
	fmt.Println("again:", lock.Release(ctx))
	// Output:
	// acquire: <nil>
	// fencing token: 1
	// release: <nil>
	// again: strategies: fenced: orders is not ours: strategies: lock not held
}

func ExampleRegistry_Select() {
	selected, err := strategies.Builtin().Select("redlock", "@redisson")
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, s := range selected {
		fmt.Println(s.Name)
	}
	// Output:
	// redisson
	// redisson-multilock
	// redisson-redlock
	// redlock
}
