package linear

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"time"
)

// The naive oracle: it follows every state in which a lock can be, event by
// event, and knows nothing of windows, accounts or necessary holds. Where
// docs/checker.md and this file differ, one of them is wrong; neither was
// derived from the code.

// A naiveSpec is the oracle's own description of a specification, so that it
// can judge by ones which the code does not have.
type naiveSpec struct {
	kind   naiveKind
	limit  int // of reentrant: 0 for none; of semaphore: the permits
	expiry Expiry
}

type naiveKind uint8

const (
	naiveMutex naiveKind = iota
	naiveReentrant
	naiveLease
	naiveFenced
	naiveMulti
	naiveSemaphore
	naiveMutexTokens
	naiveReadWrite
	naiveServed // a mutex of which the server tells when a lease ended
)

func (s naiveSpec) String() string {
	switch s.kind {
	case naiveReentrant:
		return fmt.Sprintf("reentrant(%d)", s.limit)
	case naiveLease:
		return "lease(" + [...]string{"believed", "known", "not-known"}[s.expiry] + ")"
	case naiveSemaphore:
		return fmt.Sprintf("semaphore(%d)", s.limit)
	}
	return [...]string{"mutex", "", "", "fenced", "multi", "", "mutex-tokens", "read-write", "lease(by-server)"}[s.kind]
}

func (s naiveSpec) leases() bool  { return s.kind == naiveLease || s.kind == naiveFenced }
func (s naiveSpec) extends() bool { return s.leases() || s.kind == naiveServed }
func (s naiveSpec) tokens() bool  { return s.kind == naiveFenced || s.kind == naiveMutexTokens }

// sharp says whether leases end at their end and not later.
func (s naiveSpec) sharp() bool { return s.kind == naiveLease && s.expiry == Known }

const (
	naiveClients = 8  // clients of a history, at most
	naiveOps     = 12 // operations that are open at once, at most
	orphan       = 99 // owns what a crash has left
)

// A naiveEvent is an Event in small numbers. Clients count from 1.
type naiveEvent struct {
	time, lease int64
	client      int8
	phase       Phase
	op          Op
	keys        uint8 // of Multi: a bit for each
	shared      bool
	permits     int8
	token       int16
}

// How a grant may end by itself.
type ending uint8

const (
	stays     ending = iota // it does not
	atAnyTime               // at any time, or never
	fromEnd                 // at its end or later, or never
	atEnd                   // at its end
	byEnd                   // at any time, but at its end at the latest
)

// A naiveState is one in which everything can be after some events.
type naiveState struct {
	owner [4]int8  // of each key; all but Multi have one; of ReadWrite the writer
	by    [4]uint8 // Multi: by which list
	count int8     // how often the owner has it
	parts [naiveClients + 1]int8
	// permits or reads of each client; [0] are those of nobody

	ending ending // of the latest grant
	end    int64

	last, accepted int16
	given          [naiveClients + 1]uint64 // bits of tokens
	returned       [naiveClients + 1]int16  // the largest of those told

	ops [naiveOps]naiveOp // sorted; the open ones come last
}

// A naiveOp is an operation whose effect is to come or whose outcome is.
type naiveOp struct {
	client  int8
	op      Op
	keys    uint8
	shared  bool
	permits int8
	over    bool  // no return will come: outcome unknown
	taken   bool  // it has taken effect
	latest  bool  // and its grant is there still
	under   bool  // of an extend: the grant that it was called under is still the latest
	soft    bool  // of an extend: its effect was to make that grant's end unsharp
	busy    bool  // of a try: there was an instant to be told busy
	dead    bool  // its client crashed since its call, so what it takes may be nobody's
	late    bool  // a release of before took effect after its call, which ok forbids
	owes    bool  // a use was accepted that only its ok explains
	token   int16 // that it gave
}

