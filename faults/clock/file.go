package clock

import (
	"fmt"
	"math"
	"math/bits"
	"time"
)

// MaxRate is the maximum rate of a clock, as a multiple of true time.
const MaxRate = 1000

// magic is the first word of a File: "LFCLOCK1" in the byte order of the supported machines.
const magic = 0x314b434f4c43464c

// slot is the setting of the clocks from a moment on, in ns. shim/clock.c defines the same layout.
type slot struct {
	since  int64 // CLOCK_MONOTONIC when the slot was written
	wall   int64 // CLOCK_REALTIME at since
	slept  int64 // CLOCK_BOOTTIME minus CLOCK_MONOTONIC
	offset int64 // of the wall clocks at since
	warp   int64 // of the clocks that measure spans, at since
	drift  int64 // gain per ns of true time after since, in 1/2^32 ns
	_      [2]int64
}

// page is the content of a File. shim/clock.c defines the same layout.
type page struct {
	magic      uint64
	generation uint64 // the lowest bit is the index of the slot in use
	loaded     uint64
	_          [5]uint64
	slots      [2]slot
}

// next returns the slot that follows s. now holds the present time in its first three fields. The
// wall clocks get the given offset; the clocks that measure spans continue from their present
// value.
func (s slot) next(now slot, offset time.Duration, rate float64) slot {
	now.offset = int64(offset)
	now.warp = s.warp + scale(now.since-s.since, s.drift)
	now.drift = int64(math.Round((rate - 1) * (1 << 32)))
	return now
}

// scale returns ns times drift in units of 1/2^32, rounded down, exactly as the shim computes it.
func scale(ns, drift int64) int64 {
	high, low := bits.Mul64(magnitude(ns), magnitude(drift))
	whole, rest := int64(high<<32|low>>32), low<<32 != 0
	if (ns < 0) == (drift < 0) {
		return whole
	}
	if rest {
		whole++
	}
	return -whole
}

func magnitude(n int64) uint64 {
	if n < 0 {
		return -uint64(n)
	}
	return uint64(n)
}

func checkRate(rate float64) error {
	if !(rate > 0) || rate > MaxRate {
		return fmt.Errorf("clock: a clock runs at a rate above 0 and up to %d, not %v", MaxRate, rate)
	}
	return nil
}
