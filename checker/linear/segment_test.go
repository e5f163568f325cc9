package linear

import (
	"cmp"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/lockfault/lockfault/internal/racetest"
)

// stretchesOf sees that each stretch of a legal history is legal, and says how many there are.
func stretchesOf(t *testing.T, spec naiveSpec, strict bool, events []Event) (n int) {
	p := newPast(specOf(spec))
	for from := 1; from < len(events); from++ {
		p.add(&events[from-1])
		near := p.stretch(strict, events[from:])
		if near == nil {
			continue
		}
		n++
		if legal, lost := judge(spec, strict, near); !legal && !lost {
			t.Errorf("%s, strict=%v: %s\nfrom %d: %s", spec, strict, notation(events), from, notation(near))
		}
	}
	return n
}

// TestStretches sees that each stretch of a case that is legal is legal.
func TestStretches(t *testing.T) {
	for _, c := range readCases(t) {
		if c.verdict == Valid {
			stretchesOf(t, c.spec, c.strict, c.events(t))
		}
	}
}

// TestLocal sees that what is illegal in a long history shows in a stretch of it.
func TestLocal(t *testing.T) {
	for _, of := range []traffic{
		{spec: Mutex()}, {spec: Reentrant(2)}, {spec: Lease(Believed)}, {spec: Lease(Known)}, {spec: Multi()},
		{spec: Semaphore(3)}, {spec: Semaphore(3), several: true}, {spec: Semaphore(10)}, {spec: ReadWrite()},
	} {
		of.ops, of.percent, of.wrong = 2000, 1, true
		for _, of.tries = range []bool{false, true} {
			events := of.history()
			at := len(events) - 1
			for events[at].Client != "X" || events[at].Phase != ReturnOK {
				at--
			}
			if !newKept(of.spec, of.tries).local(events, at, 1<<16) {
				t.Errorf("%+v: it shows in no stretch", of)
			}
		}
	}
}

// TestStretch checks that each stretch of a legal history is legal. The default of -histories is 300,
// that of -seed is 1.
func TestStretch(t *testing.T) {
	racetest.Skip(t)
	n, seed := cmp.Or(*historiesFlag, 300), cmp.Or(*seedFlag, 1)
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
					stretches += stretchesOf(t, spec, strict, events)
				}
				t.Logf("%d stretches", stretches)
			})
		}
	}
}

// TestSlowSweep compares searches that sweep all the time with the oracle. The default of -histories is
// 300, that of -seed is 1.
func TestSlowSweep(t *testing.T) {
	racetest.Skip(t)
	defer func(n int) { restless = n }(restless)
	restless = -1
	n, seed := cmp.Or(*historiesFlag, 300), cmp.Or(*seedFlag, 1)
	for _, spec := range everyNaive() {
		for _, strict := range []bool{false, true} {
			if !strings.Contains(nameOf(spec, strict, true), *specFlag) {
				continue
			}
			for i := range n {
				r := rand.New(rand.NewPCG(seed, uint64(i)))
				events := drawHistory(r, recipe{spec: spec, strict: strict, unknown: true, length: between(r, 6, 20)}).events
				want, beyond := naiveWithin(spec, naively(events), strict, 5000)
				if beyond {
					continue
				}
				if legal, lost := judge(spec, strict, events); legal != want || lost {
					t.Errorf("%s: legal=%v lost=%v, not %v: %s", nameOf(spec, strict, true), legal, lost, want, notation(events))
				}
			}
		}
	}
}
