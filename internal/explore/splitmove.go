package explore

import "time"

// splitMove is where the first half of a move leads that is known by its halves: time goes
// on, for each client and node by itself, and then one client does something. Both are in
// tables where the whole is not: nothing is looked at between them. Whether the position is known says the
// position.
type splitMove struct {
	*searchNode
	then move // the second half
}

// halfway finds out where the first half of a move leads, if it has one, and reports whether
// nothing more needs to be known of that. A move is left whole of which halves are no use.
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

// goOn says that the first half of a move is known: where the second leads is looked up from
// there.
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

// learnHalf takes note of what the first half of a move came to.
func (s *search) learnHalf(q *searchNode, look *Outcome) {
	h := q.half
	h.parts = s.tables.parts(look.Half.View)
	first, _ := look.Part.split(look.Half.Steps, look.Half.Took)
	s.tables.learnSpread(h.singles(), h.from, h.parts, first)
	h.trail.adds(&pathSegment{Part: first})
	s.goOn(q)
}

// adds says what the move added to the history, of which the second half is given if it has
// halves.
func (q *searchNode) adds(part *pathSegment) {
	if q.half != nil {
		part = &pathSegment{Part: q.half.trail.part().and(&part.Part)}
	}
	q.trail.adds(part)
}

// rest returns what the second half of a move added to the history, if it has halves, of what
// the whole did.
func (q *searchNode) rest(whole Part) Part {
	if q.half == nil {
		return whole
	}
	first := q.half.trail.parts[0]
	_, second := whole.split(len(first.Steps), first.Took)
	return second
}

// split returns what a part's first steps added, which took so long, and the others.
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
