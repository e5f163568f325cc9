package linear

import (
	"cmp"
	"encoding/binary"
	"math"
	"slices"
	"strings"
	"time"
)

// How much of one lock a search follows before it gives up, which leaves the
// question open: so many states at a time, and so many steps an event on
// average, not counting the first ones. A step is to look at what one client can
// do in one state.
const (
	most    = 4096
	average = 4096
	atFirst = 1 << 22
)

// forever is the end of a grant that does not end by itself, and anytime that of
// one that may end as soon as it has begun.
const (
	forever = time.Duration(math.MaxInt64)
	anytime = time.Duration(math.MinInt64)
)

// A search follows every state in which a lock can be after the events so far,
// whatever took effect in whatever order. It settles what the rules leave open,
// at many times their cost. Where nothing is strict, what it need not try is
// left out: an acquire takes effect just before its return, and one of unknown
// outcome just before a release or extend of its client.
type search struct {
	spec      Spec
	strict    bool
	limit     int64
	parties   []party
	index     map[place]int32
	active    []int32 // parties with an operation under way or to spare
	states    []state
	returning int32 // the party whose acquire returns now, or -1
	now       time.Duration
	budget    int // how many more steps may be taken

	lost  bool   // there were too many states
	dead  bool   // no state is left, so the events up to refuted have no order
	at    int64  // the place of refuted
	about *Event // refuted
}

type place struct{ client, key string }

// A party is one client at one lock, or at one list of a Multi.
type party struct {
	client  string
	keys    []string // of a Multi
	op      Op
	called  time.Duration
	permits int64
	spares  []spare
}

// A spare is an operation of unknown outcome, or several alike: each may take
// effect once.
type spare struct {
	release bool
	permits int64
	total   int64
}

// A state is what each party has, ordered by party and spare. Parties that have
// nothing are left out.
type state []entry

// An entry with spare 0 is what a party holds; others say how many of its
// spare operations, counted from 1, have taken effect.
type entry struct {
	party, spare int32
	n            int64
	until        time.Duration // from then on a hold may be over
	marks        marks
}

type marks uint8

const (
	done    marks = 1 << iota // the operation under way has taken effect
	seen                      // the try under way has found the lock taken
	late                      // a spare release took effect during the acquire or extend under way
	sure                      // at until the hold is over
	overdue                   // it was not, which the extend under way must explain by an unknown outcome
	lapsed                    // what the acquire under way was granted was lost, so its outcome must be unknown
)

func newSearch(spec Spec, limit int32, strict bool) *search {
	return &search{spec: spec, strict: strict, limit: int64(limit), index: map[place]int32{}, states: []state{nil}, returning: -1, budget: atFirst}
}

func (s *search) party(client, key string) int32 {
	p, ok := s.index[place{client, key}]
	if !ok {
		p = int32(len(s.parties))
		s.index[place{client, key}] = p
		s.parties = append(s.parties, party{client: client})
		if s.spec.kind == multiKind {
			s.parties[p].keys = strings.Fields(key)
		}
	}
	return p
}

// find returns where the entry is or would be.
func (st state) find(p, spare int32) (int, bool) {
	return slices.BinarySearchFunc(st, entry{party: p, spare: spare}, func(a, b entry) int {
		return cmp.Or(cmp.Compare(a.party, b.party), cmp.Compare(a.spare, b.spare))
	})
}

// get returns an entry; one that is not there has nothing.
func (st state) get(p, spare int32) entry {
	if i, ok := st.find(p, spare); ok {
		return st[i]
	}
	return entry{party: p, spare: spare, until: forever}
}

// with returns a state in which one entry is another.
func (st state) with(e entry) state {
	if e.n == 0 {
		e.until, e.marks = forever, e.marks&^sure
	}
	i, ok := st.find(e.party, e.spare)
	next := make(state, 0, len(st)+1)
	next = append(next, st[:i]...)
	if e.n != 0 || e.marks != 0 {
		next = append(next, e)
	}
	if ok {
		i++
	}
	return append(next, st[i:]...)
}

