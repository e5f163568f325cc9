package real

import (
	"context"
	"fmt"
	"math"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"

	"github.com/lockfault/lockfault/faults/real/proxy"
)

// server is one Redis server.
type server struct {
	name     string // n1/0: the first primary of n1
	node     *node
	process  Server
	admin    *redis.Client // the world's own connection, past the gate
	addr     string        // where clients' links lead to
	link     *proxy.Link   // its replication link, if it ever was a replica
	timedOut bool          // that link has a timeout
	up       bool
	paused   bool
	resumed  time.Time  // when it last was no longer
	busy     *message   // the request that it has in hand
	door     []*message // requests that wait for that, or for its process

	// Its clock shows true time plus skew, and skew grows by rate-1 for each
	// unit of time since.
	skew  time.Duration
	rate  float64
	since time.Time

	value   string        // of the lock's key, when last looked at
	expires time.Duration // when it will be gone, at the earliest; 0 means never
	took    time.Duration // by how much later that may be
	moved   bool          // the clock was moved since
	expiry  *timer
}

// came takes note that a server's process is there.
func (s *server) came() {
	s.up, s.paused, s.addr = true, false, s.process.Addr()
	if s.admin != nil {
		_ = s.admin.Close() // it led to the process before this one
	}
	login := s.login()
	s.admin = redis.NewClient(&redis.Options{
		Addr: s.addr, Username: login.Username, Password: login.Password, DB: login.DB, Protocol: 2, DisableIdentity: true, MaxRetries: -1,
		ReadTimeout: patience, PoolSize: 4, ConnMaxIdleTime: -1,
		MaintNotificationsConfig: &maintnotifications.Config{Mode: maintnotifications.ModeDisabled},
	})
}

// wasPaused reports whether the server was stopped at any time since then.
func (s *server) wasPaused(since time.Time) bool { return s.paused || s.resumed.After(since) }

func (s *server) leave() {
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
		err = fmt.Errorf("real: %s: %v: %w", s.name, words, err)
	}
	return value, err
}

// crash ends a server's process, and with it every connection to and from it:
// what was on its way is lost.
func (s *server) crash() error {
	s.up, s.paused, s.busy, s.door = false, false, nil, nil
	if s.expiry != nil {
		s.expiry.dead = true
	}
	for _, wire := range s.node.world.links {
		for _, c := range wire.list() {
			if c.server == s {
				c.reset()
			}
		}
	}
	for _, other := range s.node.servers {
		if other.link != nil && other != s && s == s.node.primary {
			other.link.Reset()
			other.link.Stop() // nothing that it sent before comes later
		}
	}
	return s.ask(s.process.Kill)
}

// ask has the host do something to the server's process. Hosts take their time,
// in which leases run; where that is more than a quarter of one, the script
// comes too late.
func (s *server) ask(do func() error) error {
	begun, w := time.Now(), s.node.world
	err := do()
	w.note("host", time.Since(begun)-w.cfg.TTL/4)
	return err
}

// offset returns by how much the server's clock is ahead of true time.
func (s *server) offset() time.Duration {
	return s.skew + time.Duration(float64(time.Since(s.since))*(s.rate-1))
}

// setClock sets the server's clock, and returns when the server goes by it.
func (s *server) setClock(offset time.Duration, rate float64) error {
	s.skew, s.rate, s.since = offset, rate, time.Now()
	if err := s.process.SetClock(offset, rate); err != nil || !s.up || s.paused {
		return err
	}
	// Valkey 9.1 asks the system for the time only once a millisecond.
	unsure := slack + time.Duration(float64(time.Since(s.since))*math.Abs(rate-1))
	return s.node.await("the clock of "+s.name+" to be set", func() (bool, error) {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		from := time.Now().Add(s.offset() - unsure)
		shown, err := s.admin.Time(ctx).Result()
		if err != nil {
			return false, fmt.Errorf("real: %s: TIME: %w", s.name, err)
		}
		return !shown.Before(from) && !shown.After(time.Now().Add(s.offset()+unsure)), nil
	})
}
