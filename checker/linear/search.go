package linear

import (
	"math"
	"slices"
)

// How long a search goes on before it gives up, which leaves the question open: so
// many states for each point of the history, not counting the first ones.
const (
	typically = 64
	initially = 1 << 21
)

// A searcher looks for a legal order of a compiled history: depth first, point by point, and where it has
// been is remembered (Wing and Gong; Lowe). Nothing takes effect before it is
// needed: at an operation's return it itself, and before that what makes room for it. docs/checker.md
// says why that is enough.
type searcher struct {
	*compiled
	traits
	model     model
	strict    bool
	rough     bool      // an operation is about several permits
	unit      bool      // a semaphore's, and none is
	sure      [][]int32 // by actor: its operations of which the outcome is ok, if it is about such permits
	plain     []bool    // by actor: of all its operations the outcome is known
	several   bool      // an operation may be about several permits or keys
	takes     []int32   // the reserve acquires
	bulk      []int32   // of them those of several, or of who releases several, or of writing
	least     []int64   // by point: the least token that an acquire returned which was called there or later
	last      []int32   // by actor: the last point that is about it
	symmetric []int32   // by reserve: which are acquired alike, if nothing else is ever asked of their actors; or -1
	tried     []int32   // by which are alike: the round in which one was tried
	round     int32

	pos   int32
	under []int32 // by actor: the operation under way, or -1
	open  []int32 // operations under way
	watch []int32 // of them the tries that must find the lock taken

	frames   []frame
	been     memo
	furthest int32 // the furthest point that no order explains, or -1
	budget   int

	cur     state // where it goes on
	deepest int32 // the furthest point that it came to
	then    int   // its budget there
	sweep   sweep

	out  []state
	more *walk   // states that come after those in out, on demand
	idle []*walk // to be used again
	buf  []byte
}

// A frame is a point with several states after it.
type frame struct {
	pos   int32
	tried state // the last of them that was tried
	rest  []state
	more  *walk // what comes after the rest
}

func newDescent(spec Spec, strict bool, c *compiled) *searcher {
	s := &searcher{
		compiled: c, traits: spec.traits(), model: spec.model(c.actors), strict: strict,
		under:    make([]int32, len(c.actors)),
		been:     memo{},
		furthest: -1,
		budget:   initially + typically*len(c.points),
	}
	for i := range s.under {
		s.under[i] = -1
	}
	s.groupSymmetric()
	if s.tokens {
		s.least = make([]int64, len(s.points)+1)
		least := int64(math.MaxInt64)
		for i := len(s.points); i >= 0; i-- {
			if i < len(s.points) && s.points[i].kind == calledPoint {
				if o := &s.ops[s.points[i].op]; o.outcome == certain && o.op != Release && o.op != Extend && o.token != 0 {
					least = min(least, o.token)
				}
			}
			s.least[i] = least
		}
	}
	s.several = s.tied || s.counted
	gives := map[int32]bool{} // actors that release several permits at once
	for i := range s.ops {
		if o := &s.ops[i]; o.op == Release && o.permits > 1 {
			gives[o.actor] = true
		}
	}
	for i := range s.reserves {
		like := &s.ops[s.reserves[i].like]
		if like.op == Release {
			continue
		}
		s.takes = append(s.takes, int32(i))
		if like.permits > 1 || gives[like.actor] || len(s.actors[like.actor].keys) > 1 || s.shares {
			s.bulk = append(s.bulk, int32(i))
		}
	}
	s.rough = slices.ContainsFunc(s.ops, func(o operation) bool { return o.permits > 1 })
	s.unit = s.counted && !s.rough
	if s.unit {
		s.sure = make([][]int32, len(c.actors))
		for i := range s.ops {
			if o := &s.ops[i]; o.outcome == certain {
				s.sure[o.actor] = append(s.sure[o.actor], int32(i))
			}
		}
	}
	s.plain = make([]bool, len(c.actors))
	for i := range s.plain {
		s.plain[i] = len(c.actors[i].acquires) == 0 && len(c.actors[i].releases) == 0
	}
	return s
}

