package strategies

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// retryDelay is the delay between two attempts of a client that found the lock taken. The value is
// that of document 001.
const retryDelay = 100 * time.Millisecond

// every returns a delay function that always returns d.
func every(d time.Duration) func() time.Duration {
	return func() time.Duration { return d }
}

// Poll makes attempts, with a pause between two attempts, until an attempt returns another result
// than ErrNotAcquired. Poll returns that result. When ctx is done, Poll returns ErrNotAcquired.
func Poll(ctx context.Context, pause time.Duration, attempt func(context.Context) error) error {
	return retry(ctx, every(pause), attempt)
}

// retry makes attempts until an attempt succeeds or fails with another error than ErrNotAcquired.
// When ctx is done, retry returns ErrNotAcquired. An attempt that ctx interrupts has already
// returned its own error by then.
func retry(ctx context.Context, delay func() time.Duration, attempt func(context.Context) error) error {
	for {
		if ctx.Err() != nil {
			return fmt.Errorf("%w: %v", ErrNotAcquired, context.Cause(ctx))
		}
		err := attempt(ctx)
		if err == nil || !errors.Is(err, ErrNotAcquired) {
			return err
		}
		if !pause(ctx, delay()) {
			return err
		}
	}
}

// pause waits for d and reports whether ctx is still alive. If the deadline of ctx and the delay
// end at the same instant, the deadline wins: an attempt at that instant would be interrupted, and
// its outcome would be unknown.
func pause(ctx context.Context, d time.Duration) bool {
	if deadline, ok := ctx.Deadline(); ok && !time.Now().Add(d).Before(deadline) {
		<-ctx.Done()
		return false
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}