func (o *naiveOp) rank() uint64 {
	r := uint64(o.client)<<56 | uint64(o.op)<<52 | uint64(o.keys)<<48 | uint64(o.permits)<<40 | uint64(uint16(o.token))<<16
	for i, b := range [...]bool{o.shared, o.over, o.taken, o.latest, o.under, o.soft, o.busy, o.dead, o.late, o.owes} {
		if b {
			r |= 1 << i
		}
	}
	return r
}

func (s *naiveState) sort() {
	var ranks [naiveOps]uint64
	for i := range s.ops {
		if s.ops[i] != (naiveOp{}) {
			ranks[i] = s.ops[i].rank()
		}
	}
	for i := 1; i < naiveOps; i++ {
		for j := i; j > 0 && ranks[j] < ranks[j-1]; j-- {
			ranks[j], ranks[j-1] = ranks[j-1], ranks[j]
			s.ops[j], s.ops[j-1] = s.ops[j-1], s.ops[j]
		}
	}
}

func (s *naiveState) none() { // nobody owns the key of all but Multi
	s.owner[0], s.count, s.ending, s.end = 0, 0, stays, 0
	for i := range s.ops {
		if p := &s.ops[i]; p.under && p.over {
			*p = naiveOp{} // an extend that can do nothing any more
		} else {
			p.latest, p.under = false, false
		}
	}
}

func (s *naiveState) grant(op int, c int8, e ending) {
	s.none()
	s.owner[0], s.count, s.ending = c, 1, e
	s.ops[op].latest = true
}

// underWay returns the operation of the client that is under way.
func (s *naiveState) underWay(client int8, keys uint8) int {
	for i := range s.ops {
		if o := &s.ops[i]; o.client == client && !o.over && o.keys == keys {
			return i
		}
	}
	return -1
}

type naiveOracle struct {
	spec     naiveSpec
	strict   bool
	maxToken int16 // the largest of the history
	most     int   // states that are followed; 0 means all
}

type naiveSet map[naiveState]struct{}

func (o *naiveOracle) begin() naiveSet { return naiveSet{naiveState{}: {}} }

// grow returns every state that the lock may be in just before an event at
// that time: whatever can take effect may have, in any order.
func (o *naiveOracle) grow(from naiveSet, before int64) naiveSet {
	all := make(naiveSet, 2*len(from))
	work := make([]naiveState, 0, 2*len(from))
	visit := func(s naiveState) {
		for i := range s.ops {
			if p := &s.ops[i]; o.strict && p.op == TryAcquire && !p.over && !p.taken && !p.busy {
				p.busy = o.busy(&s, p)
			}
		}
		s.sort()
		if _, seen := all[s]; !seen {
			all[s] = struct{}{}
			work = append(work, s)
		}
	}
	for s := range from {
		visit(s)
	}
	for len(work) > 0 && (o.most == 0 || len(all) <= o.most) {
		s := work[len(work)-1]
		work = work[:len(work)-1]
		for i := range s.ops {
			if s.ops[i].client != 0 && !s.ops[i].taken {
				o.effect(s, i, visit)
			}
		}
		o.ends(s, before, visit)
	}
	return all
}

// ends visits what comes of s by itself: leases expire and orphans end.
func (o *naiveOracle) ends(s naiveState, before int64, visit func(naiveState)) {
	for k := range s.owner {
		if s.owner[k] != orphan {
			continue
		}
		next := s
		if o.spec.kind == naiveMulti {
			next.owner[k], next.by[k] = 0, 0
		} else {
			next.none()
		}
		visit(next)
	}
	if s.parts[0] > 0 {
		next := s
		next.parts[0]--
		visit(next)
	}
	expires := s.ending == atAnyTime || s.ending == byEnd || (s.ending == fromEnd || s.ending == atEnd) && s.end <= before
	if s.owner[0] != 0 && expires && o.spec.leases() {
		s.none()
		visit(s)
	}
}

