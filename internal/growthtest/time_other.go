//go:build !linux

package growthtest

import "time"

var start = time.Now()

// threadTime returns the time that has passed: the system does not say how long the processor has
// worked for a thread.
func threadTime() time.Duration { return time.Since(start) }
