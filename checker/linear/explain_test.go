package linear

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/lockfault/lockfault/internal/racetest"
)

// left lists what parts leave of a history: each by itself, some of them, and all.
func left(r *rand.Rand, events []Event, parts []part) (names []string, all [][]Event) {
	add := func(name string, some []part) {
		if len(some) > 0 {
			names, all = append(names, fmt.Sprint(name, some)), append(all, leaving(events, some))
		}
	}
	for _, p := range parts {
		add("one part", []part{p})
	}
	var some []part
	for _, p := range parts {
		if r.IntN(2) == 0 {
			some = append(some, p)
		}
	}
	add("some parts", some)
	add("all parts", parts)
	return names, all
}

// mayLeave lists what may be left of a history.
func mayLeave(r *rand.Rand, spec Spec, strict bool, events []Event) (names []string, all [][]Event) {
	c := newCutter(spec, strict, events)
	names, all = left(r, events, c.parts())
	more, those := left(r, events, c.clients())
	names, all = append(names, more...), append(all, those...)
	for _, i := range quiet(spec, strict, events) {
		names, all = append(names, fmt.Sprint("all from ", i)), append(all, events[i:])
	}
	return names, all
}

// TestExplain asks the oracle: what may be left out of a legal history leaves it legal; an explanation is illegal, and
// whatever else may be left out makes it legal. The default of -histories is 60, that of -seed is a
// random seed.
func TestExplain(t *testing.T) {
	racetest.Skip(t)
	n, seed := cmp.Or(*historiesFlag, 60), seedOrRandom(t)
	for _, spec := range everyNaive() {
		for _, strict := range []bool{false, true} {
			for _, unknown := range []bool{false, true} {
				name := nameOf(spec, strict, unknown)
				if !strings.Contains(name, *specFlag) {
					continue
				}
				t.Run(name, func(t *testing.T) {
					t.Parallel()
					tried, explained, sum := 0, 0, 0
					for i := range n {
						r := rand.New(rand.NewPCG(seed, uint64(i)))
						events := drawHistory(r, recipe{spec: spec, strict: strict, unknown: unknown, length: between(r, 6, 20)}).events
						if naive(spec, events, strict) {
							tried += leavesLegal(t, r, spec, strict, events)
							continue
						}
						if e, ok := Explain(specOf(spec), events, Options{Strict: strict}); !ok {
							t.Fatalf("it is not explained: %s", notation(events))
						} else {
							explains(t, r, spec, strict, events, e)
							explained, sum = explained+1, sum+len(e.Events)
						}
						if t.Failed() {
							return
						}
					}
					t.Logf("%d deletions, %d explanations of %d events", tried, explained, sum)
				})
			}
		}
	}
}

func leavesLegal(t *testing.T, r *rand.Rand, spec naiveSpec, strict bool, events []Event) int {
	names, all := mayLeave(r, specOf(spec), strict, events)
	for i, rest := range all {
		if !wellFormed(spec, rest) || !naive(spec, rest, strict) {
			t.Errorf("%s makes\n\t%s\nillegal:\n\t%s", names[i], notation(events), notation(rest))
			return i
		}
	}
	return len(all)
}

func explains(t *testing.T, r *rand.Rand, spec naiveSpec, strict bool, events []Event, e Explanation) {
	if !e.Smallest || naive(spec, e.Events, strict) {
		t.Errorf("smallest: %v, and this does not explain\n\t%s\n\t%s", e.Smallest, notation(events), notation(e.Events))
		return
	}
	names, all := mayLeave(r, specOf(spec), strict, e.Events)
	names, all = append(names, "what is before the last"), append(all, e.Events[:len(e.Events)-1])
	for i, rest := range all {
		if !naive(spec, rest, strict) {
			t.Errorf("%s would still explain it:\n\t%s\n\t%s", names[i], notation(e.Events), notation(rest))
			return
		}
	}
	if again, _ := Explain(specOf(spec), events, Options{Strict: strict}); !slices.Equal(again.Events, e.Events) {
		t.Errorf("two explanations of\n\t%s\n\t%s\n\t%s", notation(events), notation(e.Events), notation(again.Events))
	}
}