// fits says whether an acquire can take effect.
func (o *naiveOracle) fits(s *naiveState, p *naiveOp) bool {
	switch o.spec.kind {
	case naiveReentrant:
		return s.owner[0] == 0 || s.owner[0] == p.client && (o.spec.limit < 1 || int(s.count) < o.spec.limit)
	case naiveMulti:
		for k := range s.owner {
			if p.keys>>k&1 == 1 && s.owner[k] != 0 {
				return false
			}
		}
		return true
	case naiveSemaphore:
		sum := 0
		for _, n := range s.parts {
			sum += int(n)
		}
		return sum+int(p.permits) <= o.spec.limit
	case naiveReadWrite:
		if p.shared || s.owner[0] == p.client {
			return s.owner[0] == 0 || s.owner[0] == p.client
		}
		return s.owner[0] == 0 && s.parts == [naiveClients + 1]int8{}
	}
	return s.owner[0] == 0
}

// busy says whether a try can be told busy now.
func (o *naiveOracle) busy(s *naiveState, p *naiveOp) bool {
	switch o.spec.kind {
	case naiveMulti, naiveSemaphore, naiveReadWrite:
		return !o.fits(s, p)
	}
	return s.owner[0] != 0
}

// effect visits what comes of s when operation i takes effect, if it can.
func (o *naiveOracle) effect(s naiveState, i int, visit func(naiveState)) {
	p := &s.ops[i]
	o.effectOf(s, i, p.client, visit)
	if p.dead && (p.op == Acquire || p.op == TryAcquire) {
		o.effectOf(s, i, orphan, visit)
	}
}

// effectOf is effect, with what is taken being c's.
func (o *naiveOracle) effectOf(s naiveState, i int, c int8, visit func(naiveState)) {
	p := &s.ops[i]
	before := *p
	part := c
	if c == orphan {
		part = 0
	}
	done := func() {
		if before.over {
			s.ops[i] = naiveOp{}
		} else {
			s.ops[i].taken, s.ops[i].busy = true, false
		}
		visit(s)
	}
	switch p.op {
	case Acquire, TryAcquire:
		by := *p
		by.client = c
		if !o.fits(&s, &by) {
			return
		}
		switch o.spec.kind {
		case naiveMulti:
			for k := range s.owner {
				if p.keys>>k&1 == 1 {
					s.owner[k], s.by[k] = c, p.keys
				}
			}
		case naiveSemaphore:
			s.parts[part] += p.permits
		case naiveReadWrite:
			if p.shared {
				s.parts[part]++
			} else {
				s.owner[0], s.count = c, s.count+1
			}
		case naiveReentrant:
			s.owner[0], s.count = c, s.count+1
		case naiveLease, naiveFenced:
			s.grant(i, c, atAnyTime) // if it is told ok, its return forbids that
		default:
			s.owner[0], s.count = c, 1
		}
		if !o.spec.tokens() {
			done()
			return
		}
		without := s
		for t := without.last + 1; t <= max(without.last+1, o.maxToken); t++ {
			s = without
			s.last, s.ops[i].token = t, t
			if t < 64 {
				s.given[before.client] |= 1 << t
			}
			done()
		}
	case Release:
		switch o.spec.kind {
		case naiveMulti:
			for k := range s.owner {
				if p.keys>>k&1 == 1 {
					if s.owner[k] != c || s.by[k] != p.keys {
						return
					}
					s.owner[k], s.by[k] = 0, 0
				}
			}
		case naiveSemaphore:
			if s.parts[c] < p.permits {
				return
			}
			s.parts[c] -= p.permits
		default:
			switch {
			case o.spec.kind == naiveReadWrite && p.shared:
				if s.parts[c] == 0 {
					return
				}
				s.parts[c]--
			case s.owner[0] == c:
				if s.count--; s.count == 0 {
					s.none()
				}
			case o.spec.kind != naiveFenced || p.over:
				return
			}
		}
		if before.over { // its client has gone on since: that may yet be forbidden
			if k := s.underWay(c, before.keys); k >= 0 && s.ops[k].op != Release {
				s.ops[k].late = true
			}
		}
		done()
	case Extend:
		if s.owner[0] != c {
			return
		}
		if o.spec.sharp() && s.ending == atEnd && !p.soft && p.under {
			next := s
			next.ending = fromEnd
			if p.over {
				next.ops[i] = naiveOp{}
			} else {
				next.ops[i].soft = true
			}
			visit(next)
		}
		if p.over || p.soft {
			return
		}
		// As if told ok: of unknown outcome it takes nothing from the grant before.
		s.grant(i, c, stays)
		done()
	}
}