// run goes on until it knows whether there is a legal order, or has come no further for so many states. If there is none, refuted is the
// first point that no order explains. lost says that it does not know; it may go on, unless nothing is left of its budget.
func (s *searcher) run(patience int) (legal bool, refuted int32, lost bool) {
	cur := s.cur
	for int(s.pos) < len(s.points) {
		if s.pos > s.deepest || s.deepest == 0 {
			s.deepest, s.then, s.sweep = s.pos, s.budget, sweep{}
		} else if s.then-s.budget > patience {
			s.cur = cur
			return false, -1, true
		}
		next := s.out[:0]
		known := false
		if s.pos <= s.furthest {
			known = !s.visit(s.pos, cur)
		}
		s.more = nil
		if !known {
			s.out = s.after(next, cur)
			next = s.out
		}
		if s.budget -= 1 + len(next); s.budget < 0 {
			return false, -1, true
		}
		if len(next) == 0 {
			s.furthest = max(s.furthest, s.pos)
			var ok bool
			if cur, ok = s.back(); !ok {
				return false, s.furthest, s.budget < 0
			}
			continue
		}
		if len(next) > 1 || s.more != nil {
			s.frames = append(s.frames, frame{s.pos, next[0], slices.Clone(next[1:]), s.more})
		}
		cur = next[0]
		s.advance()
	}
	return true, -1, false
}

func appendPos(to []byte, pos int32) []byte {
	return append(to, byte(pos), byte(pos>>8), byte(pos>>16), byte(pos>>24))
}

// back returns to a state that has another one after it: the latest, unless a sweep chooses. What waits may be
// followed in any order, and what a state that was followed can do as well need not be.
func (s *searcher) back() (state, bool) {
	for len(s.frames) > 0 {
		i := s.choose()
		f := &s.frames[i]
		s.visit(f.pos+1, f.tried)
		for s.pos > f.pos {
			s.retreat()
		}
		for s.pos < f.pos {
			s.advance()
		}
		if len(f.rest) > 0 {
			next := f.rest[0]
			f.rest, f.tried = f.rest[1:], next
			s.advance()
			return next, true
		}
		if f.more != nil {
			s.budget--
			if next, ok := s.found(f.more); ok {
				f.tried = next
				s.advance()
				return next, true
			}
			s.end(f.more)
		}
		s.frames = slices.Delete(s.frames, i, i+1)
	}
	return state{}, false
}

// A sweep goes over the frames from the last to earlier ones, when a search has come no further for long, and follows each for a while: what was chosen wrongly
// may be far back, and all that can be chosen since does not mend it.
type sweep struct {
	next  int // the frame that it comes to next, and those before
	until int // the budget at which it goes on
	leash int // for how many states it follows each
	reach int32
}

// restless is for how many states a search comes no further before it sweeps.
var restless = 1 << 12

// choose returns the frame to go on from.
func (s *searcher) choose() int {
	last := len(s.frames) - 1
	w := &s.sweep
	if s.then-s.budget <= restless || w.leash > 0 && s.budget > w.until {
		return last
	}
	w.next = min(w.next, len(s.frames))
	if w.next--; w.leash == 0 || w.next < 0 || s.deepest-s.frames[w.next].pos > w.reach {
		w.leash, w.reach, w.next = 2*w.leash+16, 4*w.reach+64, last
	}
	w.until = s.budget - w.leash
	return w.next
}

// advance and retreat go over one point.
func (s *searcher) advance() {
	p := s.points[s.pos]
	s.pos++
	switch p.kind {
	case calledPoint:
		s.enter(p.op)
	case returnedPoint:
		s.leave(p.op)
	case crashPoint:
		s.leave(p.cut)
	}
}

