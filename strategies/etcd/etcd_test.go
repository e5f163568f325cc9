package etcd

import (
	"testing"
	"time"

	server "github.com/lockfault/lockfault/faults/etcd"
	"github.com/lockfault/lockfault/faults/real"
	"github.com/lockfault/lockfault/strategies/internal/servicetest"
)

func TestLocksAreStrategies(t *testing.T) { servicetest.AreStrategies(t, Service, All()) }

func host(t *testing.T) (real.Host, error) {
	binary, err := server.Find(t.Context())
	if err != nil {
		return nil, err
	}
	return server.New(server.Options{Binary: binary, Members: 1, Dir: t.TempDir()})
}

func TestLocks(t *testing.T) {
	h, err := host(t)
	at := servicetest.Start(t, h, err)
	for _, s := range All() {
		t.Run(s.Name, func(t *testing.T) {
			env := servicetest.Env(server.Service{}, at.Addr(), 30*time.Second)
			env.Key = "lock of " + s.Name
			a, b := servicetest.Client(t, s, env), servicetest.Client(t, s, env)
			servicetest.Contend(t, a, b)
			// Who leaves in order gives the lock back at once.
			if err := a.Close(); err != nil {
				t.Fatal(err)
			}
			if err := b.Acquire(t.Context()); err != nil {
				t.Fatal(err)
			}
		})
	}
}
