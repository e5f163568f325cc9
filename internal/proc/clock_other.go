//go:build !linux

package proc

import "time"

// SinceBoot returns 0: the system has no such clock.
func SinceBoot() time.Duration { return 0 }
