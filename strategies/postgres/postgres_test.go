package postgres

import (
	"errors"
	"testing"
	"time"

	server "github.com/lockfault/lockfault/faults/postgres"
	"github.com/lockfault/lockfault/faults/real"
	"github.com/lockfault/lockfault/strategies"
	"github.com/lockfault/lockfault/strategies/internal/servicetest"
)

func TestLocksAreStrategies(t *testing.T) {
	servicetest.AreStrategies(t, Service, All())
	servicetest.AreStrategies(t, Pooled, Behind())
}

func host(t *testing.T, pooled bool) (real.Host, error) {
	in, err := server.Find(t.Context())
	if err != nil {
		return nil, err
	}
	o := server.Options{Installation: in}
	if pooled {
		if o.Pooler, err = server.FindPooler(); err != nil {
			return nil, err
		}
	}
	return server.New(o)
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
	h, err := host(t, false)
	owned := servicetest.Start(t, h, err)
	env := servicetest.Env(server.Service{}, owned.Addr(), 30*time.Second)
	for _, s := range All() {
		t.Run(s.Name, func(t *testing.T) {
			env := env
			env.Key = "lock of " + s.Name
			servicetest.Contend(t, servicetest.Client(t, s, env), servicetest.Client(t, s, env))
		})
	}
	// Who lost his session has nothing of it any more, and gets another.
	advisory, row := servicetest.Client(t, advisory(), env), servicetest.Client(t, rowSequence(), env)
	for _, l := range []servicetest.Lock{advisory, row} {
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
	for _, l := range []servicetest.Lock{advisory, row} {
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
	for _, l := range []servicetest.Lock{advisory, row} {
		if err := l.Acquire(t.Context()); err != nil {
			t.Error(err)
		}
	}
	if second := row.(strategies.Fenced).Token(); second <= first {
		t.Errorf("the tokens are %d and then %d", first, second)
	}
}

// Behind a pooler the session that has a lock is anybody's, and a row is nobody's but its owner's.
func TestPooled(t *testing.T) {
	h, err := host(t, true)
	env := servicetest.Env(server.Service{}, servicetest.Start(t, h, err).Addr(), 30*time.Second)
	all := Behind()
	a, b := servicetest.Client(t, all[0], env), servicetest.Client(t, all[0], env)
	for _, l := range []servicetest.Lock{a, b} {
		if err := l.TryAcquire(t.Context()); err != nil {
			t.Errorf("of one session not everybody has the lock: %v", err)
		}
	}
	servicetest.Contend(t, servicetest.Client(t, all[2], env), servicetest.Client(t, all[2], env))
}
