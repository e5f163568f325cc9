package proc

import (
	"time"

	"golang.org/x/sys/unix"
)

// SinceBoot reads a clock that all processes of the machine share and nobody
// sets; 0 if there is none.
func SinceBoot() time.Duration {
	var t unix.Timespec
	if unix.ClockGettime(unix.CLOCK_MONOTONIC, &t) != nil {
		return 0
	}
	return time.Duration(t.Nano())
}
