package linear

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/lockfault/lockfault/internal/racetest"
)

// An alphabet says which histories are played for a specification.
type alphabet struct {
	spec    naiveSpec
	strict  bool
	clients int
	events  int
	leases  []int64 // after the return; 0 means none, and a negative number a stale one
	tokens  []int16
	permits []int8
}

// A prefix is a history as far as it goes, and what the oracle makes of it.
type prefix struct {
	events []naiveEvent
	told   [2][]Event // the same, as Check is given it; of several keys also with each having the other's name
	set    naiveSet   // the states after it; nil if nothing comes after it
	live   int64      // the latest end of a lease
	used   int8       // clients
	named  bool       // the keys of a Multi have been told from each other
}

// next calls visit with each event that may come next. The time of an event
// matters only while a lease lasts, so there are gaps only then.
func (a *alphabet) next(p *prefix, visit func(naiveEvent)) {
	now := int64(1)
	if n := len(p.events); n > 0 {
		now = p.events[n-1].time
	}
	gaps := int64(0)
	if a.spec.leases() && p.live > now {
		gaps = 1
	}
	for gap := int64(0); gap <= gaps; gap++ {
		for c := int8(1); c <= min(p.used+1, int8(a.clients)); c++ {
			a.of(p, c, now+gap, visit)
		}
	}
}

// of calls visit with each event of client c that may come next.
func (a *alphabet) of(p *prefix, c int8, now int64, visit func(naiveEvent)) {
	var open []naiveEvent
	for _, e := range p.events {
		switch {
		case e.client != c || e.op == Use || e.phase == Expired:
		case e.phase == Crash:
			open = nil
		case e.phase == Invoke:
			open = append(open, e)
		default:
			open = slices.DeleteFunc(open, func(o naiveEvent) bool { return o.keys == e.keys })
		}
	}
	for _, o := range open {
		e := o
		e.time = now
		e.phase = ReturnFail
		visit(e)
		e.phase = ReturnUnknown
		visit(e)
		e.phase = ReturnOK
		if o.op == Release {
			visit(e)
			continue
		}
		leases, tokens := []int64{0}, []int16{0}
		if a.spec.leases() {
			leases = a.leases
		}
		if a.spec.tokens() && o.op != Extend {
			tokens = a.tokens
		}
		for _, l := range leases {
			if e.lease = 0; l != 0 {
				e.lease = now + max(l, 0)
			}
			for _, e.token = range tokens {
				visit(e)
			}
		}
	}
	calls := []naiveEvent{{op: Acquire}, {op: Release}}
	if a.strict {
		calls[0].op = TryAcquire // an acquire differs only in that its fail says nothing
	}
	switch a.spec.kind {
	case naiveLease, naiveFenced, naiveServed:
		calls = append(calls, naiveEvent{op: Extend})
	case naiveMulti:
		lists := []uint8{1, 3, 2}
		if !p.named {
			lists = lists[:2] // the other naming is that of player.play
		}
		calls = with(calls, lists, func(e *naiveEvent, k uint8) { e.keys = k })
	case naiveReadWrite:
		calls = with(calls, []bool{false, true}, func(e *naiveEvent, b bool) { e.shared = b })
	}
	if a.spec.kind == naiveSemaphore {
		calls = with(calls, a.permits, func(e *naiveEvent, n int8) { e.permits = n })
	}
	for _, e := range calls {
		if !slices.ContainsFunc(open, func(o naiveEvent) bool { return o.keys == e.keys }) {
			e.time, e.client, e.phase, e.permits = now, c, Invoke, max(e.permits, 1)
			visit(e)
		}
	}
	if c > p.used {
		return // a client's first event is a call: before that nothing of it can end
	}
	visit(naiveEvent{time: now, client: c, phase: Crash})
	if a.spec.kind == naiveServed {
		visit(naiveEvent{time: now, client: c, phase: Expired})
	}
	if a.spec.tokens() {
		for _, t := range a.tokens {
			visit(naiveEvent{time: now, client: c, phase: ReturnOK, op: Use, token: t})
		}
	}
}

func with[T any](calls []naiveEvent, values []T, set func(*naiveEvent, T)) []naiveEvent {
	var out []naiveEvent
	for _, e := range calls {
		for _, v := range values {
			set(&e, v)
			out = append(out, e)
		}
	}
	return out
}

// A player extends histories and compares.
type player struct {
	alphabet
	oracle naiveOracle
	check  func(events []Event, legal bool)
	played int
	legal  int

	part, parts int // of the prefixes of so many events, the part-th of parts is played: all if parts is zero
	cut         int // prefixes that were met
}

