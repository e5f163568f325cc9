package explore

import "time"

// A splitMove is the node after the first half of a transition that consists of two halves. In the
// first half, time passes, for each client and node separately; in the second, one client does
// something. The effects of both halves are in tables where that of the whole is not, because no
// other transition is explored between them. The embedded node's known field reports whether the
// first half is known.
type splitMove struct {
	*searchNode
	then move // the second half
}

// halfway finds the state after the first half of a transition, if it has halves, and reports
// whether nothing more is needed for the first half. A transition whose halves cannot be looked up
// is treated as a whole.
func (s *search) halfway(q *searchNode) bool {
	if q.half == nil || q.half.known {
		return true
	}
	switch s.lookUp(q.half.searchNode) {
	case isLearnt:
		return false
	case isPlayed:
		q.half = nil
	default:
		s.goOn(q)
	}
	return true
}

// goOn marks the first half of a transition as known and sets the key of the second half.
func (s *search) goOn(q *searchNode) {
	h := q.half
	h.known = true
	key, nodes, local := s.tables.at(h.searchNode, h.then)
	if !local {
		q.half = nil
		return
	}
	q.from, q.before, q.key, q.nodes, q.local = h.parts, h.memory, key, nodes, true
}

// learnHalf records the effect of the first half of a transition.
func (s *search) learnHalf(q *searchNode, look *Outcome) {
	h := q.half
	h.parts = s.tables.parts(look.Half.View)
	first, _ := look.Part.split(look.Half.Steps, look.Half.Took)
	s.tables.learnSpread(h.singles(), h.from, h.parts, first)
	h.trail.adds(&pathSegment{Part: first})
	s.goOn(q)
}

// adds sets the contribution of the transition to the history. If the transition has halves, part
// is the contribution of the second half.
func (q *searchNode) adds(part *pathSegment) {
	if q.half != nil {
		part = &pathSegment{Part: q.half.trail.part().and(&part.Part)}
	}
	q.trail.adds(part)
}

// rest returns the contribution of the second half of a transition, given that of the whole
// transition; without halves it returns the whole.
func (q *searchNode) rest(whole Part) Part {
	if q.half == nil {
		return whole
	}
	first := q.half.trail.parts[0]
	_, second := whole.split(len(first.Steps), first.Took)
	return second
}

// split splits a part after the given number of steps, which took the given duration.
func (p *Part) split(steps int, took time.Duration) (first, second Part) {
	at := p.Steps[steps]
	first = Part{Events: p.Events[:at:at], Steps: p.Steps[:steps:steps], Took: took}
	second = Part{Took: p.Took - took}
	for _, n := range p.Steps[steps:] {
		second.Steps = append(second.Steps, n-at)
	}
	for _, e := range p.Events[at:] {
		second.Events = append(second.Events, shift(e, -took))
	}
	return first, second
}

// and returns the contribution of two transitions in succession.
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
