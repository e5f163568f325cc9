package linear

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

// heldIn returns what clients must have held, each as it was told last.
func heldIn(spec Spec, events []Event) ([]Held, Result) {
	var list []Held
	c := New(spec, Options{All: true, Held: func(h Held) {
		if i := slices.IndexFunc(list, func(o Held) bool { return o.Event == h.Event && o.Key == h.Key }); i >= 0 && h.Permits == 1 {
			list[i] = h
			return
		}
		list = append(list, h)
	}})
	for _, e := range events {
		if c.Add(e) != nil {
			break
		}
	}
	r := c.Result()
	return list, r
}

// together says whether two holds of different clients have an instant in common.
func together(a, b Held) bool {
	return a.Client != b.Client && a.Key == b.Key && !a.Brief && !b.Brief && max(a.From, b.From) < min(a.To, b.To)
}

// TestHeldOfLegal sees that what is told of holds is what the specification allows: of a history that a
// lock has made no two clients hold at once.
func TestHeldOfLegal(t *testing.T) {
	for _, spec := range []Spec{Mutex(), Reentrant(3), Lease(Believed), Multi(), MutexTokens()} {
		for seed := range uint64(40) {
			events := traffic{spec: spec, ops: 200, tries: true, percent: int(seed % 4), seed: seed}.history()
			list, r := heldIn(spec, events)
			if len(list) == 0 && !r.Unsettled {
				t.Fatalf("%v, seed %d: nobody held", spec, seed)
			}
			for i, a := range list {
				for _, b := range list[i+1:] {
					if together(a, b) {
						t.Fatalf("%v, seed %d: %+v\nand %+v", spec, seed, a, b)
					}
				}
			}
		}
	}
}

// TestHeldIsWhole sees that of a mutex of which all outcomes are known each acquire is told once, from its return to the
// call of the release that did not fail, or to the end, whatever the lock did.
func TestHeldIsWhole(t *testing.T) {
	looked, overlapping := 0, 0
	for seed := range uint64(2000) {
		p := recipe{spec: naiveSpec{kind: naiveMutex}, length: 40, honest: seed%2 == 0}
		events := drawHistory(rand.New(rand.NewPCG(seed, 1)), p).events
		if slices.ContainsFunc(events, func(e Event) bool { return e.Phase == Crash }) {
			continue
		}
		list, r := heldIn(Mutex(), events)
		if len(r.Violations) > 0 && slices.ContainsFunc(r.Violations, func(v Violation) bool { return v.Rule != Overlap }) {
			continue // what it held is then anybody's guess
		}
		for i, e := range events {
			if e.Phase != ReturnOK || e.Op == Release {
				continue
			}
			if looked++; len(r.Violations) > 0 {
				overlapping++
			}
			until, open := events[len(events)-1].Time, true
			call := time.Duration(0)
			for _, later := range events[i+1:] {
				if later.Client != e.Client || later.Key != e.Key || later.Op != Release {
					continue
				}
				switch later.Phase {
				case Invoke:
					call = later.Time
				case ReturnOK:
					until, open = call, false
				}
				if !open {
					break
				}
			}
			at := slices.IndexFunc(list, func(h Held) bool { return h.Event.Line == e.Line && !h.Brief })
			if at < 0 {
				t.Fatalf("seed %d: line %d is not told of", seed, e.Line)
			}
			if h := list[at]; h.From != e.Time || h.Client != e.Client || open != h.Open || !open && h.To != until {
				// A release under way at the end may have ended it.
				if under := open && h.To == call; !under {
					t.Fatalf("seed %d: %+v, want from %v until %v, open %v", seed, h, e.Time, until, open)
				}
			}
		}
	}
	if looked < 100 || overlapping < 10 {
		t.Errorf("%d acquires were looked at, %d where somebody overlaps", looked, overlapping)
	}
}

// TestHeldShowsOverlaps sees that where two are said to have held together, they are told to.
func TestHeldShowsOverlaps(t *testing.T) {
	some := false
	for seed := range uint64(60) {
		events := traffic{spec: Mutex(), ops: 100, wrong: true, seed: seed}.history()
		list, r := heldIn(Mutex(), events)
		for _, v := range r.Violations {
			if v.Rule != Overlap || v.From == v.To {
				continue
			}
			some = true
			for _, client := range v.Clients {
				if !slices.ContainsFunc(list, func(h Held) bool { return h.Client == client && h.From <= v.From && h.To >= v.To }) {
					t.Fatalf("seed %d: %s holds from %v to %v, and is not told to:\n%+v", seed, client, v.From, v.To, list)
				}
			}
		}
	}
	if !some {
		t.Error("no history has an overlap")
	}
}