// partsAt is the length of the prefixes that parts share out.
const partsAt = 4

func newPlayer(a alphabet, check func([]Event, bool)) *player {
	o := naiveOracle{spec: a.spec, strict: a.strict}
	if a.spec.tokens() {
		o.maxToken = slices.Max(a.tokens)
	}
	return &player{alphabet: a, oracle: o, check: check}
}

// begin returns the empty history. All that grow from it share its storage: one at a time is played.
func (p *player) begin() *prefix {
	h := &prefix{set: p.oracle.begin(), events: make([]naiveEvent, 0, p.events)}
	for i := range h.told {
		h.told[i] = make([]Event, 0, p.events)
	}
	return h
}

// play judges h with one event more, which is the last if there are enough.
func (p *player) play(h *prefix, e naiveEvent, grown naiveSet) *prefix {
	next := &prefix{
		events: append(h.events, e), told: h.told,
		live: max(h.live, e.lease), used: max(h.used, e.client), named: h.named || e.keys == 1,
	}
	for i := range p.namings() {
		next.told[i] = append(h.told[i], eventOf(e, len(next.events)))
		e.keys = e.keys&1<<1 | e.keys>>1
	}
	legal := false
	if len(next.events) == p.alphabet.events {
		legal = p.oracle.explains(grown, e)
	} else {
		next.set = p.oracle.step(grown, e)
		legal = len(next.set) > 0
	}
	if len(next.events) < partsAt && p.part > 0 {
		return next // part 0 has it
	}
	if len(next.events) == partsAt && p.parts > 0 {
		if p.cut++; p.cut%p.parts != p.part {
			next.set = nil // nothing is played of it
			return next
		}
	}
	p.played++
	if legal {
		p.legal++
	}
	p.check(next.told[p.played%p.namings()], legal)
	return next
}

// namings is in how many ways keys can be named. A list of them is told in the order of their names, so it may make a difference:
// histories are told in each in turn.
func (p *player) namings() int {
	if p.spec.kind == naiveMulti {
		return 2
	}
	return 1
}

// all plays every continuation of h. What has no state left is not continued.
func (p *player) all(h *prefix) {
	var grown naiveSet
	at := int64(-1)
	p.next(h, func(e naiveEvent) {
		if e.time != at {
			grown, at = p.oracle.grow(h.set, e.time), e.time
		}
		if n := p.play(h, e, grown); len(n.set) > 0 {
			p.all(n)
		}
	})
}

// eventOf returns what Check is given as the event of a line.
func eventOf(n naiveEvent, line int) Event {
	e := Event{
		Time: time.Duration(n.time) * time.Second, Lease: time.Duration(n.lease) * time.Second, Client: [...]string{"", "A", "B", "C"}[n.client],
		Key: [...]string{"", "x", "y", "x y"}[n.keys], Phase: n.phase, Op: n.op, Shared: n.shared, Token: int64(n.token), Permits: int(n.permits), Line: line,
	}
	if n.phase == Crash || n.phase == Expired || n.op == Use {
		e.Permits = 0
	}
	return e
}

// notation writes a history as parse reads it.
func notation(events []Event) string {
	ops := [...]string{Acquire: "acquire", TryAcquire: "try", Release: "release", Extend: "extend", Use: "use"}
	phases := [...]string{Invoke: "", ReturnOK: " ok", ReturnFail: " fail", ReturnUnknown: " unknown"}
	seconds := func(d time.Duration) string { return strconv.FormatFloat(d.Seconds(), 'f', -1, 64) }
	var out []string
	for _, e := range events {
		s := seconds(e.Time) + " " + e.Client + " "
		switch e.Phase {
		case Crash:
			s += "crash"
		case Expired:
			s += "expired"
		default:
			s += ops[e.Op] + phases[e.Phase]
		}
		if e.Shared {
			s += " shared"
		}
		if e.Key != "" {
			s += " key=" + strings.ReplaceAll(e.Key, " ", "+")
		}
		if e.Token != 0 {
			s += fmt.Sprintf(" token=%d", e.Token)
		}
		if e.Lease != 0 {
			s += " lease=" + seconds(e.Lease)
		}
		if e.Permits > 1 {
			s += fmt.Sprintf(" n=%d", e.Permits)
		}
		out = append(out, s)
	}
	return strings.Join(out, "; ")
}

// A disagreement is of a class: what the two say.
type disagreements struct {
	classes map[string]*disagreement
}

type disagreement struct {
	times   int
	example []Event // a shortest one
}

