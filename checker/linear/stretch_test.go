package linear

import (
	"math/rand/v2"
	"testing"
)

// TestStretch sees that each stretch of a legal history is legal, of LOCKFAULT_RANDOM histories of each kind.
func TestStretch(t *testing.T) {
	n, seed := number(t, "LOCKFAULT_RANDOM", 300), uint64(number(t, "LOCKFAULT_SEED", 1))
	for _, spec := range everyNaive() {
		for _, strict := range []bool{false, true} {
			t.Run(nameOf(spec, strict, true), func(t *testing.T) {
				t.Parallel()
				stretches := 0
				for i := range n {
					r := rand.New(rand.NewPCG(seed, uint64(i)))
					events := drawHistory(r, recipe{spec: spec, strict: strict, unknown: true, length: between(r, 6, 20)}).events
					if legal, lost := judge(spec, strict, events); !legal || lost {
						continue
					}
					p := newPast(specOf(spec))
					for from := 1; from < len(events); from++ {
						p.add(&events[from-1])
						near := p.stretch(strict, events[from:])
						if near == nil {
							continue
						}
						stretches++
						if legal, lost := judge(spec, strict, near); !legal && !lost {
							t.Fatalf("%s\nfrom %d: %s", notation(events), from, notation(near))
						}
					}
				}
				t.Logf("%d stretches", stretches)
			})
		}
	}
}
