package linear

import (
	"cmp"
	"maps"
	"slices"
)

// eventBuffer are the events of each lock; of a Multi, whose operations bind locks together, of all as of one.
type eventBuffer struct {
	traits
	spec   Spec
	strict bool
	locks  map[string]*lock
	of     map[string][]*lock // by client
	known  map[place]struct{} // who is in of
	// refuted are the locks of which a violation is listed: they have no legal order.
	refuted map[string]bool
	only    map[string]bool // keys of which events are kept, if not nil
}

type place struct{ client, key string }

type lock struct {
	key        string
	events     []Event
	places     []int64 // of the events, in the whole; nil if they are the whole
	nextSearch int     // how many events there are to be before it is worth while to look again
}

func newKept(spec Spec, strict bool) *eventBuffer {
	return &eventBuffer{traits: spec.traits(), spec: spec, strict: strict, locks: map[string]*lock{}, of: map[string][]*lock{}, known: map[place]struct{}{}, refuted: map[string]bool{}}
}

// choose says of which locks to keep the events; with none of all.
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

// fill keeps all events of a history. If they are of one lock they are not copied.
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

// sole returns the lock that all events are about, if there is one only.
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

// place returns the place of one of its events in the whole.
func (l *lock) place(i int) int64 {
	if l.places == nil {
		return int64(i)
	}
	return l.places[i]
}

func (l *lock) add(e *Event, place int64) {
	l.events, l.places = append(l.events, *e), append(l.places, place)
}

// fork returns the same events, of which what is noted is noted here alone.
func (k *eventBuffer) fork() *eventBuffer {
	so := *k
	so.refuted = maps.Clone(k.refuted)
	return &so
}

// refute notes that the events of a lock are known to have no legal order.
func (k *eventBuffer) refute(key string) { k.refuted[k.whole(key)] = true }

// confirms says whether the events of a lock have no legal order. Where they have one it is not
// asked for again soon, so that all answers together cost no more than a few searches; unless this
// is the end.
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

// How many states a search sees, and comes no further, before what it can't explain is looked at by itself, and before it tries without busy answers.
const (
	patiently = 1 << 12
	mindfully = 1 << 14
	longest   = 1 << 18 // for what is looked at by itself
)

// A refutation is the first event up to which a lock has no legal order.
type refutation struct {
	lock  *lock
	at    int
	event *Event
}

// settle says which of these locks have no legal order and are not known for that yet, in the order of the events at
// which it shows, and whether a search gave up.
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

// first returns the first event at which events are illegal, or -1. A descent knows how all operations
// will return, so it may find out before that event.
func (k *eventBuffer) first(events []Event) (at int, lost bool) {
	legal, from, lost := k.judge(events)
	if legal || lost {
		return -1, lost
	}
	low, high := from, len(events)-1 // the first that is illegal is one of these
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

// judge says whether events have a legal order and, if not, at which event that shows at the earliest.
func (k *eventBuffer) judge(events []Event) (legal bool, at int, lost bool) {
	d := newDescent(k.spec, k.strict, compile(k.spec, k.strict, events))
	mindless := k.strict
	for patience := patiently; ; patience *= 4 {
		if legal, at, lost = d.answer(patience); !lost || d.budget < 0 {
			return legal, at, lost
		}
		// It gets no further because it is illegal, mostly, and that shows in what was last.
		if d.furthest >= 0 && patience <= longest && k.local(events, int(d.at[d.furthest]), patience) {
			return false, int(d.at[d.furthest]), false
		}
		// What is illegal without its busy answers is so with them, and shows much sooner where a busy answer has many explanations.
		if mindless && patience > mindfully {
			mindless = false
			if legal, at, lost := newKept(k.spec, false).judge(events); !legal && !lost {
				return false, at, false
			}
		}
	}
}

// local says whether events around a place are known to have no legal order, whatever was before. It looks at stretches of
// which one may take so many states, the shortest first.
func (k *eventBuffer) local(events []Event, at, spend int) bool {
	var spans []int
	for span := 32; span < at && span <= spend/8; span *= 4 {
		spans = append(spans, span)
	}
	p := newPast(k.spec)
	var near [][2][]Event // without busy answers, and with them
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

// answer is what judge says, of a descent that has so much patience.
func (s *searcher) answer(patience int) (legal bool, at int, lost bool) {
	legal, point, lost := s.run(patience)
	if legal || lost {
		return legal, -1, lost
	}
	return false, int(s.at[point]), false
}

// plain looks for what makes events illegal that fits a few of them: who holds by itself, or the tokens
// by themselves.
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
			// Of a token that came with a use only it is not sure here which acquire gave it.
			if v.Rule == TokenOrder && slices.ContainsFunc(v.Events, func(e Event) bool { return e.Op == Use }) || v.Rule == TokenNotIssued {
				continue
			}
			return v, true
		}
	}
	return Violation{}, false
}