func (d *disagreements) add(class string, events []Event) {
	if d.classes == nil {
		d.classes = map[string]*disagreement{}
	}
	c := d.classes[class]
	if c == nil {
		c = &disagreement{}
		d.classes[class] = c
	}
	if c.times++; c.example == nil || len(events) < len(c.example) {
		c.example = slices.Clone(events)
	}
}

func (d *disagreements) report(t *testing.T) {
	t.Helper()
	for _, class := range slices.Sorted(maps.Keys(d.classes)) {
		c := d.classes[class]
		t.Errorf("%s: %d times, as in\n\t%s", class, c.times, notation(c.example))
	}
}

// compare compares the oracle with a descent, if that is asked for, and with Check.
func (d *disagreements) compare(spec naiveSpec, strict bool, events []Event, legal, descent bool) {
	code := specOf(spec)
	name := spec.String()
	if strict {
		name += " strict"
	}
	if descent {
		if got, _, lost := newKept(code, strict).judge(events); lost || got != legal {
			d.add(fmt.Sprintf("%s: the oracle says legal=%v, a descent %v", name, legal, got), events)
		}
	}
	if r := Check(code, events, Options{Strict: strict}); legal != (r.Verdict == Valid) || r.Verdict == Unknown {
		d.add(fmt.Sprintf("%s: the oracle says legal=%v, Check %s", name, legal, r.Verdict), events)
	}
}

// alphabets are what is played of each specification: sizes are the most events
// of two and of three clients.
func alphabets() []alphabet {
	specs := []naiveSpec{
		{kind: naiveMutex}, {kind: naiveReentrant}, {kind: naiveReentrant, limit: 2},
		{kind: naiveLease, expiry: Believed}, {kind: naiveLease, expiry: Known}, {kind: naiveLease, expiry: NotKnown},
		{kind: naiveFenced}, {kind: naiveMulti}, {kind: naiveSemaphore, limit: 1}, {kind: naiveSemaphore, limit: 2},
		{kind: naiveMutexTokens}, {kind: naiveReadWrite}, {kind: naiveServed},
	}
	var all []alphabet
	for _, s := range specs {
		for _, strict := range []bool{false, true} {
			a := alphabet{spec: s, strict: strict, leases: []int64{0, 1, 3}, tokens: []int16{1, 2}, permits: []int8{1}}
			if s.kind == naiveLease && s.expiry == NotKnown {
				a.leases = []int64{0}
			}
			if s.kind == naiveSemaphore && s.limit > 1 {
				a.permits = []int8{1, 2}
			}
			all = append(all, a)
		}
	}
	return all
}

// TestEnumerate plays every small history against the oracle, of several keys an eighth of them, another each time.
// The flag -sizes 6,5 plays histories of up to 6 events of two clients and 5 events of three clients;
// the default is 5,4. The flag -spec selects specifications by a part of their name, and -part I/N
// selects part I of N, from 0. The flag -descents 7,6 compares descents up to these sizes only:
// descents take half of the time.
func TestEnumerate(t *testing.T) {
	racetest.Skip(t)
	sizes := sizesOr(t, "sizes", *sizesFlag, [2]int{5, 4})
	deep := sizesOr(t, "descents", *descentsFlag, sizes)
	part, parts := partOf(t, *partFlag)
	for _, a := range alphabets() {
		name := a.spec.String()
		if a.strict {
			name += " strict"
		}
		if !strings.Contains(name, *specFlag) {
			continue
		}
		t.Run(strings.ReplaceAll(name, " ", "-"), func(t *testing.T) {
			t.Parallel()
			part, parts := part, parts
			if parts == 0 && a.spec.kind == naiveMulti && *sizesFlag == "" { // all take as long as all other histories together
				part, parts = rand.IntN(8), 8
				t.Logf("-part %d/%d", part, parts)
			}
			var d disagreements
			defer d.report(t)
			for i, events := range sizes {
				a := a
				a.clients, a.events = i+2, events
				p := newPlayer(a, func(events []Event, legal bool) {
					d.compare(a.spec, a.strict, events, legal, len(events) <= deep[i])
				})
				p.part, p.parts = part, parts
				p.all(p.begin())
				t.Logf("%d clients, up to %d events: %d histories, %d of them legal", a.clients, a.events, p.played, p.legal)
			}
		})
	}
}

