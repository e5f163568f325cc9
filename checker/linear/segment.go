package linear

import "maps"

// mostBefore is the maximum number of events that stand for the history before a stretch.
const mostBefore = 1 << 20

// A historyPrefix summarizes the history before a stretch: what each actor may hold in each mode.
type historyPrefix struct {
	traits
	spec    Spec
	limit   int64 // maximum that one actor may hold
	stocks  map[stockOf]*pendingHold
	order   []*pendingHold
	under   map[place]*Event // the calls under way
	crashed bool
}

type stockOf struct {
	place
	shared bool
}

type pendingHold struct {
	of       Event   // the actor and mode
	acquired int64   // permits acquired with the result ok, minus those released
	unsure   int64   // permits that acquires of unknown outcome, or under way, may add now or later
	gives    []Event // its releases of unknown outcome that are still possible, or under way
}

func newPast(spec Spec) *historyPrefix {
	p := &historyPrefix{traits: spec.traits(), spec: spec, limit: int64(spec.often()), stocks: map[stockOf]*pendingHold{}, under: map[place]*Event{}}
	if p.shares {
		p.limit = farAway
	}
	return p
}

func (p *historyPrefix) stock(e *Event) *pendingHold {
	at := stockOf{place{e.Client, e.Key}, e.Shared && p.shares}
	s := p.stocks[at]
	if s == nil {
		s = &pendingHold{of: Event{Client: e.Client, Key: e.Key, Shared: at.shared}}
		p.stocks[at], p.order = s, append(p.order, s)
	}
	return s
}

// add processes an event.
func (p *historyPrefix) add(e *Event) {
	at := place{e.Client, e.Key}
	switch e.Phase {
	case Crash:
		p.crashed = true
		crash(p.under, e.Client)
		return
	case Expired:
		return
	case Invoke:
		p.under[at] = e
	}
	call := p.under[at]
	if call == nil {
		return
	}
	s, n := p.stock(call), int64(1)
	if p.counted {
		n = int64(max(1, call.Permits))
	}
	told := e.Phase == ReturnOK && !p.spec.over(e)
	switch {
	case e.Op == Extend:
	case e.Phase == Invoke && e.Op == Release:
		s.gives = append(s.gives, *e)
	case e.Phase == Invoke:
		s.unsure += n
	case e.Phase == ReturnUnknown:
	case e.Op == Release:
		s.gives = s.gives[:len(s.gives)-1]
		if e.Phase == ReturnOK {
			s.acquired -= n
		}
	case told:
		s.unsure -= n
		s.acquired += n
	case e.Phase == ReturnFail:
		s.unsure -= n
	}
	if e.Phase != Invoke {
		delete(p.under, at)
	}
	if told && e.Op != Release {
		for _, shared := range []bool{false, true} {
			if s := p.stocks[stockOf{at, shared}]; s != nil {
				s.gives = nil
			}
		}
	}
}

// crash removes the calls of a client that are under way.
func crash(under map[place]*Event, client string) {
	maps.DeleteFunc(under, func(at place, _ *Event) bool { return at.client == client })
}

// stretch returns the events after a prefix as a separate history, or nil if none is known. If the
// whole history has a legal order, so has the result.
//
// Proof: take the holds at the beginning of the stretch in an order of the whole history, and the
// effects of that order from then on. Consider the holds of an actor, plus the later effects of its
// acquires of unknown outcome that were invoked before. In total they are at most the permits that
// it acquired with the result ok, minus those that it released for certain, plus those that all its
// unknown acquires can have added. At most the limit of the permits acquired with the result ok may
// be held. The result has that many acquires of unknown outcome. The acquires that make up the
// holds take effect at once (writes first), the others when those of the whole history do. Their
// holds may end at any time, which includes the ends of leases that began before. A release of
// unknown outcome that is still possible is in the result, too, and so is a release that was under
// way, because it may have taken effect before. Acquires under way have been counted, and a try
// that was under way is not judged. Therefore the states are those of the whole history from the
// beginning of the stretch on.
func (p *historyPrefix) stretch(strict bool, events []Event) []Event {
	if p.tokens || strict && p.crashed {
		return nil // earlier tokens matter, too; the holds left by a crash may be anybody's
	}
	acts := map[place]bool{}
	for i := range events {
		acts[place{events[i].Client, events[i].Key}] = true
	}
	out := make([]Event, 0, 2*len(events))
	add := func(s *pendingHold, op Op, permits int) {
		e := s.of
		e.Time, e.Op, e.Permits, e.Phase = events[0].Time, op, permits, Invoke
		out = append(out, e)
		e.Phase = ReturnUnknown
		out = append(out, e)
	}
	for _, s := range p.order {
		if !strict && !acts[place{s.of.Client, s.of.Key}] {
			continue // its holds only block other actors
		}
		n := min(s.acquired, p.limit) + s.unsure
		if n > int64(mostBefore-len(out)) {
			return nil
		}
		for range n {
			add(s, Acquire, 1)
		}
		for _, e := range s.gives {
			add(s, Release, e.Permits)
		}
	}
	under := maps.Clone(p.under)
	for i := range events {
		e := &events[i]
		at := place{e.Client, e.Key}
		switch {
		case e.Phase == Crash:
			crash(under, e.Client)
		case e.Phase != Invoke && e.Phase != Expired && under[at] != nil:
			delete(under, at)
			continue
		}
		out = append(out, *e)
	}
	return out
}
