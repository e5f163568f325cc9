package linear

import (
	"cmp"
	"math/rand/v2"
	"testing"
	"time"
)

// TestCertain asks the oracle that tries all shifts of the times: what Check holds for certain must
// be illegal under each. The default of -histories is 400, that of -seed is a random seed.
func TestCertain(t *testing.T) {
	n, seed := cmp.Or(*historiesFlag, 400), seedOrRandom(t)
	for _, spec := range everyNaive() {
		t.Run(spec.String(), func(t *testing.T) {
			t.Parallel()
			count := map[string]int{}
			for i := range n {
				r := rand.New(rand.NewPCG(seed, uint64(i)))
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

// TestExtendWithoutLease checks that an overlap is not certain if clock errors may put it behind an
// extend that told no lease, from which on the hold may have been over.
func TestExtendWithoutLease(t *testing.T) {
	events := []Event{
		{Time: 3, Client: "B", Phase: Invoke, Op: Acquire},
		{Time: 4, Client: "A", Phase: Invoke, Op: Acquire},
		{Time: 7, Client: "B", Phase: ReturnOK, Op: Acquire, Token: 1, Lease: 13},
		{Time: 9, Client: "B", Phase: Invoke, Op: Extend},
		{Time: 10, Client: "A", Phase: ReturnOK, Op: Acquire, Token: 3, Lease: 12},
		{Time: 10, Client: "B", Phase: ReturnOK, Op: Extend},
	}
	if got := Check(Fenced(), events, Options{}).Verdict; got != Invalid {
		t.Errorf("with exact clocks: %s", got)
	}
	if got := Check(Fenced(), events, Options{Skew: 1}).Verdict; got == Invalid {
		t.Error("with clock errors the overlap is certain")
	}
}