// What the oracle and Check say of histories that are too long for TestEnumerate.
func TestDescents(t *testing.T) {
	for _, c := range []struct {
		name    string
		spec    naiveSpec
		strict  bool
		history string
		verdict string
	}{
		{"tokens and exclusion, each by itself", naiveSpec{kind: naiveMutexTokens}, false,
			"0 A acquire; 1 A acquire ok token=1; 2 A release; 3 A release ok; 4 B acquire; 5 B acquire ok token=2; 6 B use ok token=2; 7 B release; 8 B release ok", "valid"},
		{"tokens that go back", naiveSpec{kind: naiveMutexTokens}, false,
			"0 A acquire; 1 A acquire ok token=2; 2 A release; 3 A release ok; 4 B acquire; 5 B acquire ok token=1", "invalid token-order [2]"},
		{"two hold", naiveSpec{kind: naiveMutexTokens}, false,
			"0 A acquire; 1 A acquire ok token=1; 2 B acquire; 3 B acquire ok token=2; 4 A crash", "invalid overlap [2]"},
		{"a token is used before it is returned", naiveSpec{kind: naiveMutexTokens}, false,
			"0 A acquire; 1 A use ok token=3; 2 A acquire ok token=3", "valid"},
		{"an unknown acquire gave a token, and the next is larger", naiveSpec{kind: naiveMutexTokens}, false,
			"0 A acquire; 1 A acquire unknown; 2 B acquire; 3 A release; 4 A release ok; 5 B acquire ok token=5; 6 A use ok token=4; 7 B use ok token=5", "valid"},
		{"an accepted token that is smaller than one before", naiveSpec{kind: naiveMutexTokens}, false,
			"0 A acquire; 1 A acquire ok token=4; 2 A release; 3 A release ok; 4 B acquire; 5 B acquire ok token=5; 6 B use ok token=5; 7 A use ok token=4", "invalid token-back [7]"},
		{"what a crashed client held may last", naiveSpec{kind: naiveMutexTokens}, true,
			"0 A acquire; 1 A acquire ok token=1; 2 A crash; 3 B try; 4 B try fail; 5 B try; 6 B try ok token=2", "valid"},
		{"one unknown acquire, released twice", naiveSpec{kind: naiveMutexTokens}, false,
			"0 A acquire; 1 A acquire unknown; 2 A release; 3 A release ok; 4 A release; 5 A release ok", "invalid not-held [5]"},
		{"the smaller token was given first, and then both held", naiveSpec{kind: naiveMutexTokens}, false,
			"0 A acquire; 1 B acquire; 2 B acquire ok token=5; 3 B release; 4 B release ok; 5 A acquire ok token=3", "invalid no-order [6]"},
		{"readers together", naiveSpec{kind: naiveReadWrite}, false,
			"0 A acquire shared; 1 A acquire ok shared; 2 B acquire shared; 3 B acquire ok shared; 4 A release shared; 5 A release ok shared", "valid"},
		{"a writer beside a reader", naiveSpec{kind: naiveReadWrite}, false,
			"0 A acquire shared; 1 A acquire ok shared; 2 B acquire; 3 B acquire ok", "invalid no-order [4]"},
		{"a writer reads, and goes on reading", naiveSpec{kind: naiveReadWrite}, false,
			"0 A acquire; 1 A acquire ok; 2 A acquire shared; 3 A acquire ok shared; 4 A release; 5 A release ok; 6 B acquire shared; 7 B acquire ok shared", "valid"},
		{"a reader writes", naiveSpec{kind: naiveReadWrite}, false,
			"0 A acquire shared; 1 A acquire ok shared; 2 A acquire; 3 A acquire ok", "invalid no-order [4]"},
		{"a reader is told busy, and nobody can have written", naiveSpec{kind: naiveReadWrite}, true,
			"0 A acquire shared; 1 A acquire ok shared; 2 B try shared; 3 B try fail shared", "invalid no-order [4]"},
	} {
		t.Run(c.name, func(t *testing.T) {
			events := parse(t, c.history)
			r := Check(specOf(c.spec), events, Options{Strict: c.strict})
			got := string(r.Verdict)
			for _, v := range r.Violations {
				got += fmt.Sprintf(" %s [%d]", v.Rule, v.Events[0].Line)
			}
			if got != c.verdict {
				t.Errorf("got %s, want %s", got, c.verdict)
			}
			if legal := naive(c.spec, events, c.strict); legal != (r.Verdict == Valid) {
				t.Errorf("the oracle says legal=%v", legal)
			}
		})
	}
}

// What some shifts of the clocks explain the oracle does not call certain.
func TestShifts(t *testing.T) {
	events := parse(t, "20 A acquire; 21 A acquire ok; 22 A release; 23 A release unknown; 24 B acquire; 25 B acquire ok; 25 B release; 25 B release ok; 80 A release; 90 A release ok")
	for skew, certain := range map[time.Duration]bool{10 * time.Second: false, time.Second: true} {
		if got := naiveCertain(naiveSpec{}, events, false, skew); got != certain {
			t.Errorf("with a skew of %v certain is %v", skew, got)
		}
	}
}
