package mutex

import (
	"testing"

	"github.com/lockfault/lockfault/locktest"
)

var subject = locktest.Subject{
	New: func(env locktest.Env) (locktest.Lock, error) {
		m := New(env.Nodes[0], env.Key, env.TTL)
		return locktest.Funcs{Lock: m.Lock, Unlock: m.Unlock}, nil
	},
	Refused: []error{ErrTaken, ErrLost},
}

func TestMutex(t *testing.T) {
	locktest.Run(t, subject,
		locktest.Survives("holder-crash"),
		locktest.Accepts("gc-pause-holding", "overlap", "stale-write"))
}
