// Package servicetest tests locks of services other than Redis on one real server each. The inputs
// are a host and strategies; problems are reported to the test. Only the tests of sub-packages of
// strategies may use it.
package servicetest

import (
	"context"
	"errors"
	"math/rand/v2"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/lockfault/lockfault/faults/real"
	"github.com/lockfault/lockfault/strategies"
)

// password is the clients' password.
const password = "secret"

// Start starts a server of a host; err is the error of making the host. If the host could not be
// made, Start skips the test, or fails it if the environment variable CI is set. The host is closed
// when the test ends.
func Start(t *testing.T, h real.Host, err error) real.ManagedServer {
	t.Helper()
	if err != nil && os.Getenv("CI") == "" {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := h.Close(); err != nil {
			t.Error(err)
		}
	})
	s, err := h.Start(t.Context(), real.ServerSpec{Name: "n1-0", Node: "n1", Password: password})
	if err != nil {
		t.Fatal(err)
	}
	return s.(real.ManagedServer)
}

// Env returns the Env of a client whose server has the given address.
func Env(of real.Service, addr string, ttl time.Duration) strategies.Env {
	login := of.Login(password)
	return strategies.Env{
		Servers: []strategies.Server{{Addr: addr, Username: login.Username, Password: login.Password}},
		Key:     "lock", TTL: ttl, Now: time.Now, Rand: rand.New(rand.NewPCG(1, 1)),
	}
}

// Lock is the interface that all of these locks implement.
type Lock interface {
	strategies.Lock
	strategies.TryAcquirer
	Close() error
}

// Client makes a client's lock, which is closed when the test ends.
func Client(t *testing.T, s strategies.Strategy, env strategies.Env) Lock {
	t.Helper()
	l, err := s.New(env)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.(Lock).Close() })
	return l.(Lock)
}

// AreStrategies checks that the locks are strategies of the service, and that New fails without
// servers.
func AreStrategies(t *testing.T, service string, all []strategies.Strategy) {
	t.Helper()
	registry, err := strategies.Registry{}.With(all...)
	if err != nil {
		t.Fatal(err)
	}
	if of := registry.Of(service).All(); len(of) != len(all) {
		t.Errorf("%d of %d run on %s", len(of), len(all), service)
	}
	for _, s := range all {
		if _, err := s.New(strategies.Env{}); err == nil || !strings.Contains(err.Error(), "Env.Servers is empty") {
			t.Errorf("%s: %v", s.Name, err)
		}
	}
}

// Contend checks two clients of one free lock. First, a cannot release a lock that it does not
// hold. While a holds the lock, b fails to acquire it; b acquires it when a releases it. After b's
// release, a acquires it at once. Tokens, if there are any, grow.
func Contend(t *testing.T, a, b Lock) {
	t.Helper()
	ctx := t.Context()
	token := func(l Lock) int64 {
		if l, ok := l.(strategies.Fenced); ok {
			return l.Token()
		}
		return 0
	}
	if err := a.Release(ctx); !errors.Is(err, strategies.ErrNotHeld) {
		t.Errorf("a release before all: %v", err)
	}
	if n := token(a); n != 0 {
		t.Errorf("before all its token is %d", n)
	}
	if err := a.Acquire(ctx); err != nil {
		t.Fatal(err)
	}
	first := token(a)
	if err := b.TryAcquire(ctx); !errors.Is(err, strategies.ErrNotAcquired) {
		t.Errorf("a try beside a holder: %v", err)
	}
	soon, cancel := context.WithTimeout(ctx, 500*time.Millisecond)
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
	if second := token(b); first != 0 && second <= first {
		t.Errorf("the tokens are %d and then %d", first, second)
	}
	if err := a.Release(ctx); !errors.Is(err, strategies.ErrNotHeld) {
		t.Errorf("a second release: %v", err)
	}
	if err := b.Release(ctx); err != nil {
		t.Errorf("a release: %v", err)
	}
	if err := a.TryAcquire(ctx); err != nil {
		t.Errorf("a try of what nobody has: %v", err)
	}
	if l, ok := a.(strategies.LossNotifier); ok {
		select {
		case <-l.Lost():
			t.Error("it is lost at once")
		default:
		}
	}
}