// taken returns how many permits, or times, are held that stand in the way of p.
func (s *search) taken(st state, p int32) int64 {
	sum := int64(0)
	for i := range st {
		e := &st[i]
		if e.spare != 0 || e.n == 0 {
			continue
		}
		if s.spec.kind == multiKind {
			other := s.parties[e.party].keys
			if !slices.ContainsFunc(s.parties[p].keys, func(key string) bool { return slices.Contains(other, key) }) {
				continue
			}
		}
		sum += e.n
	}
	return sum
}

// room says whether p can acquire.
func (s *search) room(st state, p int32, permits int64) bool {
	taken := s.taken(st, p)
	if s.spec.kind == semaphoreKind {
		return taken+permits <= s.limit
	}
	own := int64(0)
	if s.spec.kind == reentrantKind {
		own = st.get(p, 0).n
	}
	return taken == own && own < s.limit
}

// look notes whose try finds the lock taken.
func (s *search) look(st state) state {
	if !s.strict {
		return st
	}
	for _, p := range s.active {
		pt := &s.parties[p]
		if pt.op != TryAcquire {
			continue
		}
		taken := s.taken(st, p)
		if s.spec.kind == semaphoreKind && taken+pt.permits <= s.limit || s.spec.kind != semaphoreKind && taken == 0 {
			continue
		}
		if h := st.get(p, 0); h.marks&seen == 0 {
			h.marks |= seen
			st = st.with(h)
		}
	}
	return st
}

// moves calls add with each state to which one operation leads that may take
// effect now.
func (s *search) moves(st state, add func(state)) {
	for _, p := range s.active {
		pt := &s.parties[p]
		h := st.get(p, 0)
		pending := h.marks&done == 0
		acquires := s.strict || s.spec.kind == semaphoreKind && slices.ContainsFunc(pt.spares, func(sp spare) bool { return sp.release && sp.total > 0 })
		switch after := h; pt.op {
		case Acquire, TryAcquire:
			if pending && (s.strict || p == s.returning) && s.room(st, p, pt.permits) {
				add(st.with(h.taking(pt.permits, done)))
			}
		case Release:
			acquires = acquires || pending
			if pending && h.n >= pt.permits {
				after.n -= pt.permits
				after.marks |= done
				add(st.with(after))
			}
		case Extend:
			acquires = acquires || pending
			if pending && h.n > 0 {
				add(st.with(h.taking(0, done)))
			}
		}
		for i, sp := range pt.spares {
			used := st.get(p, int32(i+1))
			if used.n >= sp.total {
				continue
			}
			used.n++
			switch after := h; {
			case !sp.release && acquires && s.room(st, p, sp.permits):
				h := h.taking(sp.permits, 0)
				if s.spec.kind == leaseKind {
					h.until = anytime
				}
				add(st.with(h).with(used))
			case sp.release && h.n >= sp.permits:
				after.n -= sp.permits
				if pt.op != 0 && pt.op != Release {
					after.marks |= late
				}
				add(st.with(after).with(used))
			}
		}
	}
	for _, e := range st {
		if e.spare != 0 || e.n == 0 || e.marks&sure != 0 {
			continue
		}
		if s.strict && s.granted(e) {
			e.marks |= lapsed
		} else if e.until > s.now {
			continue
		}
		e.n = 0
		add(st.with(e))
	}
}

// granted says whether a lease is held by the acquire under way.
func (s *search) granted(e entry) bool {
	op := s.parties[e.party].op
	return s.spec.kind == leaseKind && (op == Acquire || op == TryAcquire) && e.marks&done != 0 && e.until == forever
}

// taking returns the hold with so many more, by a grant that has not returned.
func (e entry) taking(permits int64, m marks) entry {
	e.n += permits
	e.until, e.marks = forever, e.marks&^sure|m
	return e
}

// close adds to the states whatever may follow before the next event.
func (s *search) close() {
	b := basket{at: map[string][]int{}}
	for _, st := range s.states {
		b.add(s.look(st))
	}
	for i := 0; i < len(b.states); i++ {
		if b.states[i].gone {
			continue
		}
		s.moves(b.states[i].state, func(st state) { b.add(s.look(st)) })
		if s.budget -= 1 + len(s.active); b.live > most || s.budget < 0 {
			s.giveUp()
			return
		}
	}
	s.budget += average
	s.states = s.states[:0]
	for _, st := range b.states {
		if !st.gone {
			s.states = append(s.states, st.state)
		}
	}
}