func (s *searcher) retreat() {
	s.pos--
	p := s.points[s.pos]
	switch p.kind {
	case calledPoint:
		s.leave(p.op)
	case returnedPoint:
		s.enter(p.op)
	case crashPoint:
		s.enter(p.cut)
	}
}

func (s *searcher) enter(op int32) {
	if op < 0 {
		return
	}
	s.under[s.ops[op].actor] = op
	s.open = append(s.open, op)
	if s.fails(op) {
		s.watch = append(s.watch, op)
	}
}

func (s *searcher) leave(op int32) {
	if op < 0 {
		return
	}
	s.under[s.ops[op].actor] = -1
	s.open = drop(s.open, op)
	if s.fails(op) {
		s.watch = drop(s.watch, op)
	}
}

func drop(list []int32, x int32) []int32 {
	i := slices.Index(list, x)
	list[i] = list[len(list)-1]
	return list[:len(list)-1]
}

// fails says whether op is a try that must find the lock taken.
func (s *searcher) fails(op int32) bool {
	o := &s.ops[op]
	return s.strict && o.op == TryAcquire && o.outcome == failed
}

// noteFailedTries notes which tries find the lock taken.
func (s *searcher) noteFailedTries(st state) state {
	for _, t := range s.watch {
		if !has(st.seen, t) && s.model.busy(st.holds, &s.ops[t]) {
			st.seen = including(st.seen, t)
		}
	}
	return st
}

// after appends the states in which a legal order may be after the next point, those first
// that give least away.
func (s *searcher) after(to []state, st state) []state {
	p := s.points[s.pos]
	switch p.kind {
	case calledPoint:
		o := &s.ops[p.op]
		switch {
		case s.fails(p.op):
			if s.model.busy(st.holds, o) {
				st.seen = including(st.seen, p.op)
			}
		case !s.strict && o.op == Release && o.outcome == certain && !s.rewrites(st, o) && !s.splits(st, o):
			// The sooner the better, as nobody asks who holds.
			if next, ok := s.release(st, o); ok {
				next.done = including(next.done, p.op)
				st = next
			}
		}
		return append(to, st)
	case returnedPoint:
		return s.returned(to, st, p.op)
	case closingPoint:
		return s.closing(to, st, p.op)
	case endingPoint:
		return s.ending(to, st, p.op)
	case crashPoint:
		return append(to, s.crash(st, p.op))
	case expiredPoint:
		return s.expired(to, st, p.op)
	}
	return s.use(to, st, p.op)
}

func (s *searcher) returned(to []state, st state, op int32) []state {
	o := &s.ops[op]
	switch {
	case s.fails(op) && has(st.seen, op):
		st.seen = without(st.seen, op)
		return append(to, st)
	case s.fails(op):
	case o.outcome != certain:
		return append(to, st)
	case has(st.done, op):
		st.done = without(st.done, op)
		return append(to, st)
	}
	return s.reach(to, st, op)
}

// goal returns the state after the point at which the search is, if that can be reached from st at once.
func (s *searcher) goal(st state, op int32) (state, bool) {
	o := &s.ops[op]
	switch kind := s.points[s.pos].kind; {
	case kind == usePoint:
		if !st.got(o.actor, o.token) {
			return st, false
		}
		st.accepted = o.token
		return st, true
	case kind == endingPoint:
		was := st.uses(o.reserve) > 0
		if i := slices.IndexFunc(st.holds, func(h held) bool { return h.grant == op }); i >= 0 {
			h := st.holds[i]
			st = st.taking(h.actor, h.reading, -h.count, h.grant)
		}
		return st, was
	case s.fails(op):
		busy := has(st.seen, op)
		st.seen = without(st.seen, op)
		return st, busy
	case has(st.done, op): // on the way to something else
		st.done = without(st.done, op)
		return st, true
	}
	return s.effect(st, op)
}
