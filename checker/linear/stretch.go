package linear

// A stock is what an actor may have of a mode where a stretch of a history begins.
type stock struct {
	of     Event   // whose it is
	told   int64   // what it acquired and was told of, by permits, less what it has given back
	unsure int64   // what acquires of unknown outcome, or under way, may have given or may yet give
	gives  []Event // its releases of unknown outcome whose time is not over, or under way
}

// stretch returns the events from one place to another as a history by themselves, or nil if that is not known. If the
// whole has a legal order, so has this.
//
// Take what holds at its beginning in an order of the whole, and what the order does from then on. An actor's holds there, and what its acquires of
// unknown outcome that were called before give later, are no more in all than what it was told of, less what it gave back for certain, and what all
// those can have given; and of what it was told no more than one may hold. Here it has so many acquires of unknown outcome. Those that make up its holds take effect at once, the others
// when those of the whole do. Their holds may end at any time, as those of leases that began before do at some. A release of unknown outcome whose time is
// not over is here, too, and one that was under way is like it, since it may have taken effect before. Acquires under way have been counted, and nothing is asked of a try that was under way.
// So the states, from the beginning on, are those of the whole.
func stretch(spec Spec, strict bool, events []Event, from, to int) []Event {
	t := spec.traits()
	if t.tokens {
		return nil // what was given before matters, too
	}
	limit := int64(spec.often())
	if t.shares {
		limit = farAway
	}
	type mode struct {
		place
		shared bool
	}
	stocks := map[mode]*stock{}
	var order []*stock
	stockOf := func(e *Event) *stock {
		m := mode{place{e.Client, e.Key}, e.Shared && t.shares}
		if stocks[m] == nil {
			stocks[m] = &stock{of: Event{Client: e.Client, Key: e.Key, Shared: m.shared, Time: events[from].Time}}
			order = append(order, stocks[m])
		}
		return stocks[m]
	}
	under := map[place]*Event{} // the calls under way
	crash := func(client string) {
		for at := range under {
			if at.client == client {
				delete(under, at)
			}
		}
	}
	permits := func(e *Event) int64 {
		if !t.counted {
			return 1
		}
		return int64(max(1, e.Permits))
	}
	for i := range events[:from] {
		e := &events[i]
		at := place{e.Client, e.Key}
		switch e.Phase {
		case Crash:
			if strict {
				return nil // what it left may be anybody's
			}
			crash(e.Client)
			continue
		case Expired:
			continue
		case Invoke:
			under[at] = e
			switch s := stockOf(e); e.Op {
			case Acquire, TryAcquire:
				s.unsure += permits(e)
			case Release:
				s.gives = append(s.gives, *e)
			}
			continue
		}
		call := under[at]
		if call == nil {
			continue
		}
		delete(under, at)
		s := stockOf(call)
		told := e.Phase == ReturnOK && !spec.over(e)
		switch {
		case e.Phase == ReturnUnknown:
		case e.Op == Release:
			s.gives = s.gives[:len(s.gives)-1]
			if e.Phase == ReturnOK {
				s.told -= permits(call)
			}
			continue
		case e.Op != Extend && (told || e.Phase == ReturnFail):
			s.unsure -= permits(call)
			if told {
				s.told += permits(call)
			}
		}
		if told {
			for _, shared := range []bool{false, true} {
				if s := stocks[mode{at, shared}]; s != nil {
					s.gives = nil
				}
			}
		}
	}
	acts := map[place]bool{}
	for i := range events[from:to] {
		acts[place{events[from+i].Client, events[from+i].Key}] = true
	}
	var out []Event
	add := func(s *stock, op Op, permits int) {
		e := s.of
		e.Op, e.Permits, e.Phase = op, permits, Invoke
		out = append(out, e)
		e.Phase = ReturnUnknown
		out = append(out, e)
	}
	for _, s := range order {
		if !strict && !acts[place{s.of.Client, s.of.Key}] {
			continue // what it holds is in the others' way, and of no use
		}
		n := min(s.told, limit) + s.unsure
		if n > int64(len(events)-len(out)) {
			return nil
		}
		for range n {
			add(s, Acquire, 1)
		}
		for _, e := range s.gives {
			add(s, Release, e.Permits)
		}
	}
	for _, e := range events[from:to] {
		at := place{e.Client, e.Key}
		switch {
		case e.Phase == Crash:
			crash(e.Client)
		case e.Phase != Invoke && e.Phase != Expired && under[at] != nil:
			delete(under, at)
			continue
		}
		out = append(out, e)
	}
	return out
}
