package linear

import "maps"

// mostBefore bounds how many events stand for what was before a stretch.
const mostBefore = 1 << 20

// A historyPrefix is what is known of what was before a stretch of a history: what each actor may have of each mode.
type historyPrefix struct {
	traits
	spec    Spec
	limit   int64 // how much one may hold
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
	of       Event   // whose it is
	acquired int64   // what it acquired and was told of, by permits, less what it has given back
	unsure   int64   // what acquires of unknown outcome, or under way, may have given or may yet give
	gives    []Event // its releases of unknown outcome whose time is not over, or under way
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

// add goes over an event.
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

// crash forgets what a client had under way.
func crash(under map[place]*Event, client string) {
	maps.DeleteFunc(under, func(at place, _ *Event) bool { return at.client == client })
}

// stretch returns events that come behind a past as a history by themselves, or nil if that is not known. If the
// whole has a legal order, so has this.
//
// Take what holds at its beginning in an order of the whole, and what the order does from then on. An actor's holds there, and what its acquires of
// unknown outcome that were called before give later, are no more in all than what it was told of, less what it gave back for certain, and what all
// those can have given; and of what it was told no more than one may hold. Here it has so many acquires of unknown outcome. Those that make up its holds
// take effect at once (to write first), the others when those of the whole do. Their holds may end at any time, as those of leases that began before do at
// some. A release of unknown outcome whose time is not over is here, too, and one that was under way is like it, since it may have taken effect before.
// Acquires under way have been counted, and nothing is asked of a try that was under way. So the states are those of the whole from the beginning on.
func (p *historyPrefix) stretch(strict bool, events []Event) []Event {
	if p.tokens || strict && p.crashed {
		return nil // what was given before matters, too; what a crash left may be anybody's
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
			continue // what it holds is in the others' way, and of no use
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