// step returns the states after an event, of those just before it.
func (o *naiveOracle) step(before naiveSet, e naiveEvent) naiveSet {
	after := make(naiveSet, len(before))
	for s := range before {
		if o.survives(&s, e) {
			s.sort()
			after[s] = struct{}{}
		}
	}
	return after
}

// explains says whether any state of a grown set survives an event, which is all there is to ask of the last one.
func (o *naiveOracle) explains(before naiveSet, e naiveEvent) bool {
	for s := range before {
		if o.survives(&s, e) {
			return true
		}
	}
	return false
}

// survives says whether the event is possible in a state, and makes that what it is after it.
func (o *naiveOracle) survives(s *naiveState, e naiveEvent) bool {
	if (s.ending == atEnd || s.ending == byEnd) && s.owner[0] != 0 && s.end <= e.time {
		return false // that grant was over by now
	}
	return o.event(s, e)
}

func (o *naiveOracle) event(s *naiveState, e naiveEvent) bool {
	c := e.client
	switch e.phase {
	case Invoke:
		p := naiveOp{client: c, op: e.op, keys: e.keys, shared: e.shared, permits: e.permits}
		p.under = e.op == Extend && s.owner[0] == c
		if s.ops[0].client != 0 {
			panic("naive oracle: too many operations are open")
		}
		s.ops[0] = p
		return true
	case Expired:
		if s.owner[0] == c {
			s.none()
		}
		return true
	case Crash:
		for i := range s.ops {
			if p := &s.ops[i]; p.client == c && !p.over && !o.unknown(s, p) {
				return false
			}
		}
		o.crash(s, c)
		return true
	}
	if e.op == Use {
		return e.phase == ReturnFail || o.use(s, c, e.token)
	}
	i := s.underWay(c, e.keys)
	if i < 0 || s.ops[i].op != e.op {
		panic("naive oracle: a return without its call")
	}
	p := &s.ops[i]
	switch e.phase {
	case ReturnFail:
		if p.taken || p.soft || p.owes || o.strict && p.op == TryAcquire && !p.busy {
			return false
		}
		*p = naiveOp{}
		return true
	case ReturnUnknown:
		return o.unknown(s, p)
	}
	return o.ok(s, p, e)
}

// unknown is for an operation whose return says nothing, or will not come.
func (o *naiveOracle) unknown(s *naiveState, p *naiveOp) bool {
	switch {
	case p.owes:
		return false
	case p.op == Extend && p.taken:
		return false // it takes nothing from the grant before: the state without it stays
	}
	if p.taken || p.soft || p.op == Extend && !(o.spec.sharp() && p.under) {
		*p = naiveOp{}
		return true
	}
	p.over, p.late, p.busy = true, false, false
	return true
}

// forget ends the windows of a client's releases of unknown outcome.
func (s *naiveState) forget(client int8, keys uint8) {
	for i := range s.ops {
		if p := &s.ops[i]; p.client == client && p.keys == keys && p.op == Release && p.over {
			*p = naiveOp{}
		}
	}
}

