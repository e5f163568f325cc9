package proc

import (
	"time"

	"golang.org/x/sys/unix"
)

// SinceBoot returns the time of a monotonic clock that all processes of the machine share, or 0 if
// it cannot be read.
func SinceBoot() time.Duration {
	var t unix.Timespec
	if unix.ClockGettime(unix.CLOCK_MONOTONIC, &t) != nil {
		return 0
	}
	return time.Duration(t.Nano())
}
