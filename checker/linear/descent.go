package linear

import (
	"iter"
	"math"
	"slices"
	"sort"
	"strings"
)

// How long a search goes on before it gives up, which leaves the question open: so
// many states for each point of the history, not counting the first ones.
const (
	typically = 512
	initially = 1 << 20
)

// A descent looks for a legal order of a compiled history: depth first, point by point, and what has
// been found to lead nowhere is remembered (Wing and Gong; Lowe). Nothing takes effect before it is
// needed: at an operation's return it itself, and before that what makes room for it. docs/checker.md
// says why that is enough.
type descent struct {
	*compiled
	traits
	model   model
	strict  bool
	rough   bool      // an operation is about several permits
	unit    bool      // a semaphore's, and none is
	sure    [][]int32 // by actor: its operations of which the outcome is ok, if it is about such permits
	plain   []bool    // by actor: of all its operations the outcome is known
	several bool      // an operation may be about several permits or keys
	takes   []int32   // the reserve acquires
	bulk    []int32   // of them those of several, or of who releases several, or of writing
	least   []int64   // by point: the least token that an acquire returned which was called there or later
	last    []int32   // by actor: the last point that is about it
	alike   []int32   // by reserve: which are acquired alike, if nothing else is ever asked of their actors; or -1
	tried   []int32   // by which are alike: the round in which one was tried
	round   int32

	pos   int32
	under []int32 // by actor: the operation under way, or -1
	open  []int32 // operations under way
	watch []int32 // of them the tries that must find the lock taken

	frames   []frame
	trail    []visit // since the first frame, where the search has been before
	dead     hopeless
	furthest int32 // the furthest point that no order explains, or -1
	budget   int

	out  []instant
	more *walk   // states that come after those in out, on demand
	idle []*walk // to be used again
	buf  []byte
}

// A visit is a state at a point.
type visit struct {
	pos   int32
	state instant
}

// A frame is a point with several states after it.
type frame struct {
	pos   int32
	trail int
	tried instant // the last of them that was tried
	rest  []instant
	more  *walk // what comes after the rest
}

