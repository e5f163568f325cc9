//go:build !linux

package proc

import "time"

// SinceBoot returns 0: there is no such clock to be had.
func SinceBoot() time.Duration { return 0 }
