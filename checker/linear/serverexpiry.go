package linear

// expired ends an actor's hold, because its lease is over by the server's clock. No operation of
// the actor can be moved past that point, so expired tries every order of the actor's operations
// before it, with the operations that make room for them.
func (s *searcher) expired(to []state, st state, p int32) []state {
	doing := s.under[p]
	if doing >= 0 && s.ops[doing].outcome != certain {
		doing = -1
	}
	if doing < 0 && len(s.actors[p].acquires) == 0 {
		return append(to, st.without(p))
	}
	s.repeat(st, func(st state, add func(state)) {
		to = append(to, st.without(p))
		if doing >= 0 && !has(st.done, doing) {
			s.early(st, doing, add)
		}
		s.reserve(st, p, add)
		for i := range st.holds {
			s.frees(st, &st.holds[i], add)
		}
	})
	return to
}

// without returns the state in which the actor holds nothing.
func (st state) without(p int32) state {
	if i, ok := st.held(p, false); ok {
		st = st.taking(p, false, -st.holds[i].count, st.holds[i].grant)
	}
	return st
}
