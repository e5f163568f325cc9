package daemon

import (
	"net"
	"sync"
)

// Lazy holds a value, such as a connection, that is made at its first use and kept until Close. The
// zero value holds nothing yet. It is safe for concurrent use.
type Lazy[T any] struct {
	mu     sync.Mutex
	value  T
	made   bool
	closed bool
}

// Get returns the value, and calls dial to make it at the first use. The error is dial's, or
// net.ErrClosed after Close.
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

// Close calls end with the value, if there is one, and makes later calls of Get fail. Close is
// idempotent.
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
