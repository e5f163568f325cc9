package strategies

import "context"

// setNXPXLua is SET NX PX with a random owner value, asked for again every
// 100 ms, and released by a script that deletes the key only if it still holds
// that value: the lock on which documents 001 to 004 agree, and the Redis
// documentation's pattern for one instance.
//
// Known faults: the lease can end within the critical section, and its holder
// isn't told. Whatever the one server forgets (failover, restart, a clock that
// jumps) is lost. A SET NX that the client library repeats by itself finds its
// own value and reports that the lock is taken.
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
