package linear

import (
	"bytes"
	"cmp"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/lockfault/lockfault/internal/racetest"
)

// judge lets a descent say whether a history is legal, and whether it gave up.
func judge(spec naiveSpec, strict bool, events []Event) (legal, lost bool) {
	legal, _, lost = newKept(specOf(spec), strict).judge(events)
	return legal, lost
}

// A judging is by one whose word is compared with the oracle's.
type judging struct {
	name string
	says func(spec naiveSpec, strict bool, events []Event) Verdict
}

var judges = []judging{
	{"descent", func(spec naiveSpec, strict bool, events []Event) Verdict {
		legal, lost := judge(spec, strict, events)
		return verdictOf(legal, lost)
	}},
	{"Check", func(spec naiveSpec, strict bool, events []Event) Verdict {
		return Check(specOf(spec), events, Options{Strict: strict}).Verdict
	}},
}

func verdictOf(legal, lost bool) Verdict {
	switch {
	case lost:
		return Unknown
	case legal:
		return Valid
	}
	return Invalid
}

// everyNaive are the specifications that are drawn.
func everyNaive() []naiveSpec {
	return []naiveSpec{
		{kind: naiveSemaphore, limit: 2}, {kind: naiveSemaphore, limit: 3}, {kind: naiveMulti}, {kind: naiveReadWrite}, {kind: naiveFenced},
		{kind: naiveLease, expiry: Believed}, {kind: naiveLease, expiry: Known}, {kind: naiveLease, expiry: NotKnown}, {kind: naiveMutexTokens},
		{kind: naiveMutex}, {kind: naiveReentrant}, {kind: naiveReentrant, limit: 1}, {kind: naiveReentrant, limit: 2}, {kind: naiveReentrant, limit: 3},
		{kind: naiveSemaphore, limit: 1}, {kind: naiveServed},
	}
}

func nameOf(spec naiveSpec, strict, unknown bool) string {
	name := spec.String()
	if strict {
		name += ",strict"
	}
	if unknown {
		name += ",unknown"
	}
	return name
}

// TestRandom compares descents and Check with the oracle on random histories. The default of
// -histories is 60, that of -seed is a random seed. Histories with more than -states states at once
// are skipped. The flags -spec and -judge select by a part of the name. The file -disagreements
// collects the histories on which a judge and the oracle differ.
func TestRandom(t *testing.T) {
	racetest.Skip(t)
	most := int(cmp.Or(*statesFlag, math.MaxInt))
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
					found, valid, beyond := findings{}, 0, 0
					start := time.Now()
					for i := range n {
						r := rand.New(rand.NewPCG(seed, uint64(i)))
						events := drawHistory(r, recipe{spec: spec, strict: strict, unknown: unknown, length: between(r, 6, 20)}).events
						switch legal, lost := naiveWithin(spec, naively(events), strict, most); {
						case lost:
							beyond++
							continue
						case legal:
							valid++
							found.compare(spec, strict, events, true)
						default:
							found.compare(spec, strict, events, false)
						}
					}
					t.Logf("%d of %d legal, %d beyond the oracle, %v, %v", valid, n, beyond, found.count, time.Since(start))
					found.report(t, spec, strict)
				})
			}
		}
	}
}

// findings are what was found of one kind of histories.
type findings struct {
	count  map[string]int
	shapes map[string]bool
	kept   map[string][]finding
}

type finding struct {
	judge  string
	says   Verdict
	legal  bool
	events []Event
}

// compare compares the judges with the oracle, which holds the history for legal or not.
func (f *findings) compare(spec naiveSpec, strict bool, events []Event, legal bool) {
	for _, j := range judges {
		if !strings.Contains(j.name, *judgeFlag) {
			continue
		}
		says := j.says(spec, strict, events)
		if says == verdictOf(legal, false) {
			continue
		}
		class := fmt.Sprintf("%s says %s, the oracle %s", j.name, says, verdictOf(legal, false))
		if f.count == nil {
			f.count, f.shapes, f.kept = map[string]int{}, map[string]bool{}, map[string][]finding{}
		}
		f.count[class]++
		if len(f.kept[class]) >= 5 || f.count[class] > 200 {
			continue
		}
		small := shrink(spec, events, func(events []Event) bool {
			return j.says(spec, strict, events) == says && naive(spec, events, strict) == legal
		})
		shape := class + ": " + shapeOf(small)
		if !f.shapes[shape] {
			f.shapes[shape] = true
			f.kept[class] = append(f.kept[class], finding{j.name, says, legal, small})
		}
	}
}

var findingsFile sync.Mutex

