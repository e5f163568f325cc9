package client

import (
	"time"

	"golang.org/x/sys/unix"
)

// SinceBoot reads the clock of [Numbered.Sent], which all processes of the
// machine share and nobody sets; 0 if it can't.
func SinceBoot() time.Duration {
	var t unix.Timespec
	if unix.ClockGettime(unix.CLOCK_MONOTONIC, &t) != nil {
		return 0
	}
	return time.Duration(t.Nano())
}