func newDescent(spec Spec, strict bool, c *compiled) *descent {
	s := &descent{
		compiled: c, traits: spec.traits(), model: spec.model(c.actors), strict: strict,
		under:    make([]int32, len(c.actors)),
		dead:     hopeless{},
		furthest: -1,
		budget:   initially + typically*len(c.points),
	}
	for i := range s.under {
		s.under[i] = -1
	}
	s.likes()
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

// run returns whether there is a legal order; if there is none, refuted is the
// first point that no order explains. lost says that it gave up.
func (s *descent) run() (legal bool, refuted int32, lost bool) {
	cur := instant{}
	for int(s.pos) < len(s.points) {
		next := s.out[:0]
		known := false
		if s.pos <= s.furthest {
			if known = !s.hopes(s.pos, cur); !known {
				s.trail = append(s.trail, visit{s.pos, cur})
			}
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
			s.frames = append(s.frames, frame{s.pos, len(s.trail), next[0], slices.Clone(next[1:]), s.more})
		}
		cur = next[0]
		s.advance()
	}
	return true, -1, false
}

func appendPos(to []byte, pos int32) []byte {
	return append(to, byte(pos), byte(pos>>8), byte(pos>>16), byte(pos>>24))
}

// back returns to the latest state that has another one after it.
func (s *descent) back() (instant, bool) {
	for len(s.frames) > 0 {
		f := &s.frames[len(s.frames)-1]
		for _, v := range s.trail[f.trail:] {
			s.bury(v.pos, v.state)
		}
		s.bury(f.pos+1, f.tried)
		s.trail = s.trail[:f.trail]
		for s.pos > f.pos {
			s.retreat()
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
		s.frames = s.frames[:len(s.frames)-1]
	}
	return instant{}, false
}

// advance and retreat go over one point.
func (s *descent) advance() {
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

func (s *descent) retreat() {
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

func (s *descent) enter(op int32) {
	if op < 0 {
		return
	}
	s.under[s.ops[op].actor] = op
	s.open = append(s.open, op)
	if s.fails(op) {
		s.watch = append(s.watch, op)
	}
}

func (s *descent) leave(op int32) {
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
func (s *descent) fails(op int32) bool {
	o := &s.ops[op]
	return s.strict && o.op == TryAcquire && o.outcome == failed
}

// look notes which tries find the lock taken.
func (s *descent) look(st instant) instant {
	for _, t := range s.watch {
		if !has(st.seen, t) && s.model.busy(st.holds, &s.ops[t]) {
			st.seen = including(st.seen, t)
		}
	}
	return st
}

// after appends the states in which a legal order may be after the next point, those first
// that give least away.
func (s *descent) after(to []instant, st instant) []instant {
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

func (s *descent) returned(to []instant, st instant, op int32) []instant {
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
func (s *descent) goal(st instant, op int32) (instant, bool) {
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

// effect lets a certain operation take effect.
func (s *descent) effect(st instant, op int32) (instant, bool) {
	o := &s.ops[op]
	switch o.op {
	case Release:
		return s.release(st, o)
	case Extend:
		i, ok := st.held(o.actor, o.reading)
		if !ok {
			return st, false
		}
		if s.leases {
			st.holds = slices.Clone(st.holds)
			st.holds[i].grant = op
		}
		return st, true
	}
	return s.acquire(st, op)
}

func (s *descent) acquire(st instant, op int32) (instant, bool) {
	o := &s.ops[op]
	if !s.model.room(st.holds, o) {
		return st, false
	}
	if s.tokens && o.token != 0 {
		if o.token <= st.last || slices.ContainsFunc(s.open, func(other int32) bool { return s.sooner(st, other, o.token) }) {
			return st, false
		}
		st = s.giving(st, gift{o.actor, true, o.token})
	}
	if s.tokens && o.token == 0 { // it may have been any
		last := st.last
		st = s.giving(st, gift{o.actor, true, math.MaxInt64})
		st.last = last
	}
	grant := int32(atOnce)
	if s.leases {
		grant = op
	}
	return s.look(st.taking(o.actor, o.reading, o.permits, grant)), true
}

// sooner says whether op is an acquire under way that must take effect before one that is
// given this token.
func (s *descent) sooner(st instant, op int32, token int64) bool {
	o := &s.ops[op]
	return o.outcome == certain && (o.op == Acquire || o.op == TryAcquire) && o.token != 0 && o.token < token && !has(st.done, op)
}

func (s *descent) release(st instant, o *operation) (instant, bool) {
	i, ok := st.held(o.actor, o.reading)
	if !ok || st.holds[i].count < o.permits {
		return st, s.lax
	}
	return s.less(st, o.actor, o.reading, -o.permits, st.holds[i].grant), true
}

// less is taking, where less is held: then who reads and wrote before can write no more.
func (s *descent) less(st instant, actor int32, reading bool, n, grant int32) instant {
	st = st.taking(actor, reading, n, grant)
	if s.shares {
		st = s.look(st)
	}
	return st
}

// closing lets releases of unknown outcome take effect whose time is over.
func (s *descent) closing(to []instant, st instant, reserve int32) []instant {
	sp := &s.reserves[reserve]
	like := &s.ops[sp.like]
	first := len(to)
	to = append(to, st.forgetting(reserve))
	before := st
	s.repeat(st, func(st instant, add func(instant)) {
		// What is over now may be what an acquire of unknown outcome took: several permits, or a
		// lock whose token is used later, or of which somebody is told.
		unseen := slices.ContainsFunc(s.watch, func(t int32) bool { return !has(st.seen, t) })
		useless := false // it has acquired, and nobody has seen the lock taken who had not before
		if s.unit {
			if unseen {
				s.fill(st, add)
			}
			useless = len(st.seen) == len(before.seen) && out(st.holds)+int64(st.uses(reserve)) != out(before.holds)+int64(before.uses(reserve))
		} else if s.rough || unseen || s.rewrites(st, like) || s.tokens && s.due(st, math.MaxInt64) {
			s.moves(st, sp.like, true, add)
		}
		if i, ok := st.held(like.actor, like.reading); ok && st.holds[i].count >= like.permits && sp.open(s.pos) > st.uses(reserve) {
			next := s.less(st, like.actor, like.reading, -like.permits, st.holds[i].grant).using(reserve)
			if !useless {
				to = append(to, next.forgetting(reserve))
			}
			add(next)
		}
	})
	if m, ok := s.model.(single); ok && m.limit == 1 && s.acquires() {
		slices.Reverse(to[first:]) // who acquires once more must have released
	} else if s.unit && len(to) > first+1 {
		to[first], to[first+1] = to[first+1], to[first] // mostly has released
	}
	return to
}

// acquires says whether what is called next is an acquire.
func (s *descent) acquires() bool {
	for _, p := range s.points[s.pos:] {
		if p.kind == calledPoint {
			return s.ops[p.op].op != Extend
		}
	}
	return false
}

// ending lets what was granted end, unless its owner does something before.
func (s *descent) ending(to []instant, st instant, grant int32) []instant {
	i := slices.IndexFunc(st.holds, func(h held) bool { return h.grant == grant })
	if i < 0 {
		to = append(to, st)
		reserve := s.ops[grant].reserve
		if reserve < 0 || st.uses(reserve) > 0 || !slices.ContainsFunc(s.watch, func(t int32) bool { return !has(st.seen, t) }) {
			return to
		}
		// It may have been held for a while, and somebody told so.
		return s.reach(to, st, grant)
	}
	h := st.holds[i]
	if op := s.under[h.actor]; op >= 0 && s.ops[op].outcome == certain && !has(st.done, op) && (s.ops[op].op == Release || s.ops[op].op == Extend) {
		if next, ok := s.effect(st, op); ok {
			next.done = including(next.done, op)
			to = append(to, next)
		}
	}
	return append(to, st.taking(h.actor, h.reading, -h.count, h.grant))
}

// crash lets an actor's holds be nobody's.
func (s *descent) crash(st instant, p int32) instant {
	for _, reading := range []bool{false, true} {
		i, ok := st.held(p, reading)
		if !ok {
			continue
		}
		h := st.holds[i]
		st = st.taking(p, reading, -h.count, h.grant)
		if !s.strict {
			continue // they may as well end
		}
		for _, nobody := range s.actors[p].orphans {
			st = st.taking(nobody, reading, h.count, h.grant)
		}
	}
	return st
}

func (s *descent) use(to []instant, st instant, op int32) []instant {
	o := &s.ops[op]
	if o.token < st.accepted {
		return to
	}
	return s.reach(to, st, op)
}

// reach appends the first state in which the goal is reached from st by what may take effect now, and leaves the others,
// those first that need least, to a walk. op is what the goal is about.
func (s *descent) reach(to []instant, st instant, op int32) []instant {
	next, ok := s.goal(st, op)
	needy := s.needy(st, op, ok)
	filling := s.unit && s.ops[op].op == Release && len(s.watch) > 0 && s.mayFill(st)
	if ok && !needy && !filling {
		return append(to, next)
	}
	w := s.walk(st, op)
	w.needy = needy || filling
	if filling && ok && !needy {
		// Only that all permits are out, which those see who are to be told busy, is of use before.
		to = append(to, next)
		w.filling, w.unseen = true, len(st.seen)
	}
	if len(to) == 0 {
		next, ok := s.found(w)
		if ok {
			to = append(to, next)
		}
		if !ok || w.over() {
			s.end(w)
			return to
		}
	}
	s.more = w
	return to
}

// fill calls add with each state to which an acquire leads, those first that must take effect before their clients'
// next release returns, then those of which the outcome is known.
func (s *descent) fill(st instant, add func(instant)) {
	for i := range s.others(st) {
		if s.owed(st, s.ops[s.reserves[i].like].actor) {
			s.reserve1(st, i, add)
		}
	}
	for _, u := range s.open {
		if a := &s.ops[u]; a.outcome == certain && (a.op == Acquire || a.op == TryAcquire) && !has(st.done, u) && s.first(st, u) {
			s.early(st, u, add)
		}
	}
	for i := range s.others(st) {
		s.reserve1(st, i, add)
	}
}

// owed says whether the next that an actor does with a known outcome is a release of what it does not have.
func (s *descent) owed(st instant, actor int32) bool {
	sure := s.sure[actor]
	i := sort.Search(len(sure), func(i int) bool { return s.ops[sure[i]].ret >= s.pos && !has(st.done, sure[i]) })
	return i < len(sure) && s.ops[sure[i]].op == Release && st.count(actor, false) < s.ops[sure[i]].permits
}

// repeat visits st and whatever visit adds, each state once, those first that took least.
func (s *descent) repeat(st instant, visit func(st instant, add func(instant))) {
	w := s.walk(st, -1)
	for w.at < len(w.queue) && s.budget >= 0 {
		st := w.queue[w.at]
		w.at++
		visit(st, w.add)
	}
	s.end(w)
}

// needy says whether something else should take effect before op, which can at once if ok, because later it may not
// be able to any more. That is a release under way that an acquire of unknown outcome must explain; of tokens what gave a
// smaller one that is known; what takes several permits or keys, of which only some are left when somebody is
// told busy, or a write lock beside which its client reads; and a release of several permits, of which only some are
// left once others of its client's are released.
func (s *descent) needy(st instant, op int32, ok bool) bool {
	for _, other := range s.open {
		if other != op && s.unexplained(st, other) {
			return true
		}
	}
	o := &s.ops[op]
	acquire := o.op == Acquire || o.op == TryAcquire
	if s.rewrites(st, o) {
		return true
	}
	if acquire && o.outcome == certain && (s.strict && s.several || s.counted || s.shares) &&
		slices.ContainsFunc(s.bulk, func(sp int32) bool {
			return s.reserves[sp].open(s.pos) > st.uses(sp) && (!s.shares || s.strict || s.ops[s.reserves[sp].like].actor == o.actor)
		}) {
		return true
	}
	if s.splits(st, o) {
		return true
	}
	if s.rough && len(s.watch) > 0 && o.op != Extend && s.mayFill(st) {
		return true
	}
	if !s.tokens || ok && !acquire && o.op != Extend {
		return false
	}
	before := int64(math.MaxInt64) // tokens below it may have to be given first
	if acquire && o.token != 0 {
		before = o.token
	} else if slices.ContainsFunc(s.open, func(other int32) bool { return other != op && s.sooner(st, other, before) }) {
		return true
	}
	return s.due(st, before)
}

// rewrites says whether o releases what its client writes, while it may have acquired that once more, which it
// cannot later if it reads beside.
func (s *descent) rewrites(st instant, o *operation) bool {
	return s.shares && o.op == Release && !o.reading && slices.ContainsFunc(s.actors[o.actor].acquires, func(sp int32) bool {
		return !s.ops[s.reserves[sp].like].reading && s.reserves[sp].open(s.pos) > st.uses(sp)
	})
}

// splits says whether o releases some of what its client holds, while it may have released several at once, which
// it cannot later if too few are left.
func (s *descent) splits(st instant, o *operation) bool {
	return s.rough && o.op == Release && slices.ContainsFunc(s.gives(o.actor), func(sp int32) bool {
		return s.ops[s.reserves[sp].like].permits > 1 && s.reserves[sp].open(s.pos) > st.uses(sp)
	})
}

// gives are an actor's reserve releases whose time is not over.
func (s *descent) gives(actor int32) []int32 {
	all := s.actors[actor].releases
	from := sort.Search(len(all), func(i int) bool { return s.reserves[all[i]].end > s.pos }) // they are in the order in which they end
	to := from
	for to < len(all) && s.reserves[all[to]].calls[0] < s.pos {
		to++
	}
	return all[from:to]
}

// due says whether an acquire of unknown outcome may have to give a token below before.
func (s *descent) due(st instant, before int64) bool {
	before = min(before, s.least[s.pos])
	return slices.ContainsFunc(s.takes, func(i int32) bool {
		sp := &s.reserves[i]
		if sp.open(s.pos) == 0 {
			return false
		}
		actor := s.ops[sp.like].actor
		used := s.actors[actor].used
		if next, _ := slices.BinarySearch(used, st.last+1); next < len(used) && used[next] < before {
			return true
		}
		// One that may return yet makes smaller tokens good, too.
		return sp.yet && st.last+1 < before && slices.ContainsFunc(used, func(t int64) bool { return !st.got(actor, t) })
	})
}

// mayFill says whether a try under way that must find no permit left, and has not yet, might find so
// if all took effect that can.
func (s *descent) mayFill(st instant) bool {
	sum := out(st.holds)
	for _, u := range s.open {
		if a := &s.ops[u]; a.outcome == certain && (a.op == Acquire || a.op == TryAcquire) && !has(st.done, u) {
			sum += int64(a.permits)
		}
	}
	for _, i := range s.takes {
		sum += int64(s.ops[s.reserves[i].like].permits) * int64(max(0, s.reserves[i].open(s.pos)-st.uses(i)))
	}
	return slices.ContainsFunc(s.watch, func(t int32) bool {
		return !has(st.seen, t) && sum+int64(s.ops[t].permits) > s.model.(permitted).n
	})
}

// unexplained says whether op is a release under way whose client holds too little for it.
func (s *descent) unexplained(st instant, op int32) bool {
	o := &s.ops[op]
	if o.op != Release || o.outcome != certain || has(st.done, op) || len(s.actors[o.actor].acquires) == 0 || s.lax {
		return false
	}
	return st.count(o.actor, o.reading) < o.permits
}

// moves calls add with each state to which one move leads that may help to reach a goal about op.
func (s *descent) moves(st instant, op int32, needy bool, add func(instant)) {
	o := &s.ops[op]
	all := needy
	switch {
	case o.op == Use:
		if u := s.under[o.actor]; u >= 0 && s.ops[u].outcome == certain && !has(st.done, u) && s.ops[u].token >= o.token {
			s.early(st, u, add)
		}
		s.reserve(st, o.actor, add)
		all = true
	case s.fails(op) && s.unit:
		s.fill(st, add) // to release makes nobody busy
	case s.fails(op):
		short := false
		for _, u := range s.open {
			if a := &s.ops[u]; a.outcome == certain && (a.op == Acquire || a.op == TryAcquire) && !has(st.done, u) && s.first(st, u) {
				if s.model.room(st.holds, a) {
					s.early(st, u, add)
				} else {
					short = true
				}
			}
		}
		for i := range s.others(st) {
			if a := &s.ops[s.reserves[i].like]; s.reserves[i].open(s.pos) > st.uses(i) {
				s.reserve1(st, i, add)
				short = short || !s.model.room(st.holds, a) || len(s.actors[a.actor].crashes) > 0
			}
		}
		all = all || short || s.shares // who writes no more and reads still cannot write
	case o.op == Release || o.op == Extend:
		s.reserve(st, o.actor, add)
		for i := range st.holds {
			h := &st.holds[i]
			if slices.ContainsFunc(s.actors[o.actor].acquires, func(sp int32) bool { return s.model.stands(h, &s.ops[s.reserves[sp].like]) }) {
				s.frees(st, h, add)
			}
		}
	default:
		if o.reserve >= 0 {
			s.reserve1(st, o.reserve, add)
		}
		for i := range st.holds {
			if s.model.stands(&st.holds[i], o) {
				s.frees(st, &st.holds[i], add)
			}
		}
	}
	if s.tokens {
		before := int64(math.MaxInt64)
		if o.op == Acquire || o.op == TryAcquire {
			before = o.token
		}
		for _, u := range s.open {
			if u != op && s.sooner(st, u, before) {
				s.early(st, u, add)
			}
		}
	}
	if all {
		for i := range st.holds {
			s.frees(st, &st.holds[i], add)
		}
	}
	if needy {
		for _, u := range s.open {
			if u != op && s.unexplained(st, u) {
				s.reserve(st, s.ops[u].actor, add)
			} else if v := &s.ops[u]; u != op && v.op == Release && v.outcome == certain && !has(st.done, u) && s.first(st, u) {
				s.early(st, u, add)
			}
		}
		s.reserve(st, o.actor, add)
		for i := range s.others(st) {
			if has(s.bulk, i) {
				s.reserve1(st, i, add)
			}
		}
		if s.counted && len(s.watch) > 0 {
			for _, u := range s.open {
				if a := &s.ops[u]; u != op && a.outcome == certain && a.op != Release && !has(st.done, u) && s.first(st, u) {
					s.early(st, u, add)
				}
			}
			for i := range s.others(st) {
				s.reserve1(st, i, add)
			}
		}
		if s.tokens {
			for i := range s.others(st) {
				s.reserve1(st, i, add)
			}
		}
	}
}

// likes says which reserve acquires are alike.
func (s *descent) likes() {
	s.last = make([]int32, len(s.actors))
	for i, p := range s.points {
		actor := p.op
		switch p.kind {
		case crashPoint, expiredPoint:
		case closingPoint:
			actor = s.ops[s.reserves[p.op].like].actor
		default:
			actor = s.ops[p.op].actor
		}
		s.last[actor] = int32(i)
	}
	type shape struct {
		permits      int32
		reading, yet bool
		crashed      bool // since it was called
		keys         string
	}
	shapes := map[shape]int32{}
	s.alike = make([]int32, len(s.reserves))
	for i := range s.reserves {
		sp := &s.reserves[i]
		like := &s.ops[sp.like]
		pt := &s.actors[like.actor]
		s.alike[i] = -1
		if like.op == Release || sp.grant != atOnce || len(pt.acquires) > 1 || len(pt.releases) > 0 || len(sp.calls) > 1 || len(pt.used) > 0 {
			continue
		}
		of := shape{like.permits, like.reading, sp.yet, len(pt.crashes) > 0 && pt.crashes[len(pt.crashes)-1] > sp.calls[0], strings.Join(pt.keys, " ")}
		n, ok := shapes[of]
		if !ok {
			n = int32(len(shapes))
			shapes[of] = n
		}
		s.alike[i] = n
	}
	s.tried = make([]int32, len(shapes))
}

// others are the reserve acquires, of those that are alike one: if nothing more is asked of either of two actors that
// hold nothing, they may as well be each other.
func (s *descent) others(st instant) iter.Seq[int32] {
	return func(yield func(int32) bool) {
		s.round++
		for _, i := range s.takes {
			if n, actor := s.alike[i], s.ops[s.reserves[i].like].actor; n >= 0 && s.last[actor] < s.pos &&
				st.uses(i) == 0 && st.count(actor, false) == 0 && st.count(actor, true) == 0 {
				if s.tried[n] == s.round {
					continue
				}
				s.tried[n] = s.round
			}
			if !yield(i) {
				return
			}
		}
	}
}

// first says whether op, which is under way and certain, is the one of those like it that may take effect now. Of a semaphore whose
// operations are about one permit each, acquires under way are alike, and so are releases by clients of whom all outcomes are
// known: if one takes effect before another that returns earlier, they may as well change places, since nothing else that
// their clients do depends on which of them was.
func (s *descent) first(st instant, op int32) bool {
	o := &s.ops[op]
	if !s.unit || o.op == Release && !s.plain[o.actor] {
		return true
	}
	return !slices.ContainsFunc(s.open, func(u int32) bool {
		other := &s.ops[u]
		return other.outcome == certain && (other.op == Release) == (o.op == Release) && other.ret < o.ret && !has(st.done, u) &&
			(o.op != Release || s.plain[other.actor])
	})
}

// early lets an operation under way take effect.
func (s *descent) early(st instant, op int32, add func(instant)) {
	if next, ok := s.effect(st, op); ok {
		next.done = including(next.done, op)
		add(next)
	}
}

// reserve lets an acquire of unknown outcome of an actor take effect.
func (s *descent) reserve(st instant, p int32, add func(instant)) {
	for _, sp := range s.actors[p].acquires {
		s.reserve1(st, sp, add)
	}
}

// reserve1 lets a reserve acquire take effect.
func (s *descent) reserve1(st instant, reserve int32, add func(instant)) {
	sp := &s.reserves[reserve]
	like := &s.ops[sp.like]
	if sp.open(s.pos) <= st.uses(reserve) || !s.model.room(st.holds, like) {
		return
	}
	next := st.using(reserve)
	with := func(next instant) {
		add(s.look(next.taking(like.actor, like.reading, like.permits, sp.grant)))
		pt := &s.actors[like.actor]
		if i, _ := slices.BinarySearch(pt.crashes, s.pos); i == 0 || pt.crashes[i-1] < sp.calls[0] {
			return
		}
		// Its client had crashed by then.
		nobody := *like
		nobody.actor = pt.orphans[0]
		if !s.tied && !s.model.room(next.holds, &nobody) {
			return
		}
		for _, p := range pt.orphans {
			if s.strict {
				next = next.taking(p, like.reading, like.permits, sp.grant)
			}
		}
		add(s.look(next))
	}
	if !s.tokens {
		with(next)
		return
	}
	with(s.giving(next, gift{like.actor, sp.yet, next.last + 1}))
	used := s.actors[like.actor].used
	first, _ := slices.BinarySearch(used, next.last+2)
	for _, t := range used[first:] {
		if t >= s.least[s.pos] {
			break
		}
		with(s.giving(next, gift{like.actor, sp.yet, t}))
	}
}

// frees lets h be less: by a release or, of a lease, by its end.
func (s *descent) frees(st instant, h *held, add func(instant)) {
	pt := &s.actors[h.actor]
	if op := s.under[h.actor]; op >= 0 && s.ops[op].op == Release && s.ops[op].outcome == certain && s.ops[op].reading == h.reading && !has(st.done, op) && s.first(st, op) {
		if h.count >= s.ops[op].permits {
			s.early(st, op, add)
		} else {
			s.reserve(st, h.actor, add)
		}
	}
	switch {
	case pt.nobody && (s.counted || h.reading):
		add(st.taking(h.actor, h.reading, -1, h.grant))
		return
	case pt.nobody || s.leases && (h.grant == atOnce || s.ops[h.grant].ripe <= s.pos):
		add(st.taking(h.actor, h.reading, -h.count, h.grant))
		return
	}
	for _, r := range s.gives(h.actor) {
		sp := &s.reserves[r]
		like := &s.ops[sp.like]
		if like.reading != h.reading || sp.open(s.pos) <= st.uses(r) {
			continue
		}
		if h.count >= like.permits {
			add(s.less(st, h.actor, h.reading, -like.permits, h.grant).using(r))
		} else {
			s.reserve(st, h.actor, add)
		}
	}
}
