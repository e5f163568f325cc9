package real

import (
	"context"
	"fmt"
	"math"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/lockfault/lockfault/faults"
	"github.com/lockfault/lockfault/faults/real/proxy"
	"github.com/lockfault/lockfault/faults/topology"
	"github.com/lockfault/lockfault/internal/rediscli"
)

// server is one Redis server.
type server struct {
	*topology.Server
	world     *World
	found     Server // as the host has it: one of the next two
	process   ManagedServer
	unmanaged UnmanagedServer
	admin     *redis.Client // the world's own connection, past the gate
	addr      string        // where clients' links lead to
	resumed   time.Time     // when it last was no longer stopped
	busy      *message      // the request that it has in hand
	door      []*message    // requests that wait for that, or for its process
	waiting   []*message    // those it has that may wait until somebody feeds a key of the lock
	handing   []faults.Key  // the lock's, when one of those got what is told to be there, and was not heard of yet

	closer int // unasked, asks or mayNot

	duty atomic.Pointer[liveness] // nil while a fault is being done
	gone chan struct{}            // closed when nobody watches this process any more

	listen string          // the address at which its replication link listens
	link   *proxy.Link     // that link, if it ever was a replica
	shape  topology.Stream // what that goes by

	keys   []faults.Key  // of the lock, when last looked at, with the earliest expiry that they may have
	took   time.Duration // by how much later that may be
	moved  bool          // the clock was moved since
	ends   Ending        // of a service's: why the last holder has it no longer if he did nothing
	bond   string        // and what ends then
	expiry *timer
}

// is takes note of what the host has for a server.
func (s *server) is(found Server) {
	s.found = found
	s.process, _ = found.(ManagedServer)
	s.unmanaged, _ = found.(UnmanagedServer)
}

// started takes note that a server's process is there.
func (s *server) started() {
	s.addr = s.found.Addr()
	s.leave() // the process before this one
	if s.world.cfg.Service == nil {
		login := s.login()
		o := rediscli.Options(s.addr)
		o.Username, o.Password, o.DB = login.Username, login.Password, login.DB
		o.ReadTimeout, o.PoolSize, o.ConnMaxIdleTime = patience, 4, -1
		s.admin = redis.NewClient(o)
	}
	if r, err := s.replica(); err == nil && s.world.cfg.Replicas > 0 {
		s.gone = make(chan struct{})
		go s.watch(r, s.gone)
	}
}

// wasPaused reports whether the server was stopped at any time since then.
func (s *server) wasPaused(since time.Time) bool { return s.Paused || s.resumed.After(since) }

// leave lets go of the server's process.
func (s *server) leave() {
	if s.gone != nil {
		close(s.gone)
		s.gone = nil
	}
	if s.admin != nil {
		_ = s.admin.Close()
	}
}

// operate executes a command of an operator, not of a client.
func (s *server) operate(words ...any) (any, error) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	value, err := s.admin.Do(ctx, words...).Result()
	if err != nil {
		err = fmt.Errorf("real: %s: %v: %w", s.Name, words, err)
	}
	return value, err
}

// setClock sets the server's clock, and returns when the server goes by it.
func (s *server) setClock() error {
	now, rate := time.Now(), s.Clock.Rate()
	if err := s.process.SetClock(s.Clock.Offset(now), rate); err != nil {
		return err
	}
	ask := s.time()
	if ask == nil {
		return nil
	}
	// Valkey 9.1 asks the system for the time only once a millisecond.
	unsure := slack + time.Duration(float64(time.Since(now))*math.Abs(rate-1))
	return await("the clock of "+s.Name+" to be set", func() (bool, error) {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		asked := time.Now()
		from := asked.Add(s.Clock.Offset(asked) - unsure)
		shown, err := ask(ctx)
		if err != nil {
			return false, fmt.Errorf("real: %s: asking for the time: %w", s.Name, err)
		}
		now := time.Now()
		return !shown.Before(from) && !shown.After(now.Add(s.Clock.Offset(now)+unsure)), nil
	})
}

// time returns how to ask the server what its clock shows; nil if nobody can.
func (s *server) time() func(context.Context) (time.Time, error) {
	if s.admin != nil {
		return func(ctx context.Context) (time.Time, error) { return s.admin.Time(ctx).Result() }
	}
	if keeper, ok := s.process.(Timekeeper); ok {
		return keeper.Time
	}
	return nil
}