func (s *search) giveUp() {
	s.lost, s.states, s.parties, s.active, s.index = true, nil, nil, nil, nil
}

// A basket has states of which none makes another needless.
type basket struct {
	states []struct {
		state
		gone bool
	}
	live int
	at   map[string][]int // states that hold the same
	key  []byte
}

// add puts a state in, unless one is there that holds the same, has no less to
// spare, and has seen no less.
func (b *basket) add(st state) {
	b.key = b.key[:0]
	for i := range st {
		if e := &st[i]; e.spare == 0 && (e.n != 0 || e.marks&^seen != 0) {
			b.key = binary.AppendVarint(b.key, int64(e.party))
			b.key = binary.AppendVarint(b.key, e.n)
			b.key = binary.AppendVarint(b.key, int64(e.until))
			b.key = append(b.key, byte(e.marks&^seen))
		}
	}
	same := b.at[string(b.key)]
	kept := same[:0]
	for _, i := range same {
		if covers(b.states[i].state, st) {
			return
		}
	}
	for _, i := range same {
		if covers(st, b.states[i].state) {
			b.states[i].gone = true
			b.live--
		} else {
			kept = append(kept, i)
		}
	}
	b.at[string(b.key)] = append(kept, len(b.states))
	b.states = append(b.states, struct {
		state
		gone bool
	}{state: st})
	b.live++
}

// covers says whether a, which holds what b does, can do whatever b can.
func covers(a, b state) bool {
	for _, e := range a {
		if e.spare != 0 && b.get(e.party, e.spare).n < e.n {
			return false
		}
	}
	for _, e := range b {
		if e.marks&seen != 0 && a.get(e.party, 0).marks&seen == 0 {
			return false
		}
	}
	return true
}

// keep drops the states that an event refutes, and changes the others by it.
func (s *search) keep(e *Event, seq int64, change func(st state) (state, bool)) {
	b := basket{at: map[string][]int{}}
	for _, st := range s.states {
		if next, ok := change(st); ok {
			b.add(next)
		}
	}
	s.states = s.states[:0]
	for _, st := range b.states {
		if !st.gone {
			s.states = append(s.states, st.state)
		}
	}
	if len(s.states) == 0 {
		about := *e
		s.dead, s.at, s.about = true, seq, &about
	}
}

// over ends the holds whose end has come for sure.
func (s *search) over(e *Event, seq int64) {
	due := func(st state) bool {
		return slices.ContainsFunc(st, func(e entry) bool { return e.marks&sure != 0 && e.until <= s.now })
	}
	if s.spec.kind != leaseKind || s.spec.expiry != Known || !slices.ContainsFunc(s.states, due) {
		return
	}
	s.close() // what was under way may have come first
	var all []state
	for _, st := range s.states {
		all = append(all, s.ended(st)...)
	}
	s.states = all
}

// ended returns the states that st becomes when the ends that are due have
// come: several if an extend under way may turn out to be of unknown outcome.
func (s *search) ended(st state) []state {
	all := []state{st}
	for _, e := range st {
		if e.marks&sure == 0 || e.until > s.now {
			continue
		}
		pt := &s.parties[e.party]
		for i := range all {
			if pt.op == Extend && pt.called < e.until {
				stays := e
				stays.marks = stays.marks&^sure | overdue
				all = append(all, all[i].with(stays))
			}
			gone := e
			gone.n = 0
			all[i] = all[i].with(gone)
		}
	}
	return all
}

