package linear

import (
	"slices"
	"sort"
)

// An Explanation is a minimal part of a history that is still illegal. Nothing more can be removed
// from it by the steps that keep legal histories legal; docs/checker.md defines these steps.
type Explanation struct {
	// Events are events of one lock, up to the event that makes them illegal.
	Events []Event
	// Violation is the violation that [Check] reports for Events.
	Violation Violation
	// Of is the number of events of the lock up to there.
	Of int
	// Smallest reports that the search for removable events was complete; otherwise it ran out of
	// steps, and more events might be removable.
	Smallest bool
}

// The limits of an explanation: atFirst search steps, plus perEvent for each event.
const (
	atFirst  = 1 << 22
	perEvent = 32
	fewSteps = 8 // number of events that cost as much as one search step
)

// Explain returns a minimal illegal part of a history, and false if Check does not report it as
// invalid. The result is deterministic. Explain uses only the option Strict; clock errors are
// ignored.
func Explain(spec Spec, events []Event, opts Options) (Explanation, bool) {
	events = inOrder(events)
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

// understood returns the events before the first invalid event.
func understood(spec Spec, events []Event) []Event {
	c := New(spec, Options{})
	for i := range events {
		if c.add(&events[i]) != nil {
			return events[:i]
		}
	}
	return events
}

// ofKey returns the events of one lock, and the crashes of the clients that used it.
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

// An explainer reduces illegal histories.
type explainer struct {
	spec   Spec
	strict bool
	left   int // remaining steps
}

// illegal reports whether the events are illegal; false if no steps are left.
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

// upTo removes the events after the one that makes the events illegal. Every prefix of a legal
// history is legal, so a first illegal prefix exists.
func (x *explainer) upTo(events []Event) []Event {
	return events[:1+sort.Search(len(events)-1, func(i int) bool { return x.illegal(events[:i+1]) })]
}

// reduce removes everything removable until nothing changes: the events before a moment at which no
// client held, whole clients, parts of the operations of each client, and the events after the
// illegal one.
func (x *explainer) reduce(events []Event) []Event {
	for {
		before := len(events)
		places := quiet(x.spec, x.strict, events)
		// A later suffix contains fewer events, so if it is illegal, all earlier suffixes are.
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

// without removes as many parts as possible: many at once, then fewer, then one by one. A part that
// is needed stays needed when other parts are removed, so no part is tried twice alone.
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
