package real

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"
)

// Starts are a [Host]'s calls that may start something. The zero value has none
// under way. Safe for concurrent use.
type Starts struct {
	mu       sync.Mutex
	over     bool
	running  sync.WaitGroup
	cancels  map[int]context.CancelCauseFunc
	sequence int
}

var errClosed = errors.New("the host is closed")

// Enter begins such a call. Its context is done when ctx is, at End, or when the
// call took longer than the limit, with that as the cause; leave ends the call,
// and must be called. After End there is only an error.
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

// End ends all calls, and returns when they have left. There will be no more.
func (s *Starts) End() {
	s.mu.Lock()
	s.over = true
	for _, cancel := range s.cancels {
		cancel(errClosed)
	}
	s.mu.Unlock()
	s.running.Wait()
}
