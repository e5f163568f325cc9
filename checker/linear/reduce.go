package linear

import (
	"cmp"
	"slices"
	"sort"
)

// A part is a set of positions of events that may be removed together: if the whole history is
// legal, so is the rest. docs/checker.md proves this for each kind of part, and for several parts
// at once.
type part []int

// A callOf is an operation with the facts that decide what may be removed.
type callOf struct {
	e       *Event // the invocation
	ret     *Event // nil without a return
	at      int
	to      int // position of its return or its client's crash, else the end of the history
	outcome outcome
}

func (o *callOf) events() part {
	if o.ret == nil {
		return part{o.at}
	}
	return part{o.at, o.to}
}

func (o *callOf) acquires() bool { return o.e.Op == Acquire || o.e.Op == TryAcquire }

// crashed reports whether a step is a crash; expired reports whether it is the end of a lease.
func (o *callOf) crashed() bool { return o.e.Phase == Crash }
func (o *callOf) expired() bool { return o.e.Phase == Expired }

// An actorOps lists the steps of one actor, in order: operations that did not fail, and external
// ends of its holds, which have no invocation.
type actorOps struct {
	client string
	steps  []callOf
}

// A reducer holds the facts about a history that decide which parts may be removed.
type reducer struct {
	traits
	spec    Spec
	events  []Event
	careers []*actorOps
	of      map[place]*actorOps
	by      map[string][]*actorOps
	failed  []callOf
	uses    map[place][]int // accepted uses
	used    []int           // all uses
	crashes []int
	tries   []span // tries that returned busy, in strict mode, by invocation
	latest  []int  // for each try, the last return of the tries up to it
}

type span struct{ from, to int }

func newCutter(spec Spec, strict bool, events []Event) *reducer {
	c := &reducer{traits: spec.traits(), spec: spec, events: events, of: map[place]*actorOps{}, by: map[string][]*actorOps{}, uses: map[place][]int{}}
	type underWay struct {
		career *actorOps
		step   int
	}
	under := map[place]underWay{}
	for i := range events {
		e := &events[i]
		at := place{e.Client, e.Key}
		switch {
		case e.Phase == Crash:
			c.crashes = append(c.crashes, i)
			for _, l := range c.by[e.Client] {
				key := place{e.Client, l.steps[0].e.Key}
				if u, ok := under[key]; ok {
					l.steps[u.step].to = i
					delete(under, key)
				}
				l.steps = append(l.steps, callOf{e: e, at: i, to: i})
			}
		case e.Phase == Expired:
			if l := c.of[at]; l != nil {
				l.steps = append(l.steps, callOf{e: e, at: i, to: i})
			}
		case e.Op == Use:
			c.used = append(c.used, i)
			if e.Phase == ReturnOK {
				c.uses[at] = append(c.uses[at], i)
			}
		case e.Phase == Invoke:
			l := c.of[at]
			if l == nil {
				l = &actorOps{client: e.Client}
				c.of[at] = l
				c.by[e.Client] = append(c.by[e.Client], l)
				c.careers = append(c.careers, l)
			}
			under[at] = underWay{l, len(l.steps)}
			l.steps = append(l.steps, callOf{e: e, at: i, to: len(events), outcome: unsure})
		default:
			u := under[at]
			delete(under, at)
			o := &u.career.steps[u.step]
			o.ret, o.to = e, i
			switch {
			case e.Phase == ReturnFail:
				o.outcome = failed
				if strict && e.Op == TryAcquire {
					c.tries = append(c.tries, span{o.at, i})
				}
			case e.Phase == ReturnOK && (e.Op == Release || c.lax && e.Op != Extend || !spec.over(e)):
				o.outcome = certain
			}
		}
	}
	for _, l := range c.careers {
		l.steps = slices.DeleteFunc(l.steps, func(o callOf) bool {
			if o.outcome == failed && !o.crashed() && !o.expired() {
				c.failed = append(c.failed, o)
				return true
			}
			return false
		})
	}
	slices.SortFunc(c.failed, func(a, b callOf) int { return cmp.Compare(a.at, b.at) })
	slices.SortFunc(c.tries, func(a, b span) int { return cmp.Compare(a.from, b.from) })
	last := -1
	for _, t := range c.tries {
		last = max(last, t.to)
		c.latest = append(c.latest, last)
	}
	return c
}

// asked reports whether a judged busy result has an interval that contains a position between from
// and to.
func (c *reducer) asked(from, to int) bool {
	n := sort.Search(len(c.tries), func(i int) bool { return c.tries[i].from > to })
	return n > 0 && c.latest[n-1] > from
}

// presented reports whether the resource accepted a token from an actor after a position.
func (c *reducer) presented(at place, from int) bool {
	uses := c.uses[at]
	return len(uses) > 0 && uses[len(uses)-1] > from
}

// begun returns, by client, the invocation of the first operation of a kind that did not fail.
func (c *reducer) begun(is func(*callOf) bool) map[string]int {
	begun := map[string]int{}
	for _, l := range c.careers {
		i := slices.IndexFunc(l.steps, func(o callOf) bool { return is(&o) })
		if i < 0 {
			continue
		}
		if first, ok := begun[l.client]; !ok || l.steps[i].at < first {
			begun[l.client] = l.steps[i].at
		}
	}
	return begun
}