// add judges the next event of party p, which is event seq of all.
func (s *search) add(p int32, e *Event, seq int64, permits int64) {
	if s.lost || s.dead {
		return
	}
	s.now = e.Time
	s.over(e, seq)
	if s.lost || s.dead {
		return
	}
	pt := &s.parties[p]
	if e.Phase == Invoke {
		if e.Op != Release && slices.ContainsFunc(pt.spares, func(sp spare) bool { return sp.release && sp.total > 0 }) {
			if s.close(); s.lost { // before the call, whose outcome may forbid it later
				return
			}
		}
		pt.op, pt.called, pt.permits = e.Op, e.Time, permits
		s.enlist(p)
		for i := range s.states {
			s.states[i] = s.look(s.states[i])
		}
		return
	}
	s.returning = p
	s.close()
	s.returning = -1
	if !s.lost {
		s.returned(p, e, seq)
	}
}

func (s *search) enlist(p int32) {
	if !slices.Contains(s.active, p) {
		s.active = append(s.active, p)
	}
}

// returned judges the return of p's operation.
func (s *search) returned(p int32, e *Event, seq int64) {
	pt := &s.parties[p]
	op := pt.op
	stale := op != Release && e.Phase == ReturnOK && s.spec.stale(e)
	// What is told of a grant that was over before the client heard of it is
	// worth no more than an unknown outcome.
	effect := e.Phase == ReturnOK && !stale
	maybe := op != Extend && (e.Phase == ReturnUnknown || stale)
	s.keep(e, seq, func(st state) (state, bool) {
		h := st.get(p, 0)
		was := h.marks
		own := s.granted(h)
		h.marks &^= done | seen | late | overdue | lapsed
		switch {
		case effect && was&(done|lapsed) != done, !effect && !maybe && was&done != 0:
			return nil, false
		case op != Release && was&late != 0 && (op == Extend && e.Phase == ReturnOK || op != Extend && e.Phase != ReturnFail):
			return nil, false // a release came too late
		case was&overdue != 0 && (op != Extend || e.Phase != ReturnUnknown && !stale):
			return nil, false
		case s.strict && op == TryAcquire && e.Phase == ReturnFail && was&seen == 0:
			return nil, false
		}
		switch {
		case op == Release || s.spec.kind != leaseKind:
		case effect:
			h.until = s.spec.lease(e)
			if s.spec.expiry == Known && e.Lease != 0 {
				h.marks |= sure
			}
		case op == Extend && (e.Phase == ReturnUnknown || stale) && pt.called < h.until:
			h.marks &^= sure
		case own && maybe && stale && s.spec.expiry == Known:
			h.n = 0
		case own && maybe:
			h.until = anytime
		}
		if maybe && was&done != 0 && (!stale || s.spec.expiry != Known) {
			// Of its kind there is one more below, and this one is used.
			used := st.get(p, s.kind(p, op == Release, pt.permits))
			used.n++
			return st.with(h).with(used), true
		}
		return st.with(h), true
	})
	if maybe && (!stale || s.spec.expiry != Known) {
		pt.spares[s.kind(p, op == Release, pt.permits)-1].total++
	}
	if op == Extend && e.Phase == ReturnOK || (op == Acquire || op == TryAcquire) && e.Phase != ReturnFail {
		s.forget(p)
	}
	pt.op = 0
	s.settle(p)
}

// kind returns which spare of p is of this kind, from 1.
func (s *search) kind(p int32, release bool, permits int64) int32 {
	pt := &s.parties[p]
	i := slices.IndexFunc(pt.spares, func(sp spare) bool { return sp.release == release && sp.permits == permits })
	if i < 0 {
		i = len(pt.spares)
		pt.spares = append(pt.spares, spare{release, permits, 0})
	}
	return int32(i + 1)
}

// forget drops p's spare releases, whose time is over.
func (s *search) forget(p int32) {
	pt := &s.parties[p]
	for i := range pt.spares {
		if !pt.spares[i].release {
			continue
		}
		pt.spares[i].total = 0
		for j, st := range s.states {
			if used := st.get(p, int32(i+1)); used.n > 0 {
				used.n = 0
				s.states[j] = st.with(used)
			}
		}
	}
}

