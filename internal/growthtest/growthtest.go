// Package growthtest tests how the time of an operation grows with its input.
package growthtest

import (
	"runtime"
	"testing"
	"time"
)

const (
	factor   = 16 // between the two sizes of an input
	most     = 80 // by how much the time may grow; n log n and caches make 40 of it, quadratic growth makes 256
	attempts = 12 // a busy machine spoils single measurements
	floor    = 20 // milliseconds: a shorter time is noise
)

// Linear fails the test if the time of an operation grows like the square of its input. The
// function prepare makes an input of size n, and returns the operation on it, which must not start
// goroutines. Only the ratio of two times of the processor counts, and one good measurement of
// several is enough.
func Linear(t testing.TB, n int, prepare func(n int) func()) {
	t.Helper()
	small, large := prepare(n), prepare(factor*n)
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	var before, after time.Duration
	for range attempts {
		for range 5 { // it is short, and one that is disturbed would hide growth
			before = shorter(before, small)
		}
		after = shorter(after, large)
		if after <= most*before+floor*time.Millisecond {
			return
		}
	}
	t.Errorf("%d: %v, %d: %v: the time grows faster than n log n", n, before, factor*n, after)
}

// shorter returns the time of an operation, or the earlier time if that is shorter.
func shorter(earlier time.Duration, operation func()) time.Duration {
	start := threadTime()
	operation()
	if took := threadTime() - start; earlier == 0 || took < earlier {
		return took
	}
	return earlier
}
