package linear

import (
	"cmp"
	"maps"
	"slices"
)

// eventBuffer keeps the events of each lock for a search. A Multi, whose operations connect locks,
// is kept as one lock.
type eventBuffer struct {
	traits
	spec   Spec
	strict bool
	locks  map[string]*lock
	of     map[string][]*lock // by client
	known  map[place]struct{} // the members of of
	// refuted holds the locks with a listed violation: their events have no legal order.
	refuted map[string]bool
	only    map[string]bool // keys whose events are kept; nil means all
}

type place struct{ client, key string }

type lock struct {
	key        string
	events     []Event
	places     []int64 // positions of the events in the whole history; nil if they are the same
	nextSearch int     // number of events at which the next search is worthwhile
}

func newKept(spec Spec, strict bool) *eventBuffer {
	return &eventBuffer{traits: spec.traits(), spec: spec, strict: strict, locks: map[string]*lock{}, of: map[string][]*lock{}, known: map[place]struct{}{}, refuted: map[string]bool{}}
}

// choose restricts the buffer to the given keys; an empty list means all.
func (k *eventBuffer) choose(keys []string) {
	if len(keys) == 0 || k.tied {
		return
	}
	k.only = make(map[string]bool, len(keys))
	for _, key := range keys {
		k.only[key] = true
	}
}

func (k *eventBuffer) add(e *Event, seq int64) {
	if e.Phase == Crash {
		for _, l := range k.of[e.Client] {
			l.add(e, seq)
		}
		return
	}
	if k.only != nil && !k.only[e.Key] {
		return
	}
	at := place{e.Client, k.whole(e.Key)}
	l := k.locks[at.key]
	if l == nil {
		l = &lock{key: at.key}
		k.locks[at.key] = l
	}
	if _, known := k.known[at]; !known {
		k.known[at] = struct{}{}
		k.of[e.Client] = append(k.of[e.Client], l)
	}
	l.add(e, seq)
}

// fill stores all events of a history. Events of a single lock are not copied.
func (k *eventBuffer) fill(events []Event) {
	if key, ok := k.sole(events); ok {
		k.locks[key] = &lock{key: key, events: slices.Clip(events)}
		return
	}
	for i := range events {
		e := &events[i]
		if k.tied {
			e = e.canonical()
		}
		k.add(e, int64(i))
	}
}

// sole returns the lock that all events are about; false if there are several.
func (k *eventBuffer) sole(events []Event) (string, bool) {
	multi := k.tied
	known := map[string]bool{} // lists of keys of a Multi, and whether they are canonical
	key, some := "", false
	for i := range events {
		e := &events[i]
		switch {
		case e.Phase == Crash:
		case multi:
			canonical, ok := known[e.Key]
			if !ok {
				canonical = set(e.Key) == e.Key
				known[e.Key] = canonical
			}
			if !canonical {
				return "", false
			}
			some = true
		case !some:
			key, some = e.Key, true
		case e.Key != key:
			return "", false
		}
	}
	return key, some
}

// place returns the position of event i in the whole history.
func (l *lock) place(i int) int64 {
	if l.places == nil {
		return int64(i)
	}
	return l.places[i]
}

func (l *lock) add(e *Event, place int64) {
	l.events, l.places = append(l.events, *e), append(l.places, place)
}

// fork returns a copy that shares the events and has its own set of refuted locks.
func (k *eventBuffer) fork() *eventBuffer {
	so := *k
	so.refuted = maps.Clone(k.refuted)
	return &so
}

// refute records that the events of a lock have no legal order.
func (k *eventBuffer) refute(key string) { k.refuted[k.whole(key)] = true }

// confirms reports whether the events of a lock have no legal order. After a search that found an
// order, the next search waits until the events have doubled, so that all searches together cost no
// more than a few. At the end of the history (end is true), confirms always searches.
func (k *eventBuffer) confirms(key string, end bool) bool {
	key = k.whole(key)
	l := k.locks[key]
	if l == nil || k.refuted[key] || len(l.events) < l.nextSearch && !end {
		return l != nil && k.refuted[key]
	}
	legal, _, lost := k.judge(l.events)
	if (legal || lost) && !end {
		l.nextSearch = 2 * len(l.events)
	}
	return !legal && !lost
}

// Numbers of states that a search may visit without progress: patiently before the events that it
// cannot explain are judged separately, mindfully before a search without busy results.
const (
	patiently = 1 << 12
	mindfully = 1 << 14
	longest   = 1 << 18 // limit for separate judging
)

// A refutation is the first event up to which a lock has no legal order.
type refutation struct {
	lock  *lock
	at    int
	event *Event
}

