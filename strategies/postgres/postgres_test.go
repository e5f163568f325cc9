package postgres

import (
	"context"
	"errors"
	"math/rand/v2"
	"os"
	"strings"
	"testing"
	"time"

	server "github.com/lockfault/lockfault/faults/postgres"
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
}

// at starts a server, and returns what clients of it are made from.
func at(t *testing.T) (real.Owned, strategies.Env) {
	t.Helper()
	in, err := server.Find(t.Context())
	if err != nil && os.Getenv("CI") == "" {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	h, err := server.New(server.Options{Installation: in})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := h.Close(); err != nil {
			t.Error(err)
		}
	})
	s, err := h.Start(t.Context(), real.ServerSpec{Name: "n1-0", Node: "n1", Password: "secret"})
	if err != nil {
		t.Fatal(err)
	}
	login := server.Service{}.Login("secret")
	return s.(real.Owned), strategies.Env{
		Servers: []strategies.Server{{Addr: s.Addr(), Username: login.Username, Password: login.Password}},
		Key:     "lock", TTL: 30 * time.Second, Now: time.Now, Rand: rand.New(rand.NewPCG(1, 1)),
	}
}

// closer is what all of the locks are, too.
type closer interface {
	strategies.Lock
	strategies.TryAcquirer
	Close() error
}

func client(t *testing.T, s strategies.Strategy, env strategies.Env) closer {
	t.Helper()
	l, err := s.New(env)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.(closer).Close() })
	return l.(closer)
}

func sessionOf(l strategies.Lock) *session {
	switch l := l.(type) {
	case *advisoryLock:
		return l.session
	case *sequenceRow:
		return l.session
	}
	return nil
}

func TestLocks(t *testing.T) {
	owned, env := at(t)
	for _, s := range All() {
		t.Run(s.Name, func(t *testing.T) {
			env := env
			env.Key = "lock of " + s.Name
			env.Replicas = 0
			a, b := client(t, s, env), client(t, s, env)
			ctx := t.Context()
			if err := a.Release(ctx); !errors.Is(err, strategies.ErrNotHeld) {
				t.Errorf("a release before all: %v", err)
			}
			if err := a.Acquire(ctx); err != nil {
				t.Fatal(err)
			}
			if err := b.TryAcquire(ctx); !errors.Is(err, strategies.ErrNotAcquired) {
				t.Errorf("a try beside a holder: %v", err)
			}
			soon, cancel := context.WithTimeout(ctx, 300*time.Millisecond)
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
			if err := a.Release(ctx); !errors.Is(err, strategies.ErrNotHeld) {
				t.Errorf("a second release: %v", err)
			}
			if err := b.Release(ctx); err != nil {
				t.Fatal(err)
			}
			if err := a.TryAcquire(ctx); err != nil {
				t.Errorf("a try of what nobody has: %v", err)
			}
		})
	}
	// Who lost his session has nothing of it any more, and gets another.
	advisory, row := client(t, advisory(), env), client(t, rowSequence(), env)
	for _, l := range []closer{advisory, row} {
		if err := l.Acquire(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	first := row.(strategies.Fenced).Token()
	if err := owned.Kill(); err != nil {
		t.Fatal(err)
	}
	if err := owned.Restart(t.Context(), false); err != nil {
		t.Fatal(err)
	}
	// The first statement may have set out before that is known; nobody can tell then what came of it.
	for _, l := range []closer{advisory, row} {
		if err := sessionOf(l).conn.Ping(t.Context()); err == nil {
			t.Error("a session has outlived its server")
		}
	}
	if err := advisory.Release(t.Context()); !errors.Is(err, strategies.ErrNotHeld) {
		t.Errorf("a release after the session's end: %v", err)
	}
	if err := row.(strategies.Extender).Extend(t.Context()); err != nil {
		t.Errorf("an extend after a restart: %v", err)
	}
	if err := row.Release(t.Context()); err != nil {
		t.Errorf("a release after a restart: %v", err)
	}
	for _, l := range []closer{advisory, row} {
		if err := l.Acquire(t.Context()); err != nil {
			t.Error(err)
		}
	}
	if second := row.(strategies.Fenced).Token(); second <= first {
		t.Errorf("the tokens are %d and then %d", first, second)
	}
}
