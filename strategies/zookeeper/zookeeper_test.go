package zookeeper

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/lockfault/lockfault/faults/real"
	server "github.com/lockfault/lockfault/faults/zookeeper"
	"github.com/lockfault/lockfault/strategies"
	"github.com/lockfault/lockfault/strategies/internal/servicetest"
)

func TestLocksAreStrategies(t *testing.T) { servicetest.AreStrategies(t, Service, All()) }

// serve starts a server.
func serve(t *testing.T) real.Server {
	t.Helper()
	var h real.Host
	program, err := server.Find()
	if err == nil {
		h, err = server.New(server.Options{Program: program, Members: 1, Dir: t.TempDir()})
	}
	return servicetest.Start(t, h, err)
}

// client makes a client's lock on the server at that address.
func client(t *testing.T, addr string, ttl time.Duration) *tokenLock {
	t.Helper()
	return servicetest.Client(t, fenced(), servicetest.Env(server.Service{}, addr, ttl)).(*tokenLock)
}

func TestLock(t *testing.T) {
	at := serve(t)
	a, b := client(t, at.Addr(), 30*time.Second), client(t, at.Addr(), 30*time.Second)
	ctx := t.Context()
	servicetest.Contend(t, a, b)
	if err := a.Acquire(ctx); !errors.Is(err, strategies.ErrNotAcquired) {
		t.Errorf("an acquire of who holds: %v", err)
	}
	if names := nodes(t, a.lock); len(names) != 1 {
		t.Errorf("when others have given up, and left, there are %q", names)
	}
	// Who leaves in order gives the lock back at once.
	if err := a.Close(); err != nil {
		t.Fatal(err)
	}
	if err := b.TryAcquire(ctx); err != nil {
		t.Fatal(err)
	}
}

// nodes returns the names of the nodes below the lock's.
func nodes(t *testing.T, l *lock) []string {
	t.Helper()
	names, _, err := l.session.conn.Children(l.path)
	if err != nil {
		t.Fatal(err)
	}
	return names
}

// short is a session that is over soon: of the fewest ticks that a server gives.
const short = 200 * time.Millisecond

// A client that stays away for longer than its session is told when it is back, and what it has is no lock.
func TestSessionExpires(t *testing.T) {
	at := serve(t)
	way := newRelay(t, at.Addr())
	a, b := client(t, way.listener.Addr().String(), short), client(t, at.Addr(), 30*time.Second)
	ctx := t.Context()
	expires := func() {
		way.cut()
		if err := b.Acquire(ctx); err != nil { // it waits for the session's end
			t.Fatal(err)
		}
		way.mend()
		<-a.Lost()
		if err := b.Release(ctx); err != nil {
			t.Fatal(err)
		}
	}
	if err := a.Acquire(ctx); err != nil {
		t.Fatal(err)
	}
	expires()
	if err := a.Release(ctx); !errors.Is(err, strategies.ErrNotHeld) {
		t.Errorf("a release of what is lost: %v", err)
	}
	if err := a.Acquire(ctx); err != nil {
		t.Fatal(err)
	}
	select {
	case <-a.Lost():
		t.Error("the next is lost at once")
	default:
	}
	expires()
	if err := a.Acquire(ctx); err != nil {
		t.Errorf("an acquire of who believed to hold: %v", err)
	}
	if names := nodes(t, b.lock); len(names) != 1 {
		t.Errorf("there are %q", names)
	}
}

// What servers can't be asked about nobody knows, until the session is over.
func TestNobodyAnswers(t *testing.T) {
	at := serve(t)
	way := newRelay(t, at.Addr())
	a, b := client(t, way.listener.Addr().String(), short), client(t, at.Addr(), 30*time.Second)
	ctx := t.Context()
	soon := func(do func(context.Context) error) error {
		ctx, cancel := context.WithTimeout(ctx, 50*time.Millisecond)
		defer cancel()
		return do(ctx)
	}
	if err := a.Acquire(ctx); err != nil {
		t.Fatal(err)
	}
	way.cut()
	if err := soon(a.Release); err == nil || errors.Is(err, strategies.ErrNotHeld) {
		t.Errorf("a release that nobody answers: %v", err)
	}
	if err := soon(a.Acquire); !errors.Is(err, strategies.ErrNotAcquired) {
		t.Errorf("an acquire without a server: %v", err)
	}
	if err := b.Acquire(ctx); err != nil {
		t.Errorf("when the session is over: %v", err)
	}
}

// An acquire that loses its server when it has made its node, and then its session, is made again, and leaves no other
// node than the one that holds.
func TestConnectionBreaksInAcquire(t *testing.T) {
	at := serve(t)
	way := newRelay(t, at.Addr())
	a, b := client(t, way.listener.Addr().String(), short), client(t, at.Addr(), 30*time.Second)
	ctx := t.Context()
	if err := b.Acquire(ctx); err != nil { // there is the lock's own node from now on
		t.Fatal(err)
	}
	if err := b.Release(ctx); err != nil {
		t.Fatal(err)
	}
	const create = 1 // ZooDefs.OpCode
	cut := make(chan struct{})
	var once sync.Once
	way.handed(func(opcode int32) {
		if opcode == create {
			once.Do(func() {
				way.cut()
				close(cut)
			})
		}
	})
	got := make(chan error, 1)
	go func() { got <- a.Acquire(ctx) }()
	<-cut
	for len(nodes(t, b.lock)) > 0 {
		time.Sleep(5 * time.Millisecond) // the node goes with its session
	}
	way.mend()
	if err := <-got; err != nil {
		t.Fatal(err)
	}
	if names := nodes(t, b.lock); len(names) != 1 {
		t.Errorf("one holds, and there are %q", names)
	}
	if err := a.Release(ctx); err != nil {
		t.Error(err)
	}
}
