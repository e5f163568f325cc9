package linear

import (
	"math"
	"slices"
)

// The maximum number of states of a search: initially, plus typically for each point of the
// history. A search that exceeds the maximum leaves the question open.
const (
	typically = 64
	initially = 1 << 21
)

// A searcher searches a legal order of a compiled history: depth first, point by point, with a memo
// of visited states (Wing and Gong; Lowe). An operation takes effect only when it is needed: at its
// own return, or before a return for which it makes room. docs/checker.md proves that this is
// enough.
type searcher struct {
	*compiled
	traits
	model     model
	strict    bool
	rough     bool      // some operation has several permits
	unit      bool      // a semaphore whose operations all have one permit
	sure      [][]int32 // by actor: its operations with the outcome ok, if unit is set
	plain     []bool    // by actor: the outcomes of all its operations are known
	several   bool      // an operation may have several permits or keys
	takes     []int32   // the reserve acquires
	bulk      []int32   // those with several permits or keys, or such releases, or with shares
	least     []int64   // by point: the smallest token returned by an acquire from there on
	last      []int32   // by actor: the last point about it
	symmetric []int32   // by reserve: its group of interchangeable acquires, or -1
	tried     []int32   // by group: the round in which a member was tried
	round     int32

	pos   int32
	under []int32 // by actor: the operation under way, or -1
	open  []int32 // operations under way
	watch []int32 // the tries among them that must find the lock taken

	frames   []frame
	been     memo
	furthest int32 // the furthest point that no order explains, or -1
	budget   int

	cur     state // the state from which run continues
	deepest int32 // the furthest point reached
	then    int   // the budget at that time
	sweep   sweep

	out  []state
	more *walk   // further states after those in out, on demand
	idle []*walk // walks for reuse
	buf  []byte
}

// A frame is a point with several successor states.
type frame struct {
	pos   int32
	tried state // the successor that was tried last
	rest  []state
	more  *walk // the successors after rest
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

// run continues the search until it knows whether a legal order exists, or has visited patience
// states without progress. Without a legal order, refuted is the first point that no order
// explains. lost reports that the answer is unknown; run may be called again unless the budget is
// used up.
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

// back returns the next untried state: of the latest frame, unless a sweep chooses another. Untried
// states may be followed in any order, and a state need not be followed if an earlier one is at
// least as good.
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

// A sweep visits the frames from the last to earlier ones when a search makes no progress, and
// follows each for a while. The wrong choice may be in an early frame, and no later choice can
// correct it.
type sweep struct {
	next  int // the next frame, and the frames before it
	until int // the budget at which the sweep moves on
	leash int // number of states for which each frame is followed
	reach int32
}

// restless is the number of states without progress after which a sweep begins.
var restless = 1 << 12

// choose returns the frame to continue from.
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

// advance and retreat move over one point.
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

// fails reports whether op is a try that must find the lock taken.
func (s *searcher) fails(op int32) bool {
	o := &s.ops[op]
	return s.strict && o.op == TryAcquire && o.outcome == failed
}

// noteFailedTries records which tries find the lock taken in st.
func (s *searcher) noteFailedTries(st state) state {
	for _, t := range s.watch {
		if !has(st.seen, t) && s.model.busy(st.holds, &s.ops[t]) {
			st.seen = including(st.seen, t)
		}
	}
	return st
}

// after appends the states of legal orders after the next point, those with the fewest effects
// first.
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
			// A release may take effect at once, because no busy result depends on the hold.
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

// goal returns the state after the current point, if st reaches it directly.
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
	case has(st.done, op): // taken effect on the way to another goal
		st.done = without(st.done, op)
		return st, true
	}
	return s.effect(st, op)
}