// settle returns the locks selected by these that have no legal order and are not refuted yet, in
// the order of the refuting events, and whether a search gave up.
func (k *eventBuffer) settle(these func(key string) bool) (refuted []refutation, lost bool) {
	for key, l := range k.locks {
		if k.refuted[key] || !these(key) {
			continue
		}
		at, gaveUp := k.first(l.events)
		lost = lost || gaveUp
		if at >= 0 {
			refuted = append(refuted, refutation{l, at, &l.events[at]})
		}
	}
	slices.SortFunc(refuted, func(a, b refutation) int { return cmp.Compare(a.lock.place(a.at), b.lock.place(b.at)) })
	return refuted, lost
}

// first returns the first event that makes the events illegal, or -1. A search knows the results of
// later returns, so it may report an earlier event; first then searches for the exact one.
func (k *eventBuffer) first(events []Event) (at int, lost bool) {
	legal, from, lost := k.judge(events)
	if legal || lost {
		return -1, lost
	}
	low, high := from, len(events)-1 // the first illegal event is in [low, high]
	illegal := func(to int) bool {
		legal, _, lost := k.judge(events[:to+1])
		return !legal && !lost
	}
	for step := 1; low < high; step *= 2 {
		to := min(low+step-1, high)
		if illegal(to) {
			high = to
			break
		}
		low = to + 1
	}
	for low < high {
		if to := (low + high) / 2; illegal(to) {
			high = to
		} else {
			low = to + 1
		}
	}
	return high, false
}

// judge reports whether the events have a legal order and, if not, the earliest event at which that
// can show.
func (k *eventBuffer) judge(events []Event) (legal bool, at int, lost bool) {
	d := newDescent(k.spec, k.strict, compile(k.spec, k.strict, events))
	mindless := k.strict
	for patience := patiently; ; patience *= 4 {
		if legal, at, lost = d.answer(patience); !lost || d.budget < 0 {
			return legal, at, lost
		}
		// A search without progress is usually in an illegal history, and the last events show
		// that.
		if d.furthest >= 0 && patience <= longest && k.local(events, int(d.at[d.furthest]), patience) {
			return false, int(d.at[d.furthest]), false
		}
		// A history that is illegal without its busy results is illegal with them. The search
		// without them is much faster if a busy result has many explanations.
		if mindless && patience > mindfully {
			mindless = false
			if legal, at, lost := newKept(k.spec, false).judge(events); !legal && !lost {
				return false, at, false
			}
		}
	}
}

// local reports whether the events around a position have no legal order, whatever happened before.
// It tries stretches that a search of spend states can cover, the shortest first.
func (k *eventBuffer) local(events []Event, at, spend int) bool {
	var spans []int
	for span := 32; span < at && span <= spend/8; span *= 4 {
		spans = append(spans, span)
	}
	p := newPast(k.spec)
	var near [][2][]Event // without busy results, and with them
	next := 0
	for _, span := range slices.Backward(spans) {
		for ; next < at-span; next++ {
			p.add(&events[next])
		}
		stretch := events[next:min(at+span/2, len(events))]
		of := [2][]Event{p.stretch(false, stretch)}
		if k.strict {
			of[1] = p.stretch(true, stretch)
		}
		near = append(near, of)
	}
	for _, of := range slices.Backward(near) {
		for i, events := range of {
			if events == nil {
				continue
			}
			d := newDescent(k.spec, i == 1, compile(k.spec, i == 1, events))
			d.budget = min(d.budget, spend+4*len(events))
			if legal, _, lost := d.answer(d.budget); !legal && !lost {
				return true
			}
		}
	}
	return false
}

// answer returns the results of judge for a search that is limited by patience.
func (s *searcher) answer(patience int) (legal bool, at int, lost bool) {
	legal, point, lost := s.run(patience)
	if legal || lost {
		return legal, -1, lost
	}
	return false, int(s.at[point]), false
}

// plain returns a violation that explains illegal events with few of them: of the holds alone, or
// of the tokens alone.
func (k *eventBuffer) plain(events []Event) (Violation, bool) {
	if !k.tokens || k.ruled {
		return Violation{}, false
	}
	for _, spec := range []Spec{Mutex(), Fenced()} {
		c := New(spec, Options{})
		for i := range events {
			if spec == Mutex() && events[i].Op == Use {
				continue
			}
			c.Add(events[i])
		}
		for _, v := range c.Result().Violations {
			// For a token known only from a use, the acquire that returned it is uncertain here.
			if v.Rule == TokenOrder && slices.ContainsFunc(v.Events, func(e Event) bool { return e.Op == Use }) || v.Rule == TokenNotIssued {
				continue
			}
			return v, true
		}
	}
	return Violation{}, false
}
