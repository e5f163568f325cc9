package clock

import (
	"fmt"
	"math"
	"math/bits"
	"time"
)

// MaxRate is how many times too fast a clock can run.
const MaxRate = 1000

// magic stands at the beginning of a File; "LFCLOCK1" on the machines that
// the shim knows.
const magic = 0x314b434f4c43464c

// A slot says how clocks run from one moment on; all in ns. shim/clock.c has
// the same.
type slot struct {
	since  int64 // CLOCK_MONOTONIC when it was written
	wall   int64 // CLOCK_REALTIME at that moment
	slept  int64 // CLOCK_BOOTTIME less CLOCK_MONOTONIC
	offset int64 // of the wall clocks at that moment
	warp   int64 // of the clocks that measure spans at that moment
	drift  int64 // gained per ns of true time since, in 1/2^32 ns
	_      [2]int64
}

// page is what a File holds. shim/clock.c has the same.
type page struct {
	magic      uint64
	generation uint64 // its lowest bit is the slot in use
	loaded     uint64
	_          [5]uint64
	slots      [2]slot
}

// next returns the slot that follows s at the moment now, of which the first
// three fields are known: the wall clock is off by offset, and spans go on
// from where they are.
func (s slot) next(now slot, offset time.Duration, rate float64) slot {
	now.offset = int64(offset)
	now.warp = s.warp + scale(now.since-s.since, s.drift)
	now.drift = int64(math.Round((rate - 1) * (1 << 32)))
	return now
}

// scale returns ns times drift, in 1/2^32, rounded down: exactly what the
// shim makes of it.
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
