package strategies

import "context"

// setNXPXLuaThreadID returns set-nx-px-lua with the thread's id as the owner value, as in the
// demonstration of document 001.
//
// Known faults: those of set-nx-px-lua. Threads of two processes can have the same id: each thread
// then mistakes the other's lock for its own and can release it.
func setNXPXLuaThreadID() Strategy {
	const name = "set-nx-px-lua-thread-id"
	return Strategy{
		Name:    name,
		Summary: "SET NX PX with the thread's id as value; released by a compare-and-delete script",
		Source:  "document 001",
		Tags:    []string{TagSingle},
		New: func(env Env) (Lock, error) {
			l, err := newKeyLock(name, env)
			if err != nil {
				return nil, err
			}
			// The value is always the thread's id, so even a client that never acquired can release
			// on behalf of the thread.
			l.value = env.Thread
			return &setNXPXLuaThreadIDLock{l}, nil
		},
	}
}

type setNXPXLuaThreadIDLock struct{ keyLock }

func (l *setNXPXLuaThreadIDLock) Acquire(ctx context.Context) error {
	return retry(ctx, every(retryDelay), l.TryAcquire)
}

func (l *setNXPXLuaThreadIDLock) TryAcquire(ctx context.Context) error {
	return l.setNXPX(ctx, l.env.Thread)
}

func (l *setNXPXLuaThreadIDLock) Release(ctx context.Context) error {
	return l.compareAndDelete(ctx)
}
