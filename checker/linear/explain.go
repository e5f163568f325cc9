package linear

import (
	"cmp"
	"slices"
	"sort"
)

// An Explanation is a smallest part of a history that is illegal all the same: nothing may be
// left out of it any more that could not make a legal history illegal. docs/checker.md says what that is.
type Explanation struct {
	// Events are those of one lock, up to the one at which it shows.
	Events []Event
	// Violation is what is wrong with them, as [Check] says.
	Violation Violation
	// Of is how many events the lock had up to there.
	Of int
	// Smallest says that they are; otherwise that took too long, and more might be left out.
	Smallest bool
}

// How long an explanation may take: so many steps of searches, and so many for each event.
const (
	atFirst  = 1 << 22
	perEvent = 32
	fewSteps = 8 // so many events cost as much as one step of a search
)

// Explain returns the smallest illegal part of a history, the same each time; false if Check does not
// call it invalid. Whether clocks may be wrong is not asked, only Options.Strict counts.
func Explain(spec Spec, events []Event, opts Options) (Explanation, bool) {
	if !slices.IsSortedFunc(events, byTime) {
		events = slices.Clone(events)
		slices.SortStableFunc(events, byTime)
	}
	r := Check(spec, events, Options{Strict: opts.Strict})
	if r.Verdict != Invalid {
		return Explanation{}, false
	}
	x := &explainer{spec: spec, strict: opts.Strict, left: atFirst + perEvent*len(events)}
	if events = understood(spec, events); spec.traits().tied {
		events = slices.Clone(events)
		for i := range events {
			events[i] = *events[i].canonical()
		}
	} else {
		events = ofKey(events, r.Violations[0].Key)
	}
	events = x.upTo(events)
	e := Explanation{Of: len(events)}
	e.Events = x.reduce(events)
	e.Smallest = x.left >= 0
	e.Violation = Check(spec, e.Events, Options{Strict: opts.Strict}).Violations[0]
	return e, true
}

func byTime(a, b Event) int { return cmp.Compare(a.Time, b.Time) }

// understood returns the events before the first that makes no sense.
func understood(spec Spec, events []Event) []Event {
	c := New(spec, Options{})
	for i := range events {
		if c.add(&events[i]) != nil {
			return events[:i]
		}
	}
	return events
}

// ofKey returns what is about one lock, and the crashes of those who used it.
func ofKey(events []Event, key string) []Event {
	uses := map[string]bool{}
	for i := range events {
		if e := &events[i]; e.Phase != Crash && e.Key == key {
			uses[e.Client] = true
		}
	}
	var of []Event
	for i := range events {
		if e := &events[i]; e.Key == key && e.Phase != Crash || e.Phase == Crash && uses[e.Client] {
			of = append(of, *e)
		}
	}
	return of
}

// An explainer makes histories smaller that are illegal.
type explainer struct {
	spec   Spec
	strict bool
	left   int // steps, until it stops
}

// illegal says whether events are, unless there are no steps left.
func (x *explainer) illegal(events []Event) bool {
	if x.left -= 1 + len(events)/fewSteps; x.left < 0 {
		return false
	}
	r, open := run(x.spec, events, Options{Strict: x.strict}).conclusion()
	if r.Verdict == Invalid || !open {
		return r.Verdict == Invalid
	}
	d := newDescent(x.spec, x.strict, compile(x.spec, x.strict, events))
	d.budget = min(d.budget, max(x.left, 0))
	all := d.budget
	legal, _, lost := d.run(d.budget)
	x.left -= all - d.budget
	return !legal && !lost
}

// upTo leaves out what comes behind the event at which it shows that events are illegal. A prefix of a
// legal history is legal, so there is a first that is not.
func (x *explainer) upTo(events []Event) []Event {
	return events[:1+sort.Search(len(events)-1, func(i int) bool { return x.illegal(events[:i+1]) })]
}

// reduce leaves out what can be left out: all before a moment at which nothing was held, whole
// clients, parts of what each did, and what then comes behind, until nothing more can.
func (x *explainer) reduce(events []Event) []Event {
	for {
		before := len(events)
		places := quiet(x.spec, x.strict, events)
		// What begins later has less in it, so if it is illegal all before it are.
		if n := sort.Search(len(places), func(i int) bool { return !x.illegal(events[places[i]:]) }); n > 0 {
			events = events[places[n-1]:]
		}
		events = x.without(events, newCutter(x.spec, x.strict, events).clients())
		events = x.without(events, newCutter(x.spec, x.strict, events).parts())
		events = x.upTo(events)
		if len(events) == before || x.left < 0 {
			return events
		}
	}
}

// without leaves out as many parts as it can: many at once, then fewer, then one by one. What is needed stays so
// when others are left out, so that none is tried again alone.
func (x *explainer) without(events []Event, parts []part) []Event {
	var gone []part
	for size := len(parts); size > 0; size /= 2 {
		kept := parts[:0:0]
		for i := 0; i < len(parts); i += size {
			some := parts[i:min(i+size, len(parts))]
			if all := append(slices.Clip(gone), some...); x.illegal(leaving(events, all)) {
				gone = all
			} else {
				kept = append(kept, some...)
			}
		}
		parts = kept
	}
	return leaving(events, gone)
}
