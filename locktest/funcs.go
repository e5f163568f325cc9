package locktest

import (
	"context"
	"errors"
	"io"
	"time"

	"github.com/lockfault/lockfault/strategies"
)

// Funcs is a [Lock] that consists of functions. Lock and Unlock are required; the lock lacks what the
// other functions would do if they are nil. A type may embed Funcs: its own methods come first.
type Funcs struct {
	// Lock blocks until the lock is held, or ctx is done.
	Lock func(ctx context.Context) error
	// Unlock releases the lock.
	Unlock func(ctx context.Context) error
	// TryLock makes one attempt. With TryLock, [Explore] covers far more, because the states of a
	// polling lock have no end.
	TryLock func(ctx context.Context) error
	// Extend extends the lease.
	Extend func(ctx context.Context) error
	// Lost returns a channel that is closed when the current hold is found to be lost.
	Lost func() <-chan struct{}
	// ValidUntil returns the end of the current hold's validity on the clock of Env.Now.
	ValidUntil func() time.Time
	// Token returns the fencing token of the current hold.
	Token func() int64
	// Close ends what the lock has started: goroutines, timers and connections.
	Close func() error
}

// Acquire calls Lock.
func (f Funcs) Acquire(ctx context.Context) error { return f.Lock(ctx) }

// Release calls Unlock.
func (f Funcs) Release(ctx context.Context) error { return f.Unlock(ctx) }

func (f Funcs) functions() Funcs { return f }

// adapt returns a lock with the methods of a [Funcs], or of a type that embeds one. Other locks are
// returned unchanged.
func adapt(l Lock) (Lock, error) {
	embeds, ok := l.(interface{ functions() Funcs })
	if !ok {
		return l, nil
	}
	f := embeds.functions()
	if _, bare := l.(Funcs); bare && (f.Lock == nil || f.Unlock == nil) {
		return nil, errors.New("Funcs needs both Lock and Unlock")
	}
	if own, ok := l.(strategies.TryAcquirer); ok {
		f.TryLock = own.TryAcquire
	}
	if own, ok := l.(strategies.Extender); ok {
		f.Extend = own.Extend
	}
	if own, ok := l.(strategies.LossNotifier); ok {
		f.Lost = own.Lost
	}
	if own, ok := l.(strategies.Validity); ok {
		f.ValidUntil = own.ValidUntil
	}
	if own, ok := l.(strategies.Fenced); ok {
		f.Token = own.Token
	}
	if own, ok := l.(io.Closer); ok {
		f.Close = own.Close
	}
	return adapter{l, f}, nil
}

// An adapter is a lock that has all methods and supports those of which it has the function.
type adapter struct {
	Lock
	of Funcs
}

func (a adapter) TryAcquire(ctx context.Context) error { return a.of.TryLock(ctx) }
func (a adapter) Extend(ctx context.Context) error     { return a.of.Extend(ctx) }
func (a adapter) Lost() <-chan struct{}                { return a.of.Lost() }
func (a adapter) ValidUntil() time.Time                { return a.of.ValidUntil() }
func (a adapter) Token() int64                         { return a.of.Token() }

func (a adapter) Close() error {
	if a.of.Close == nil {
		return nil
	}
	return a.of.Close()
}

// Supports implements [strategies.Partial].
func (a adapter) Supports(method string) bool {
	return map[string]bool{
		"TryAcquire": a.of.TryLock != nil, "Extend": a.of.Extend != nil, "Lost": a.of.Lost != nil,
		"ValidUntil": a.of.ValidUntil != nil, "Token": a.of.Token != nil,
	}[method]
}
