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

// server is one server of the world, managed or not.
type server struct {
	*topology.Server
	world     *World
	found     Server // the host's server: process, unmanaged, or a service's
	process   ManagedServer
	unmanaged UnmanagedServer
	admin     *redis.Client // the world's own connection, past the gate
	addr      string        // the address that clients' links lead to
	resumed   time.Time     // end of the last pause
	busy      *message      // the request that the server is executing
	door      []*message    // requests that wait for busy, or for the end of a pause
	waiting   []*message    // executing requests that may wait until a client feeds a key of the lock
	handing   []faults.Key  // the lock's keys after a recorded push was taken by a request whose answer has not been seen yet

	closer int // unasked, asks or mayNot

	duty atomic.Pointer[liveness] // nil while a fault is being applied
	gone chan struct{}            // closed when the watch of this process ends

	listen string          // the IP address that the replication link listens on
	link   *proxy.Link     // the replication link; nil if the server never was a replica
	shape  topology.Stream // the stream settings of that link

	keys   []faults.Key  // the lock's keys at the last look, with their earliest possible expiry
	took   time.Duration // by how much later the expiry may be
	moved  bool          // the clock was moved since
	ends   Ending        // of a service: how the last holder's hold ends by itself
	bond   string        // the lease or session that ends it
	expiry *timer
}

// is sets the host's server.
func (s *server) is(found Server) {
	s.found = found
	s.process, _ = found.(ManagedServer)
	s.unmanaged, _ = found.(UnmanagedServer)
}

// started prepares for a new process of the server: its address, the world's connection, and the
// watch.
func (s *server) started() {
	s.addr = s.found.Addr()
	s.leave() // ends the watch of the previous process
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

// wasPaused reports whether the server was stopped at any moment since a time.
func (s *server) wasPaused(since time.Time) bool { return s.Paused || s.resumed.After(since) }

// leave ends the watch of the server's process and closes the world's connection.
func (s *server) leave() {
	if s.gone != nil {
		close(s.gone)
		s.gone = nil
	}
	if s.admin != nil {
		_ = s.admin.Close()
	}
}

// operate executes a command of the world, not of a client.
func (s *server) operate(words ...any) (any, error) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	value, err := s.admin.Do(ctx, words...).Result()
	if err != nil {
		err = fmt.Errorf("real: %s: %v: %w", s.Name, words, err)
	}
	return value, err
}

// setClock sets the server's clock, and returns when the server uses the new time.
func (s *server) setClock() error {
	now, rate := time.Now(), s.Clock.Rate()
	if err := s.process.SetClock(s.Clock.Offset(now), rate); err != nil {
		return err
	}
	ask := s.time()
	if ask == nil {
		return nil
	}
	// Valkey 9.1 reads the system's time only once per millisecond.
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

// time returns a function that asks the server for its time; nil if the server can't be asked.
func (s *server) time() func(context.Context) (time.Time, error) {
	if s.admin != nil {
		return func(ctx context.Context) (time.Time, error) { return s.admin.Time(ctx).Result() }
	}
	if keeper, ok := s.process.(Timekeeper); ok {
		return keeper.Time
	}
	return nil
}