func (f *findings) report(t *testing.T, spec naiveSpec, strict bool) {
	var out bytes.Buffer
	for class, all := range f.kept {
		for _, x := range all {
			fmt.Fprintf(&out, "why: %s\nspec: %s\n", class, caseName(spec))
			if strict {
				fmt.Fprintf(&out, "strict: yes\n")
			}
			fmt.Fprintf(&out, "history: %s\nverdict: %s\n\n", notation(x.events), verdictOf(x.legal, false))
		}
	}
	if out.Len() > 0 {
		t.Errorf("%v\n%s", f.count, out.String())
	}
	if name := *disagreementsFlag; name != "" && out.Len() > 0 {
		findingsFile.Lock()
		defer findingsFile.Unlock()
		file, err := os.OpenFile(name, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
		if err != nil {
			t.Fatal(err)
		}
		defer file.Close()
		if _, err := file.Write(out.Bytes()); err != nil {
			t.Fatal(err)
		}
	}
}

// caseName is the name that testdata/cases has for a specification.
func caseName(s naiveSpec) string {
	return strings.TrimSuffix(strings.ReplaceAll(s.String(), "(", " "), ")")
}

// shapeOf is a history without its times and tokens, clients being named in the order in which they come.
func shapeOf(events []Event) string {
	names := map[string]string{}
	var out []string
	for _, e := range events {
		if names[e.Client] == "" {
			names[e.Client] = string('A' + rune(len(names)))
		}
		out = append(out, notation([]Event{{Client: names[e.Client], Key: e.Key, Op: e.Op, Phase: e.Phase, Permits: e.Permits, Shared: e.Shared}}))
	}
	return strings.Join(out, ";")
}

// shrink drops and simplifies what the difference does not need.
func shrink(spec naiveSpec, events []Event, differs func([]Event) bool) []Event {
	try := func(next []Event) bool {
		if !wellFormed(spec, next) || !differs(next) {
			return false
		}
		events = next
		return true
	}
	for changed := true; changed; {
		changed = false
		for i := len(events) - 1; i >= 0; i-- {
			if i < len(events) && try(slices.Delete(slices.Clone(events), i, i+1)) {
				changed = true
			}
		}
		for i := 0; i < len(events); i++ { // a call with its return
			if j := returnOf(events, i); j >= 0 && try(slices.Delete(slices.Delete(slices.Clone(events), j, j+1), i, i+1)) {
				changed = true
			}
		}
		for i := range events {
			for _, simpler := range []func(e *Event){
				func(e *Event) { e.Lease = 0 },
				func(e *Event) { e.Permits = max(0, e.Permits-1) },
				func(e *Event) {
					if e.Op == TryAcquire {
						e.Op = Acquire
					}
				},
			} {
				next := slices.Clone(events)
				simpler(&next[i])
				if i, j := callAndReturn(events, i); j >= 0 {
					next[i].Permits, next[i].Op = min(next[i].Permits, next[j].Permits), min(next[i].Op, next[j].Op)
					next[j].Permits, next[j].Op = next[i].Permits, next[i].Op
				}
				if next[i] != events[i] && try(next) {
					changed = true
				}
			}
		}
	}
	plain := slices.Clone(events) // one event a second, if no lease depends on it
	for i := range plain {
		plain[i].Time = time.Duration(i) * time.Second
	}
	try(plain)
	for i := range events {
		events[i].Line = i + 1
	}
	return events
}

// returnOf returns the place of the return of the call at i, or -1.
func returnOf(events []Event, i int) int {
	if events[i].Phase != Invoke {
		return -1
	}
	for j := i + 1; j < len(events); j++ {
		e := events[j]
		if e.Client != events[i].Client || e.Op == Use || e.Phase == Expired || e.Phase != Crash && e.Key != events[i].Key {
			continue
		}
		if e.Phase == Crash || e.Phase == Invoke {
			return -1
		}
		return j
	}
	return -1
}

// callAndReturn returns the places of both events of the operation that i is one of.
func callAndReturn(events []Event, i int) (call, ret int) {
	for call := range i {
		if returnOf(events, call) == i {
			return call, i
		}
	}
	return i, returnOf(events, i)
}

// wellFormed says whether a history has a meaning: every return has its call, and no call comes before its client's
// earlier one has returned.
func wellFormed(spec naiveSpec, events []Event) bool {
	type place struct{ client, key string }
	under := map[place]Op{}
	for _, e := range events {
		at := place{e.Client, e.Key}
		switch {
		case e.Phase == Crash:
			for p := range under {
				if p.client == e.Client {
					delete(under, p)
				}
			}
		case e.Op == Use, e.Phase == Expired:
		case e.Phase == Invoke:
			if under[at] != 0 {
				return false
			}
			under[at] = e.Op
		case under[at] != e.Op:
			return false
		default:
			delete(under, at)
		}
	}
	return true
}
