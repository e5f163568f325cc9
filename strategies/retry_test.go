package strategies

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"
)

func TestRetry(t *testing.T) {
	broken := errors.New("connection reset")
	taken := fmt.Errorf("taken: %w", ErrNotAcquired)
	for _, c := range []struct {
		name     string
		results  []error // of the attempts; the last one repeats
		patience time.Duration
		cancel   time.Duration // 0 means never
		want     error
		took     time.Duration
		attempts int
	}{
		{"at once", []error{nil}, time.Minute, 0, nil, 0, 1},
		{"third attempt", []error{taken, taken, nil}, time.Minute, 0, nil, 200 * time.Millisecond, 3},
		{"unknown outcome is final", []error{taken, broken, nil}, time.Minute, 0, broken, 100 * time.Millisecond, 2},
		{"deadline", []error{taken}, 250 * time.Millisecond, 0, ErrNotAcquired, 250 * time.Millisecond, 3},
		{"no attempt at the deadline", []error{taken, taken, broken}, 200 * time.Millisecond, 0, ErrNotAcquired, 200 * time.Millisecond, 2},
		{"cancelled", []error{taken}, time.Minute, 150 * time.Millisecond, ErrNotAcquired, 150 * time.Millisecond, 2},
		{"late from the start", []error{nil}, 0, 0, ErrNotAcquired, 0, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithTimeout(context.Background(), c.patience)
				defer cancel()
				if c.cancel > 0 {
					time.AfterFunc(c.cancel, cancel)
				}
				start, attempts := time.Now(), 0
				err := retry(ctx, every(retryDelay), func(context.Context) error {
					attempts++
					return c.results[min(attempts, len(c.results))-1]
				})
				if !errors.Is(err, c.want) {
					t.Errorf("got %v, want %v", err, c.want)
				}
				if took := time.Since(start); took != c.took || attempts != c.attempts {
					t.Errorf("%d attempts in %s, want %d in %s", attempts, took, c.attempts, c.took)
				}
			})
		})
	}
}
