package real

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"
)

// Starts tracks a [Host]'s calls that may start a process. The zero value is ready to use. It is
// safe for concurrent use.
type Starts struct {
	mu       sync.Mutex
	over     bool
	running  sync.WaitGroup
	cancels  map[int]context.CancelCauseFunc
	sequence int
}

var errClosed = errors.New("the host is closed")

// Enter begins such a call. The returned context is done when ctx is done, at End, or when the call
// takes longer than the limit, with that as the cause. leave ends the call; the caller must call
// it. After End, Enter returns an error.
func (s *Starts) Enter(ctx context.Context, limit time.Duration) (_ context.Context, leave func(), err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.over {
		return nil, nil, errClosed
	}
	ctx, cancelLimit := context.WithTimeoutCause(ctx, limit, fmt.Errorf("no answer within %v", limit))
	ctx, cancel := context.WithCancelCause(ctx)
	if s.cancels == nil {
		s.cancels = map[int]context.CancelCauseFunc{}
	}
	s.sequence++
	number := s.sequence
	s.cancels[number] = cancel
	s.running.Add(1)
	return ctx, func() {
		cancel(nil)
		cancelLimit()
		s.mu.Lock()
		delete(s.cancels, number)
		s.mu.Unlock()
		s.running.Done()
	}, nil
}

// End cancels all calls, and returns after they have left. Later calls of Enter fail.
func (s *Starts) End() {
	s.mu.Lock()
	s.over = true
	for _, cancel := range s.cancels {
		cancel(errClosed)
	}
	s.mu.Unlock()
	s.running.Wait()
}