// settle forgets the spare operations of p that have taken effect in every
// state, and takes p off the list if it has none left.
func (s *search) settle(p int32) {
	pt := &s.parties[p]
	left := pt.op != 0
	for i := range pt.spares {
		sp := &pt.spares[i]
		least := sp.total
		for _, st := range s.states {
			least = min(least, st.get(p, int32(i+1)).n)
		}
		if least > 0 {
			sp.total -= least
			for j, st := range s.states {
				used := st.get(p, int32(i+1))
				used.n -= least
				s.states[j] = st.with(used)
			}
		}
		left = left || sp.total > 0
	}
	if !left {
		s.active = slices.DeleteFunc(s.active, func(q int32) bool { return p == q })
	}
}

// crash ends what party p held and had under way.
func (s *search) crash(p int32, e *Event, seq int64) {
	if s.lost || s.dead {
		return
	}
	s.now = e.Time
	s.over(e, seq)
	if s.lost || s.dead {
		return
	}
	s.close()
	if s.lost {
		return
	}
	pt := &s.parties[p]
	op := pt.op
	s.keep(e, seq, func(st state) (state, bool) {
		h := st.get(p, 0)
		was := h.marks
		h.n, h.marks = 0, 0
		switch {
		case (op == Acquire || op == TryAcquire) && was&late != 0:
			return nil, false
		case op != 0 && op != Extend && was&done != 0:
			used := st.get(p, s.kind(p, op == Release, pt.permits))
			used.n++
			return st.with(h).with(used), true
		}
		return st.with(h), true
	})
	if op != 0 && op != Extend {
		pt.spares[s.kind(p, op == Release, pt.permits)-1].total++
	}
	if op == Acquire || op == TryAcquire {
		s.forget(p)
	}
	pt.op = 0
	s.settle(p)
}

// end judges what only the end of the history, event e, can tell.
func (s *search) end(e *Event, seq int64) {
	if s.lost || s.dead {
		return
	}
	s.keep(e, seq, func(st state) (state, bool) {
		return st, !slices.ContainsFunc(st, func(e entry) bool {
			op := s.parties[e.party].op
			return e.marks&late != 0 && (op == Acquire || op == TryAcquire)
		})
	})
}

// searches are the searches of all locks.
type searches struct {
	spec   Spec
	limit  int32
	strict bool
	keys   map[string]*search // of a Multi one, with no name
	of     map[string][]part  // by client
	last   Event
	seq    int64
}

// A part is what one client has to do with one search.
type part struct {
	search *search
	party  int32
}

func newSearches(spec Spec, limit int32, strict bool) *searches {
	return &searches{spec: spec, limit: limit, strict: strict, keys: map[string]*search{}, of: map[string][]part{}}
}

func (all *searches) add(e *Event, seq int64) {
	all.last, all.seq = *e, seq
	if e.Phase == Crash {
		for _, part := range all.of[e.Client] {
			part.search.crash(part.party, e, seq)
		}
		return
	}
	key := e.Key
	if all.spec.kind == multiKind {
		key = ""
	}
	s := all.keys[key]
	if s == nil {
		s = newSearch(all.spec, all.limit, all.strict)
		all.keys[key] = s
	}
	if s.lost || s.dead {
		return
	}
	permits := int64(1)
	if all.spec.kind == semaphoreKind {
		permits = max(1, min(int64(e.Permits), math.MaxInt32))
	}
	known := len(s.parties)
	p := s.party(e.Client, e.Key)
	if len(s.parties) > known {
		all.of[e.Client] = append(all.of[e.Client], part{s, p})
	}
	s.add(p, e, seq, permits)
}

// A refutation is the first event at which a lock has no order left.
type refutation struct {
	key   string
	seq   int64
	event *Event
}

// settle says what the searches found, in the order of the events, and whether
// one gave up.
func (all *searches) settle() (refuted []refutation, lost bool) {
	for key, s := range all.keys {
		s.end(&all.last, all.seq)
		lost = lost || s.lost
		if s.dead {
			refuted = append(refuted, refutation{key, s.at, s.about})
		}
	}
	slices.SortFunc(refuted, func(a, b refutation) int { return cmp.Or(cmp.Compare(a.seq, b.seq), cmp.Compare(a.key, b.key)) })
	return refuted, lost
}
