package kit

import (
	"math"
	"runtime/debug"
	"runtime/metrics"
	"strconv"
	"strings"
)

// MemoryLimit is a size of memory that the process should not exceed.
type MemoryLimit struct {
	bytes uint64
	Text  string
	was   int64 // the previous limit of the runtime
}

// LimitMemory parses --memory and sets the memory limit of the Go runtime to 90 % of it, unless
// GOMEMLIMIT is lower. The caller must call release.
func LimitMemory(text string) (MemoryLimit, error) {
	n, ok := parseSize(text)
	if !ok {
		return MemoryLimit{}, Usage("--memory %q is no size: give a number and KiB, MiB, GiB or TiB, such as 4GiB", text)
	}
	// The garbage collector works harder near the runtime's limit. A lower GOMEMLIMIT of the user
	// stays in effect.
	was := debug.SetMemoryLimit(-1)
	debug.SetMemoryLimit(min(was, int64(n/10*9)))
	return MemoryLimit{n, text, was}, nil
}

// Release restores the previous limit of the runtime.
func (l MemoryLimit) Release() { debug.SetMemoryLimit(l.was) }

// parseSize parses a size such as 512MiB; ok is false if it is not a size of at least 1 byte.
func parseSize(text string) (bytes uint64, ok bool) {
	digits := strings.TrimRight(text, "BKMGTi")
	shift, ok := map[string]int{"KiB": 10, "MiB": 20, "GiB": 30, "TiB": 40}[text[len(digits):]]
	n, err := strconv.ParseFloat(digits, 64)
	if bytes := n * float64(uint64(1)<<shift); ok && err == nil && bytes >= 1 && bytes < math.MaxInt64 {
		return uint64(bytes), true
	}
	return 0, false
}

// Exceeded reports whether the process uses more memory than the limit.
func (l MemoryLimit) Exceeded() bool { return inUse() > l.bytes }

// inUse returns the bytes of memory that the runtime has obtained from the system and not returned.
// Garbage counts until it is collected.
func inUse() uint64 {
	samples := []metrics.Sample{{Name: "/memory/classes/total:bytes"}, {Name: "/memory/classes/heap/released:bytes"}}
	metrics.Read(samples)
	return samples[0].Value.Uint64() - samples[1].Value.Uint64()
}

// checkedIn is the memory limit in bytes for checking histories. Checking produces little garbage,
// so frequent collection is cheap. A history with more live data than this still works, because the
// runtime's limit is soft.
const checkedIn = 64 << 20

// KeepSmall lowers the memory limit of the runtime to checkedIn, unless GOMEMLIMIT is lower.
// KeepSmall returns a function that restores the previous limit.
func KeepSmall() (end func()) {
	was := debug.SetMemoryLimit(-1)
	debug.SetMemoryLimit(min(was, checkedIn))
	return func() { debug.SetMemoryLimit(was) }
}
