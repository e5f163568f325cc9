package growthtest

import (
	"time"

	"golang.org/x/sys/unix"
)

// threadTime returns how long the processor has worked for the calling thread.
func threadTime() time.Duration {
	var now unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &now); err != nil {
		panic(err)
	}
	return time.Duration(now.Nano())
}
