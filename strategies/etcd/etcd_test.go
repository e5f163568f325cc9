package etcd

import (
	"context"
	"errors"
	"math/rand/v2"
	"os"
	"strings"
	"testing"
	"time"

	server "github.com/lockfault/lockfault/faults/etcd"
	"github.com/lockfault/lockfault/faults/real"
	"github.com/lockfault/lockfault/strategies"
)

func TestLocksAreStrategies(t *testing.T) {
	registry, err := strategies.Registry{}.With(All()...)
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range registry.Of(Service).All() {
		if _, err := s.New(strategies.Env{}); err == nil || !strings.Contains(err.Error(), "Env.Servers is empty") {
			t.Errorf("%s: %v", s.Name, err)
		}
	}
	if n := len(registry.Of(strategies.Redis).All()); n != 0 {
		t.Errorf("%d of them run on Redis", n)
	}
}

// clients returns so many handles on one lock of a real server.
func clients(t *testing.T, n int) (all []strategies.Lock) {
	t.Helper()
	binary, err := server.Find(t.Context())
	if err != nil && os.Getenv("CI") == "" {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	h, err := server.New(server.Options{Binary: binary, Members: 1, Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := h.Close(); err != nil {
			t.Error(err)
		}
	})
	at, err := h.Start(t.Context(), real.ServerSpec{Name: "n1-0", Node: "n1", Password: "secret"})
	if err != nil {
		t.Fatal(err)
	}
	login := server.Service{}.Login("secret")
	for range n {
		l, err := fenced().New(strategies.Env{
			Servers: []strategies.Server{{Addr: at.Addr(), Username: login.Username, Password: login.Password}},
			Key:     "lock", TTL: 30 * time.Second, Now: time.Now, Rand: rand.New(rand.NewPCG(1, 1)),
		})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = l.(interface{ Close() error }).Close() })
		all = append(all, l)
	}
	return all
}

func TestLock(t *testing.T) {
	locks := clients(t, 2)
	a, b := locks[0], locks[1]
	ctx := t.Context()
	if err := a.Release(ctx); !errors.Is(err, strategies.ErrNotHeld) {
		t.Errorf("a release before all: %v", err)
	}
	if token := a.(strategies.Fenced).Token(); token != 0 {
		t.Errorf("before all its token is %d", token)
	}
	if err := a.Acquire(ctx); err != nil {
		t.Fatal(err)
	}
	first := a.(strategies.Fenced).Token()
	if err := b.(strategies.TryAcquirer).TryAcquire(ctx); !errors.Is(err, strategies.ErrNotAcquired) {
		t.Errorf("a try beside a holder: %v", err)
	}
	soon, cancel := context.WithTimeout(ctx, 200*time.Millisecond)
	defer cancel()
	if err := b.Acquire(soon); !errors.Is(err, strategies.ErrNotAcquired) {
		t.Errorf("an acquire that gave up: %v", err)
	}
	got := make(chan error, 1)
	go func() { got <- b.Acquire(ctx) }()
	if err := a.Release(ctx); err != nil {
		t.Fatal(err)
	}
	if err := <-got; err != nil {
		t.Fatal(err)
	}
	if second := b.(strategies.Fenced).Token(); second <= first {
		t.Errorf("the tokens are %d and then %d", first, second)
	}
	if err := a.Release(ctx); !errors.Is(err, strategies.ErrNotHeld) {
		t.Errorf("a second release: %v", err)
	}
	// Who leaves in order gives the lock back at once.
	if err := b.(interface{ Close() error }).Close(); err != nil {
		t.Fatal(err)
	}
	if err := a.Acquire(ctx); err != nil {
		t.Fatal(err)
	}
	select {
	case <-a.(strategies.LossNotifier).Lost():
		t.Error("it is lost at once")
	default:
	}
}
