package sim

import (
	"fmt"
	"sync"

	"github.com/alicebob/miniredis/v2"

	"github.com/lockfault/lockfault/faults/sim/lua"
)

// Pool are servers of worlds that were closed, and what ran their scripts, for worlds to come: to make one
// costs more than many a command. What servers held is gone; all else that one of ours knows is outside of
// miniredis. That scripts leave nothing for each other is so within a world, too. The zero value is
// empty. Safe for concurrent use.
type Pool struct {
	mu       sync.Mutex
	list     []*miniredis.Miniredis
	machines []*lua.Machine
}

// takeMachine returns what runs scripts; a nil *Spares makes a new one.
func (s *Pool) takeMachine() *lua.Machine {
	if s != nil {
		s.mu.Lock()
		defer s.mu.Unlock()
		if n := len(s.machines); n > 0 {
			spare := s.machines[n-1]
			s.machines = s.machines[:n-1]
			return spare
		}
	}
	return new(lua.Machine)
}

// leaveMachine takes it over; a nil *Spares doesn't.
func (s *Pool) leaveMachine(machine *lua.Machine) {
	if s != nil {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.machines = append(s.machines, machine)
	}
}

// take returns a server without data; a nil *Spares makes a new one.
func (s *Pool) take(name string) (*miniredis.Miniredis, error) {
	if s != nil {
		s.mu.Lock()
		defer s.mu.Unlock()
		if n := len(s.list); n > 0 {
			spare := s.list[n-1]
			s.list = s.list[:n-1]
			return spare, nil
		}
	}
	mini := miniredis.NewMiniRedis()
	// Dial is what makes a server that listens nowhere; the gate hands
	// it its requests directly, so the connection is not needed.
	conn, err := mini.Dial()
	if err != nil {
		return nil, fmt.Errorf("sim: starting %s: %w", name, err)
	}
	conn.Close()
	return mini, nil
}

// leave takes over a server to which nobody is connected any more; a nil *Spares ends it.
func (s *Pool) leave(mini *miniredis.Miniredis) {
	if s == nil {
		mini.Close()
		return
	}
	mini.FlushAll()
	mini.ClockTTL(false) // the next world's clock may show an earlier time
	s.mu.Lock()
	defer s.mu.Unlock()
	s.list = append(s.list, mini)
}
