package linear

import (
	"cmp"
	"testing"
	"time"

	"github.com/lockfault/lockfault/internal/racetest"
)

// TestRarelyUnknown judges traffic of twenty clients at a semaphore of ten permits. One outcome in a
// hundred is unknown. The test judges -seeds histories (default 1), from -seed on (default 0), of -ops
// operations (default 3000), legal and illegal. Of the histories that are judged strictly, at most one
// in a hundred may stay unknown, and none of the others.
func TestRarelyUnknown(t *testing.T) {
	racetest.Skip(t)
	seeds, ops := int(cmp.Or(*seedsFlag, 1)), int(cmp.Or(*opsFlag, 3000))
	for _, wrong := range []bool{false, true} {
		for _, strict := range []bool{false, true} {
			unknown, longest := 0, time.Duration(0)
			for seed := *seedFlag; seed < *seedFlag+uint64(seeds); seed++ {
				of := traffic{spec: Semaphore(10), ops: ops, tries: strict, percent: 1, wrong: wrong, seed: seed}
				events := of.history()
				start := spent()
				r := Check(of.spec, events, Options{Strict: strict})
				longest = max(longest, spent()-start)
				switch want := map[bool]Verdict{false: Valid, true: Invalid}[wrong]; {
				case r.Verdict == Unknown:
					unknown++
					t.Logf("-seed %d: %v", seed, r.Reason)
				case r.Verdict != want:
					t.Errorf("%+v: %v, not %v", of, r.Verdict, want)
				}
			}
			t.Logf("strict=%v wrong=%v: %d of %d unknown, at most %v", strict, wrong, unknown, seeds, longest)
			if !strict && unknown > 0 || unknown*100 > seeds {
				t.Errorf("%d of %d are unknown", unknown, seeds)
			}
		}
	}
}
