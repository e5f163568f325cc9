package linear

import (
	"math/rand/v2"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/lockfault/lockfault/internal/racetest"
)

// TestLaws sees that two laws hold of every specification: each prefix of a legal history is legal, and an operation
// that failed is never judged more mildly than the same with no known outcome, or with none yet.
func TestLaws(t *testing.T) {
	racetest.Skip(t)
	for _, spec := range everyNaive() {
		for _, strict := range []bool{false, true} {
			t.Run(nameOf(spec, strict, false), func(t *testing.T) {
				t.Parallel()
				judged := func(events []Event) Verdict { return Check(specOf(spec), events, Options{Strict: strict}).Verdict }
				prefixes, less := 0, 0
				rapid.Check(t, func(t *rapid.T) {
					r := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 0))
					p := recipe{spec: spec, strict: strict, unknown: rapid.Bool().Draw(t, "unknown outcomes"), length: rapid.IntRange(2, 20).Draw(t, "events")}
					events := drawHistory(r, p).events
					if judged(events) != Valid {
						return
					}
					for n := range events {
						if says := judged(events[:n]); says != Valid {
							t.Fatalf("the first %d events are %s of what is valid:\n\t%s", n, says, notation(events))
						}
						prefixes++
					}
					for i := range events {
						for _, other := range lessKnown(events, i) {
							if says := judged(other); says != Valid {
								t.Fatalf("%s:\n\t%s\nand valid:\n\t%s", says, notation(other), notation(events))
							}
							less++
						}
					}
				})
				t.Logf("%d prefixes, %d histories of which less is known", prefixes, less)
			})
		}
	}
}

// lessKnown returns the history with no known outcome for the operation that failed at i and, if it can go on without
// the return, with none yet: nothing if none failed there.
func lessKnown(events []Event, i int) [][]Event {
	e := events[i]
	if e.Phase != ReturnFail || e.Op == Use {
		return nil
	}
	unknown := slices.Clone(events)
	unknown[i].Phase = ReturnUnknown
	all := [][]Event{unknown}
	for _, next := range events[i+1:] {
		switch {
		case next.Client != e.Client || next.Phase == Expired:
		case next.Phase == Crash:
			return append(all, slices.Delete(slices.Clone(events), i, i+1))
		case next.Key == e.Key && next.Op != Use:
			return all
		}
	}
	return append(all, slices.Delete(slices.Clone(events), i, i+1))
}
