package linear

import (
	"math/rand/v2"
	"testing"
	"time"
)

// TestCertain asks the oracle that tries all shifts of the times: what Check holds for certain must
// be illegal under each.
func TestCertain(t *testing.T) {
	n, seed := number(t, "LOCKFAULT_RANDOM", 400), number(t, "LOCKFAULT_SEED", int(time.Now().UnixNano()%1e9))
	t.Logf("LOCKFAULT_SEED=%d", seed)
	for _, spec := range everyNaive() {
		t.Run(spec.String(), func(t *testing.T) {
			t.Parallel()
			count := map[string]int{}
			for i := range n {
				r := rand.New(rand.NewPCG(uint64(seed), uint64(i)))
				strict, unknown := r.IntN(2) == 0, r.IntN(2) == 0
				events := drawHistory(r, recipe{spec: spec, strict: strict, unknown: unknown, length: between(r, 3, 8)}).events
				skew := time.Duration(between(r, 1, 3))
				says := Check(specOf(spec), events, Options{Strict: strict, Skew: skew}).Verdict
				if says == Valid {
					continue
				}
				certain := naiveCertain(spec, events, strict, skew)
				switch {
				case says == Invalid && !certain:
					t.Errorf("strict %v, skew %d: it is not certain that this is illegal: %s", strict, skew, notation(events))
				case says == Invalid:
					count["certain"]++
				case certain:
					count["certain, and said to be possible"]++
				default:
					count["possible"]++
				}
			}
			t.Log(count)
		})
	}
}