// clients returns the parts that are all events of a client.
func (c *reducer) clients() []part {
	var names []string // in order of appearance
	all := map[string]part{}
	first := c.begun(func(o *callOf) bool { return o.acquires() })
	for i := range c.events {
		e := &c.events[i]
		if all[e.Client] == nil {
			names = append(names, e.Client)
		}
		all[e.Client] = append(all[e.Client], i)
	}
	var parts []part
	for _, name := range names {
		at, acquires := first[name]
		if acquires && slices.ContainsFunc(c.tries, func(t span) bool { return t.to > at && c.events[t.from].Client != name }) {
			continue // the client may explain busy results of other clients
		}
		parts = append(parts, all[name])
	}
	return parts
}

// parts returns all other parts, in the order of their first events.
func (c *reducer) parts() []part {
	var parts []part
	for i := range c.failed {
		parts = append(parts, c.failed[i].events())
	}
	for _, i := range c.used {
		parts = append(parts, part{i})
	}
	begun := c.begun(func(o *callOf) bool { return !o.crashed() && !o.expired() })
	for i := range c.events {
		e := &c.events[i]
		if first, ok := begun[e.Client]; (e.Phase == Crash || e.Phase == Expired) && (!ok || first > i) {
			parts = append(parts, part{i}) // the client held nothing
		}
	}
	for _, l := range c.careers {
		c.ofCareer(l, &parts)
	}
	slices.SortStableFunc(parts, func(a, b part) int { return cmp.Compare(a[0], b[0]) })
	return parts
}

// ofCareer adds the parts that are some of the steps of an actor.
func (c *reducer) ofCareer(l *actorOps, parts *[]part) {
	acquires := slices.ContainsFunc(l.steps, func(o callOf) bool { return o.acquires() })
	needed := c.needed(l.steps)
	began := false    // an acquire came before
	replaced := false // lax: a later acquire may not have needed this hold to end
	for i := range l.steps {
		o := &l.steps[i]
		switch {
		case o.crashed() || o.expired():
			replaced = replaced && !o.crashed()
			continue
		case o.e.Op == Release:
			replaced = replaced && o.outcome != certain
			if !acquires && o.outcome == unsure {
				*parts = append(*parts, o.events()) // there is nothing to release
			}
			continue
		case o.e.Op == Extend:
			if c.idle(l.steps, i) {
				*parts = append(*parts, o.events())
			}
			continue
		}
		if p := c.turn(l, i, began, i < needed, replaced); p != nil {
			*parts = append(*parts, p)
		}
		began = true
		replaced = c.lax
	}
}

// needed returns the position from which acquires of unknown outcome without a release are not
// needed by any other step.
func (c *reducer) needed(steps []callOf) int {
	rough, spare := false, false
	for i := range steps {
		rough = rough || c.counted && steps[i].e.Permits > 1
		spare = spare || steps[i].e.Op == Release && steps[i].outcome == unsure
	}
	if rough && spare {
		return len(steps) // a release of several permits may need the acquire to take effect
	}
	n := len(steps)
	for n > 0 && (steps[n-1].outcome != certain || steps[n-1].acquires() && !c.shares) { // writers may reacquire
		n--
	}
	return n
}

// idle reports whether the extend steps[i] may be removed: the hold lasts as long without it.
func (c *reducer) idle(steps []callOf, i int) bool {
	o := &steps[i]
	if o.outcome != certain {
		return c.spec.expiry != Known // a possible extend makes the end of a known lease uncertain
	}
	if c.spec.expiry == NotKnown || c.spec.expiry == ByServer {
		return true
	}
	if i == 0 || c.spec.expiry == Known {
		return false
	}
	before := &steps[i-1]
	return !before.crashed() && !before.expired() && before.outcome == certain && before.e.Op != Release &&
		before.ret.Lease <= o.ret.Lease && (before.ret.Lease == 0) == (o.ret.Lease == 0)
}

// turn returns the acquire steps[i] with the end of its hold, or nil if they cannot be removed.
// began reports that an acquire came before; needed that, with an unknown outcome, a later certain
// step may need it; replaced that its client may have held the lock.
func (c *reducer) turn(l *actorOps, i int, began, needed, replaced bool) part {
	o := &l.steps[i]
	p := slices.Clone(o.events())
	if replaced || c.tokens && c.presented(place{o.e.Client, o.e.Key}, o.at) {
		return nil
	}
	j := i + 1
	for ; j < len(l.steps) && l.steps[j].e.Op == Extend && !l.steps[j].crashed(); j++ {
		p = append(p, l.steps[j].events()...)
	}
	end := len(c.events)
	if j == len(l.steps) || l.steps[j].crashed() {
		if o.outcome != certain && needed || c.asked(o.at, end) {
			return nil // a later release or a busy result may depend on it
		}
		return p
	}
	next := &l.steps[j]
	switch {
	case next.expired():
		if o.outcome != certain || next.at < o.to || j > i+1 && next.at < l.steps[j-1].to {
			return nil
		}
		end = next.at
	case next.e.Op != Release || next.e.Shared != o.e.Shared || c.counted && max(1, next.e.Permits) != max(1, o.e.Permits):
		return nil
	case next.outcome != certain:
		if k := j + 1; k < len(l.steps) && !l.steps[k].crashed() || o.outcome != certain && (needed || began) {
			return nil // the release may have ended another hold
		}
	case o.outcome != certain && (began || j > i+1 || c.lax && needed):
		return nil // the release may have ended another hold
	case !c.lax:
		end = next.to
	}
	if c.asked(o.at, end) {
		return nil
	}
	return append(p, next.events()...)
}

// leaving returns the events that are in none of the parts.
func leaving(events []Event, parts []part) []Event {
	gone := make([]bool, len(events))
	for _, p := range parts {
		for _, i := range p {
			gone[i] = true
		}
	}
	rest := make([]Event, 0, len(events))
	for i := range events {
		if !gone[i] {
			rest = append(rest, events[i])
		}
	}
	return rest
}
