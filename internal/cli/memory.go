package cli

import (
	"context"
	"math"
	"runtime/debug"
	"runtime/metrics"
	"strconv"
	"strings"

	"github.com/spf13/pflag"

	"github.com/lockfault/lockfault/internal/explore"
)

func (o *exploreOptions) addMemoryFlag(flags *pflag.FlagSet) {
	flags.StringVar(&o.memory, "memory", "4GiB", "`size` of this process at which the search ends, such as 512MiB; its workers are beside that")
}

// A memoryLimit ends a search before its process takes more memory than it may. A
// search that grows until the system ends it has found nothing.
type memoryLimit struct {
	bytes uint64
	text  string
	was   int64 // the runtime's limit, before
}

// limitMemory reads --memory, and has garbage collected before it counts. Whoever calls it
// calls release at the end.
func limitMemory(text string) (memoryLimit, error) {
	n, ok := parseSize(text)
	if !ok {
		return memoryLimit{}, usage("--memory %q is no size: give a number and KiB, MiB, GiB or TiB, such as 4GiB", text)
	}
	// The collector begins to work harder below the limit. Who sets GOMEMLIMIT may
	// want that earlier.
	was := debug.SetMemoryLimit(-1)
	debug.SetMemoryLimit(min(was, int64(n/10*9)))
	return memoryLimit{n, text, was}, nil
}

// release lets the runtime go by its former limit.
func (l memoryLimit) release() { debug.SetMemoryLimit(l.was) }

// parseSize reads a size of at least one byte.
func parseSize(text string) (bytes uint64, ok bool) {
	digits := strings.TrimRight(text, "BKMGTi")
	shift, ok := map[string]int{"KiB": 10, "MiB": 20, "GiB": 30, "TiB": 40}[text[len(digits):]]
	n, err := strconv.ParseFloat(digits, 64)
	if bytes := n * float64(uint64(1)<<shift); ok && err == nil && bytes >= 1 && bytes < math.MaxInt64 {
		return uint64(bytes), true
	}
	return 0, false
}

// check ends the search if its process has too much.
func (l memoryLimit) check(end context.CancelCauseFunc) {
	if inUse() > l.bytes {
		end(explore.Cut("more than " + l.text + " of memory"))
	}
}

// inUse returns how much memory this process has from the system, as far as the runtime
// knows: what it has given back doesn't count, and garbage does until it is collected.
func inUse() uint64 {
	samples := []metrics.Sample{{Name: "/memory/classes/total:bytes"}, {Name: "/memory/classes/heap/released:bytes"}}
	metrics.Read(samples)
	return samples[0].Value.Uint64() - samples[1].Value.Uint64()
}

// checkedIn is the memory in which histories are checked, unless they hold more at once than
// fits: what is over is garbage, of which this program makes little enough to collect it sooner
// than others do.
const checkedIn = 64 << 20

// keepSmall has garbage collected before the process is larger than checkedIn, unless its
// environment says otherwise, and returns what ends that.
func keepSmall() (end func()) {
	was := debug.SetMemoryLimit(-1)
	debug.SetMemoryLimit(min(was, checkedIn))
	return func() { debug.SetMemoryLimit(was) }
}