func (o *naiveOracle) ok(s *naiveState, p *naiveOp, e naiveEvent) bool {
	c := p.client
	if p.op == Release {
		if !p.taken {
			return false
		}
		*p = naiveOp{}
		return true
	}
	leased := e.lease != 0 && !(o.spec.kind == naiveLease && o.spec.expiry == NotKnown)
	stale := o.spec.leases() && leased && e.lease <= e.time
	fenced := o.spec.kind == naiveFenced
	if stale && p.op == Extend {
		return o.unknown(s, p)
	}
	if stale && !fenced {
		if o.spec.sharp() {
			if p.latest {
				return false
			}
			*p = naiveOp{}
			return true
		}
		return o.unknown(s, p)
	}
	if !p.taken || p.token != e.token && o.spec.tokens() && p.op != Extend {
		return false
	}
	if o.spec.tokens() && p.op != Extend {
		s.returned[c] = max(s.returned[c], e.token)
	}
	if !stale {
		if p.late {
			return false
		}
		s.forget(c, p.keys)
	}
	if o.spec.leases() {
		if !p.latest && !(fenced && p.op != Extend && (stale || e.lease == 0)) {
			return false // a grant outlives its return
		}
		if p.latest {
			s.ending, s.end = atAnyTime, 0
			if leased && !stale {
				s.ending, s.end = fromEnd, e.lease
				if o.spec.sharp() {
					s.ending = atEnd
				}
			}
		}
	}
	*p = naiveOp{}
	return true
}

func (o *naiveOracle) use(s *naiveState, c int8, t int16) bool {
	if t < s.accepted {
		return false
	}
	s.accepted = t
	if t < 64 && s.given[c]>>t&1 == 1 || t <= s.returned[c] {
		return true
	}
	for i := range s.ops {
		if p := &s.ops[i]; p.client == c && p.taken && !p.over && p.op != Release && p.token >= t {
			p.owes = true
			return true
		}
	}
	return false
}

func (o *naiveOracle) crash(s *naiveState, c int8) {
	for i := range s.ops {
		if p := &s.ops[i]; p.client == c {
			p.dead = true
		}
	}
	for k := range s.owner {
		if s.owner[k] != c {
			continue
		}
		end, ending := s.end, atAnyTime
		if s.ending == atEnd {
			ending = byEnd
		} else {
			end = 0
		}
		if o.spec.kind == naiveMulti {
			s.owner[k], s.by[k] = 0, 0
		} else {
			s.none()
		}
		s.owner[k] = orphan
		if o.spec.leases() {
			s.ending, s.end = ending, end
		}
	}
	n := s.parts[c]
	s.parts[c] = 0
	if o.spec.kind == naiveReadWrite {
		n = min(n, 1) // the reads of one client end at once
	}
	s.parts[0] += n
}

// naive says whether a history has an order.
func naive(spec naiveSpec, events []Event, strict bool) bool {
	return naiveLegal(spec, naively(events), strict)
}

func naiveLegal(spec naiveSpec, events []naiveEvent, strict bool) bool {
	legal, _ := naiveWithin(spec, events, strict, math.MaxInt)
	return legal
}

// naiveWithin is naiveLegal, unless there are more than so many states at once: then it is lost.
func naiveWithin(spec naiveSpec, events []naiveEvent, strict bool, most int) (legal, lost bool) {
	o := naiveOracle{spec: spec, strict: strict, most: most}
	for _, e := range events {
		o.maxToken = max(o.maxToken, e.token)
	}
	set := o.begin()
	for _, e := range events {
		grown := o.grow(set, e.time)
		if len(grown) > most {
			return false, true
		}
		if set = o.step(grown, e); len(set) == 0 {
			return false, false
		}
	}
	return true, false
}

// naively returns events as the oracle takes them.
func naively(events []Event) []naiveEvent {
	var clients, keys []string
	index := func(of *[]string, name string) int {
		if i := slices.Index(*of, name); i >= 0 {
			return i
		}
		*of = append(*of, name)
		return len(*of) - 1
	}
	out := make([]naiveEvent, len(events))
	for i, e := range events {
		n := &out[i]
		*n = naiveEvent{time: int64(e.Time), lease: int64(e.Lease), phase: e.Phase, op: e.Op, token: int16(e.Token), permits: int8(max(e.Permits, 1)), shared: e.Shared}
		n.client = int8(index(&clients, e.Client) + 1)
		for _, k := range strings.Fields(e.Key) {
			n.keys |= 1 << index(&keys, k)
		}
		if e.Token < 0 || e.Token > 63 {
			panic("naive oracle: a token that is no bit")
		}
		if len(clients) > naiveClients || len(keys) > 4 {
			panic("naive oracle: too many clients or keys")
		}
	}
	return out
}

