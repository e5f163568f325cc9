package strategies

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// retryDelay is how long a client that found the lock taken waits before it
// asks again, as document 001 does.
const retryDelay = 100 * time.Millisecond

// every is the delay of those that ask again after a fixed time.
func every(d time.Duration) func() time.Duration {
	return func() time.Duration { return d }
}

// Poll makes attempts, a pause between two, until one returns anything else than
// ErrNotAcquired, and returns that. When ctx is done it returns ErrNotAcquired.
func Poll(ctx context.Context, pause time.Duration, attempt func(context.Context) error) error {
	return retry(ctx, every(pause), attempt)
}

// retry makes attempts until one succeeds or fails with anything else than
// ErrNotAcquired. When ctx is done it returns ErrNotAcquired: an attempt that
// ctx cut short has returned an error of its own before that.
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

// pause waits for d and reports whether ctx still lives then. Of a deadline
// and a delay that end at one instant the deadline wins: an attempt at that
// instant would be cut short and its outcome lost.
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
