package strategies

import "context"

// setNXPXGetDel returns the lock of SET NX PX that is released by GET, compare, DEL: the second
// diagram of document 003.
//
// Known faults: between the comparison and the DEL, the lease can end and another client can
// acquire; the DEL then deletes that client's key. The lease can end within the critical section.
func setNXPXGetDel() Strategy {
	const name = "set-nx-px-get-del"
	return Strategy{
		Name:    name,
		Summary: "SET NX PX; released by GET, compare, DEL",
		Source:  "document 003 (second diagram)",
		Tags:    []string{TagSingle, TagPlainDel},
		New: func(env Env) (Lock, error) {
			l, err := newSetNXPX(name, env)
			if err != nil {
				return nil, err
			}
			return &setNXPXGetDelLock{l}, nil
		},
	}
}

type setNXPXGetDelLock struct{ setNXPXLock }

func (l *setNXPXGetDelLock) Release(ctx context.Context) error {
	return l.getCompareDel(ctx)
}
