package explore

// halfway is where the first half of a move leads that is known by its halves: time goes
// on, for each client and node by itself, and then one client does something. Both are in
// tables where the whole is not: nothing is looked at between them.
type halfway struct {
	*position
	then move // the second half
}

// halve finds out where the first half of a move leads, so that the move is looked up as
// what its second half does from there. It returns that half if it has to be played before; and
// leaves a move whole of which that is no use.
func (s *search) halve(q *position) (play *position) {
	h := q.half
	if h == nil || q.local {
		return nil
	}
	if h.look == nil {
		switch s.lookUp(h.position) {
		case isLearnt:
			return h.position
		case isPlayed:
			q.half = nil
			return nil
		}
	}
	if h.look != nil && h.look.Err != "" {
		q.half = nil
		return nil
	}
	q.from, q.before = h.parts, h.memory
	if q.key, q.nodes, q.local = s.tables.at(h.position, h.then); !q.local {
		q.half = nil
	}
	return nil
}

// adds says what the move added to the history, of which the second half is given if it has
// halves.
func (q *position) adds(part *piece) {
	if q.half != nil {
		part = &piece{Part: q.half.trail.part().and(&part.Part)}
	}
	q.trail.adds(part)
}

// rest returns what the second half of a move added to the history, if it has halves, of what
// the whole did.
func (q *position) rest(whole Part) Part {
	if q.half == nil {
		return whole
	}
	first := q.half.trail.parts[0]
	steps := whole.Steps[len(first.Steps):]
	second := Part{Took: whole.Took - first.Took}
	for _, at := range steps {
		second.Steps = append(second.Steps, at-steps[0])
	}
	for _, e := range whole.Events[steps[0]:] {
		second.Events = append(second.Events, shift(e, -first.Took))
	}
	return second
}

// and returns what two moves add that follow each other.
func (p *Part) and(then *Part) Part {
	whole := Part{Took: p.Took + then.Took}
	whole.Events = append(whole.Events, p.Events...)
	whole.Steps = append(whole.Steps, p.Steps...)
	for _, at := range then.Steps {
		whole.Steps = append(whole.Steps, len(p.Events)+at)
	}
	for _, e := range then.Events {
		whole.Events = append(whole.Events, shift(e, p.Took))
	}
	return whole
}