// naiveCertain says whether a history is illegal under every shift of each
// event's time by at most skew, with each client's own order kept. Lease ends
// shift with the return that told them. It tries every order of events and
// lease ends that some shifts make.
func naiveCertain(spec naiveSpec, events []Event, strict bool, skew time.Duration) bool {
	return !naiveShifts(spec, naively(events), strict, int64(skew))
}

// A naivePoint is an event, or the end of the lease that it tells.
type naivePoint struct {
	event int
	end   bool
}

func naiveShifts(spec naiveSpec, events []naiveEvent, strict bool, skew int64) bool {
	var points []naivePoint
	for i, e := range events {
		points = append(points, naivePoint{event: i})
		if e.lease > e.time && spec.leases() && (spec.kind == naiveFenced || spec.expiry != NotKnown) {
			points = append(points, naivePoint{event: i, end: true})
		}
	}
	var order []naivePoint
	used := make([]bool, len(points))
	var try func() bool
	try = func() bool {
		if len(order) == len(points) {
			return naiveLegal(spec, ranked(events, order), strict)
		}
	next:
		for i, p := range points {
			if used[i] {
				continue
			}
			for j, q := range points[:i] { // a client's own order, and ends after their returns
				if !used[j] && !q.end && events[q.event].client == events[p.event].client && (!p.end || q.event == p.event) {
					continue next
				}
			}
			used[i] = true
			order = append(order, p)
			found := shiftable(events, order, skew) && try()
			order = order[:len(order)-1]
			used[i] = false
			if found {
				return true
			}
		}
		return false
	}
	return try()
}

// ranked returns the events in that order, their times and ends being their
// places in it.
func ranked(events []naiveEvent, order []naivePoint) []naiveEvent {
	at := make(map[naivePoint]int64, len(order))
	for i, p := range order {
		at[p] = int64(i + 1)
	}
	var out []naiveEvent
	for _, p := range order {
		if p.end {
			continue
		}
		e := events[p.event]
		if end, ok := at[naivePoint{p.event, true}]; ok {
			e.lease = end
		} else if e.lease != 0 {
			e.lease = at[p] // stale, or ignored
		}
		e.time = at[p]
		out = append(out, e)
	}
	return out
}

// shiftable says whether some shifts put the points in that order: a system of
// differences, and whether it has a solution (Bellman and Ford). Points at one
// time are in order if both are events in the order given, or if the first is the
// end of a lease, which is over at that time.
func shiftable(events []naiveEvent, order []naivePoint, skew int64) bool {
	const fine = 64 // more than there are points: a strict order costs 1 of it
	n := len(order)
	at := make([]int64, n) // the earliest that is possible
	recorded := make([]int64, n)
	where := make(map[naivePoint]int, n)
	for i, p := range order {
		recorded[i] = events[p.event].time * fine
		if p.end {
			recorded[i] = events[p.event].lease * fine
		}
		at[i] = recorded[i] - skew*fine
		where[p] = i
	}
	for range n + 2 {
		changed := false
		raise := func(i int, to int64) {
			if at[i] < to {
				at[i], changed = to, true
			}
		}
		for i := range order {
			p := order[i]
			if i > 0 {
				q, gap := order[i-1], int64(0)
				if p.end && !q.end || !p.end && !q.end && p.event < q.event {
					gap = 1
				}
				raise(i, at[i-1]+gap)
			}
			if p.end {
				if j, ok := where[naivePoint{event: p.event}]; ok {
					raise(i, at[j]+recorded[i]-recorded[j])
					raise(j, at[i]+recorded[j]-recorded[i])
				}
			}
			if at[i] > recorded[i]+skew*fine {
				return false
			}
		}
		if !changed {
			return true
		}
	}
	return false
}
