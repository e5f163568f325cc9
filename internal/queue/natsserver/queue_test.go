package natsserver_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/lockfault/lockfault/internal/queue"
	"github.com/lockfault/lockfault/internal/queue/natsserver"
)

// serve starts a server, and returns its address with the generated credentials.
func serve(t *testing.T) queue.Address {
	t.Helper()
	return serveIn(t, t.TempDir())
}

func serveIn(t *testing.T, dir string) queue.Address {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	addresses := make(chan queue.Address, 1)
	var serving sync.WaitGroup
	serving.Go(func() {
		err := natsserver.Engine{}.Serve(ctx, queue.ServerOptions{Listen: "127.0.0.1:0", Dir: dir}, func(url, credentials string) { addresses <- queue.Address{URLs: url, Credentials: credentials} })
		if err != nil {
			t.Error(err)
			close(addresses)
		}
	})
	t.Cleanup(func() {
		cancel()
		serving.Wait()
	})
	at, ok := <-addresses
	if !ok {
		t.FailNow()
	}
	return at
}

func connect(t *testing.T, at queue.Address) queue.Conn {
	t.Helper()
	return connectWith(t, natsserver.Engine{}, at)
}

func connectWith(t *testing.T, e natsserver.Engine, at queue.Address) queue.Conn {
	t.Helper()
	c, err := e.Connect(t.Context(), at, func(text string) { t.Log(text) })
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

var ours = queue.Program{Class: "0123abcd", Version: "v1.2.3"}

// echo answers an item with the item's body.
func echo(_ context.Context, t queue.Task) (queue.Answer, error) {
	return queue.Answer{Body: t.Body, Files: map[string][]byte{"a/b": t.Body}}, nil
}

// work runs a worker until the test ends.
func work(t *testing.T, c queue.Conn, p queue.Program, w queue.Worker) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	var working sync.WaitGroup
	working.Go(func() {
		if err := c.Work(ctx, p, w); ctx.Err() == nil {
			t.Error(err)
		}
	})
	t.Cleanup(func() {
		cancel()
		working.Wait()
	})
}

func campaign(t *testing.T, c queue.Conn, name string) queue.Job {
	t.Helper()
	g, err := c.Campaign(t.Context(), ours, name, "test")
	if err != nil {
		t.Fatal(err)
	}
	return g
}

func TestEveryItemIsAnsweredOnce(t *testing.T) {
	t.Parallel()
	url := serve(t)
	for range 2 {
		work(t, connect(t, url), ours, queue.Worker{Slots: 2, Do: echo})
	}
	g := campaign(t, connect(t, url), "c")
	began := time.Now()
	const n = 500
	for i := range n {
		if err := g.Put(t.Context(), queue.Item{Kind: queue.Cell, Name: fmt.Sprint("item-", i), Body: fmt.Append(nil, i)}); err != nil {
			t.Fatal(err)
		}
	}
	t.Log("put", time.Since(began))
	had := map[string]bool{}
	for range n {
		a, err := g.Next(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if had[a.Name] || a.Name != "item-"+string(a.Body) || string(a.Files["a/b"]) != string(a.Body) {
			t.Fatalf("%+v", a)
		}
		had[a.Name] = true
	}
	t.Log("all", time.Since(began))
	if err := g.Close(true); err != nil {
		t.Error(err)
	}
}
