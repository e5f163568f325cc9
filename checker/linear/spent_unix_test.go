//go:build unix

package linear

import (
	"syscall"
	"time"
)

// spent is the processor time that this process has taken so far. On a machine that others use, too, it
// is steadier than the time of day.
func spent() time.Duration {
	var r syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &r); err != nil {
		panic(err)
	}
	return time.Duration(r.Utime.Nano() + r.Stime.Nano())
}
