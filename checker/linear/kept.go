package linear

import (
	"cmp"
	"slices"
)

// kept are the events of each lock, for specifications that are judged by a descent alone.
type kept struct {
	spec   Spec
	strict bool
	locks  map[string]*lock
	of     map[string][]*lock // by client
	n      int64
	// witnesses says more of locks that have no legal order.
	witnesses map[string]Violation
}

type lock struct {
	key    string
	events []Event
	places []int64 // of the events, in the whole
}

func newKept(spec Spec, strict bool) *kept {
	return &kept{spec: spec, strict: strict, locks: map[string]*lock{}, of: map[string][]*lock{}, witnesses: map[string]Violation{}}
}

func (k *kept) add(e *Event) {
	k.n++
	if e.Phase == Crash {
		for _, l := range k.of[e.Client] {
			l.add(e, k.n)
		}
		return
	}
	l := k.locks[e.Key]
	if l == nil {
		l = &lock{key: e.Key}
		k.locks[e.Key] = l
	}
	if !slices.Contains(k.of[e.Client], l) {
		k.of[e.Client] = append(k.of[e.Client], l)
	}
	l.add(e, k.n)
}

func (l *lock) add(e *Event, place int64) {
	l.events, l.places = append(l.events, *e), append(l.places, place)
}

// settle says which locks have no legal order, in the order of the events at which that shows, and
// whether a descent gave up.
func (k *kept) settle() (refuted []refutation, lost bool) {
	for _, l := range k.locks {
		at, gaveUp := k.refute(l.events)
		lost = lost || gaveUp
		if at >= 0 {
			refuted = append(refuted, refutation{l.key, l.places[at], &l.events[at]})
			if v, ok := k.plain(l.events[:at+1]); ok {
				k.witnesses[l.key] = v
			}
		}
	}
	slices.SortFunc(refuted, func(a, b refutation) int { return cmp.Compare(a.seq, b.seq) })
	return refuted, lost
}

// refute returns the first event at which events are illegal, or -1. A descent knows how all operations
// will return, so it may find out before that event.
func (k *kept) refute(events []Event) (at int, lost bool) {
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

func (k *kept) judge(events []Event) (legal bool, at int, lost bool) {
	c := compile(k.spec, k.strict, events)
	legal, point, lost := newDescent(k.spec, k.strict, c).run()
	if legal || lost {
		return legal, -1, lost
	}
	return false, int(c.at[point]), false
}

// plain looks for what makes events illegal that fits a few of them: who holds by itself, or the tokens
// by themselves.
func (k *kept) plain(events []Event) (Violation, bool) {
	if k.spec.kind != tokensKind {
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
