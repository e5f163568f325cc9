package strategies

import "context"

// setNXPXLua returns the lock of SET NX PX with a random owner value, polled every 100 ms. A script
// releases the lock: it deletes the key only if the key still has that value. Documents 001 to 004
// agree on this lock, which is the Redis documentation's pattern for one instance.
//
// Known faults: the lease can end within the critical section without a notification of the holder.
// Data that the single server loses (failover, restart, clock jump) is lost. A SET NX that the
// client library repeats automatically finds its own value and reports that the lock is taken.
func setNXPXLua() Strategy {
	const name = "set-nx-px-lua"
	return Strategy{
		Name:    name,
		Summary: "SET NX PX with a random value; released by a compare-and-delete script",
		Source:  "documents 001, 002, 003 and 004",
		Tags:    []string{TagSingle, TagExtending},
		New: func(env Env) (Lock, error) {
			l, err := newSetNXPX(name, env)
			if err != nil {
				return nil, err
			}
			return &setNXPXLuaLock{l}, nil
		},
	}
}

type setNXPXLuaLock struct{ setNXPXLock }

func (l *setNXPXLuaLock) Release(ctx context.Context) error {
	return l.compareAndDelete(ctx)
}

func (l *setNXPXLuaLock) Extend(ctx context.Context) error {
	return l.compareAndExpire(ctx)
}
