package daemon

import (
	"net"
	"sync"
)

// Lazy is a connection, or what else is made when it is first asked for and kept until the end. The zero value has none yet. Safe for
// concurrent use.
type Lazy[T any] struct {
	mu     sync.Mutex
	value  T
	made   bool
	closed bool
}

// Get returns what is kept, which dial makes if there is none. The error is dial's, or says that it is closed.
func (k *Lazy[T]) Get(dial func() (T, error)) (value T, err error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.closed {
		return value, net.ErrClosed
	}
	if !k.made {
		if value, err = dial(); err != nil {
			return value, err
		}
		k.value, k.made = value, true
	}
	return k.value, nil
}

// Close has end end what is kept, if there is anything, for good. Idempotent.
func (k *Lazy[T]) Close(end func(T) error) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	was := k.made && !k.closed
	k.closed = true
	if !was {
		return nil
	}
	return end(k.value)
}
