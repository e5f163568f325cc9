package strategies

import "context"

// setNXPXDel returns the lock of SET NX PX that is released by an unconditional DEL. The lock is
// the first diagram of document 003 and the simple pattern of the Redis documentation on SET that
// document 002 quotes.
//
// Known faults: a client whose lease has ended deletes the key of the next holder. The lease can
// end within the critical section.
func setNXPXDel() Strategy {
	const name = "set-nx-px-del"
	return Strategy{
		Name:    name,
		Summary: "SET NX PX; released by DEL",
		Source:  "documents 003 (first diagram) and 002",
		Tags:    []string{TagSingle, TagPlainDel},
		New: func(env Env) (Lock, error) {
			l, err := newSetNXPX(name, env)
			if err != nil {
				return nil, err
			}
			return &setNXPXDelLock{l}, nil
		},
	}
}

type setNXPXDelLock struct{ setNXPXLock }

func (l *setNXPXDelLock) Release(ctx context.Context) error {
	return l.del(ctx)
}

// setNXPXLock acquires by SET NX PX with a new owner value for each acquire.
type setNXPXLock struct{ keyLock }

func newSetNXPX(strategy string, env Env) (setNXPXLock, error) {
	l, err := newKeyLock(strategy, env)
	return setNXPXLock{l}, err
}

func (l *setNXPXLock) Acquire(ctx context.Context) error {
	value := l.env.token()
	return retry(ctx, every(retryDelay), func(ctx context.Context) error { return l.setNXPX(ctx, value) })
}

func (l *setNXPXLock) TryAcquire(ctx context.Context) error {
	return l.setNXPX(ctx, l.env.token())
}
