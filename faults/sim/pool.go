package sim

import (
	"fmt"
	"sync"

	"github.com/alicebob/miniredis/v2"

	"github.com/lockfault/lockfault/faults/sim/lua"
)

// Pool keeps servers and Lua machines of closed worlds for later worlds, because creating them
// costs more than many commands. A server in the pool has no data; this package keeps all its other
// state outside of miniredis. A machine leaves nothing from one script to the next. The zero value
// is empty. A Pool is safe for concurrent use.
type Pool struct {
	mu       sync.Mutex
	list     []*miniredis.Miniredis
	machines []*lua.Machine
}

// takeMachine returns a machine that runs scripts. A nil *Pool creates a new machine.
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

// leaveMachine puts a machine into the pool. A nil *Pool discards it.
func (s *Pool) leaveMachine(machine *lua.Machine) {
	if s != nil {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.machines = append(s.machines, machine)
	}
}

// take returns a server without data. A nil or empty *Pool creates a new server.
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
	// Dial creates a server that does not listen. The gate passes requests to the server directly,
	// so the connection is not needed.
	conn, err := mini.Dial()
	if err != nil {
		return nil, fmt.Errorf("sim: starting %s: %w", name, err)
	}
	conn.Close()
	return mini, nil
}

// leave puts a server without connections into the pool. A nil *Pool closes it.
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
