package linear

import "slices"

// A walk visits the states reachable from one state by operations that may take effect at a point.
// It visits each state once, in the order of the number of steps. A walk is lazy: usually the first
// goal state is enough.
type walk struct {
	op        int32 // the operation that the goal is about
	needsMore bool  // also follow moves from states that reach the goal
	filling   bool  // take permits until a try that found permits left finds none
	unseen    int   // len(st.seen) of the states before that
	closing   bool  // as many releases of unknown outcome as possible end

	queue   []state
	known   map[uint64]int32 // positions in the queue by hash of the state; nil for few states
	hashes  []uint64
	at      int  // number of states visited
	pending bool // the moves from the last visited state were not followed yet

	add func(state)
}

// walk returns a new walk from st, and reuses an idle one if possible.
func (s *searcher) walk(st state, op int32) *walk {
	var w *walk
	if n := len(s.idle); n > 0 {
		w = s.idle[n-1]
		s.idle = s.idle[:n-1]
	} else {
		w = &walk{}
		w.add = func(st state) {
			s.budget--
			w.put(st)
		}
	}
	w.op, w.needsMore, w.filling, w.closing = op, false, false, false
	w.put(st)
	return w
}

// end releases a walk for reuse.
func (s *searcher) end(w *walk) {
	clear(w.queue)
	w.queue, w.hashes, w.known = w.queue[:0], w.hashes[:0], nil
	w.at, w.pending = 0, false
	s.idle = append(s.idle, w)
}

// put adds a state to the queue unless it is already there.
func (w *walk) put(st state) {
	h := st.hash()
	if w.known == nil {
		for i, other := range w.hashes {
			if other == h && w.queue[i].equal(&st) {
				return
			}
		}
		if len(w.hashes) == few {
			w.known = make(map[uint64]int32, 4*few)
			for i, h := range w.hashes {
				w.known[h] = int32(i)
			}
		}
	}
	if w.known != nil {
		// Of two states with equal hashes, the map keeps the later one. The earlier one may be
		// visited twice, which is harmless.
		if i, ok := w.known[h]; ok && w.queue[i].equal(&st) {
			return
		}
		w.known[h] = int32(len(w.queue))
	}
	w.queue, w.hashes = append(w.queue, st), append(w.hashes, h)
}

// found returns the next goal state; false if there is none or the budget is used up.
func (s *searcher) found(w *walk) (state, bool) {
	for {
		if w.pending {
			w.pending = false
			if w.closing {
				s.closings(w.queue[w.at-1], w.op, w.add)
			} else {
				s.moves(w.queue[w.at-1], w.op, w.needsMore, w.add)
			}
		}
		if w.at == len(w.queue) || s.budget < 0 {
			return state{}, false
		}
		st := w.queue[w.at]
		w.at++
		if w.filling && len(st.seen) == w.unseen {
			s.fill(st, w.add)
			continue
		}
		if w.closing {
			w.pending = true
			if next, ok := s.closed(w, st); ok {
				return next, true
			}
			continue
		}
		next, ok := s.goal(st, w.op)
		w.pending = !w.filling && (w.needsMore || !ok)
		if ok {
			return next, true
		}
	}
}

// over reports whether a walk has no states left to visit.
func (w *walk) over() bool { return w.at == len(w.queue) && !w.pending }

func (st *state) equal(o *state) bool {
	return st.last == o.last && st.accepted == o.accepted && slices.Equal(st.holds, o.holds) && slices.Equal(st.done, o.done) &&
		slices.Equal(st.seen, o.seen) && slices.Equal(st.used, o.used) && slices.Equal(st.given, o.given)
}

// hash returns equal values for equal states.
func (st *state) hash() uint64 {
	h := uint64(14695981039346656037)
	mix := func(x uint64) {
		h = (h ^ x) * 0x9E3779B97F4A7C15
		h ^= h >> 29
	}
	mix(uint64(len(st.holds))<<32 | uint64(len(st.done))<<16 | uint64(len(st.seen)))
	for i := range st.holds {
		x := &st.holds[i]
		mode := uint64(0)
		if x.reading {
			mode = 1
		}
		mix(uint64(uint32(x.actor))<<32 | uint64(uint32(x.count)))
		mix(uint64(uint32(x.grant))<<1 | mode)
	}
	for _, x := range st.done {
		mix(uint64(uint32(x)))
	}
	for _, x := range st.seen {
		mix(uint64(uint32(x)))
	}
	for _, x := range st.used {
		mix(uint64(uint32(x.reserve))<<32 | uint64(uint32(x.n)))
	}
	mix(uint64(st.last))
	mix(uint64(st.accepted))
	for _, g := range st.given {
		mix(uint64(uint32(g.actor)))
		mix(uint64(g.token))
	}
	return h
}
