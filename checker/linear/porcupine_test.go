package linear

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"
	"pgregory.net/rapid"
)

// A world is a state of the sequential specifications, written down once more
// for a general checker.
type world struct {
	owner, count, grant int
	counts              [3]int
	keys                [3]string
	last, accepted      int64
	own                 [3]int64
	used                [3]uint64 // tokens of acquires without a known outcome, as bits
}

// A step is an operation as porcupine gets it.
type step struct {
	what    string // acquire, release, extend, use, crash, expire
	phase   Phase  // ReturnUnknown for what has no known outcome
	client  int    // from 1
	key     string
	grant   int
	permits int
	token   int64
	try     bool
	maybe   []int64 // tokens that an acquire of unknown outcome may have given
}

const never = math.MaxInt64 / 2

// oracle decides by search whether a history is legal.
func oracle(spec Spec, events []Event, strict bool) bool {
	var ops []porcupine.Operation
	names := map[string]int{"A": 1, "B": 2, "C": 3}
	place := func(i int) int64 { return int64(i)*4 + 4 }
	used := map[string][]int64{}
	for _, e := range events {
		if e.Op == Use && e.Phase == ReturnOK {
			used[e.Client] = append(used[e.Client], e.Token)
		}
	}
	grants := 0
	add := func(s step, from, to int64) {
		ops = append(ops, porcupine.Operation{ClientId: 0, Input: s, Call: from, Return: to})
	}
	ret := func(i int) int { // of the call at i, or -1
		for j := i + 1; j < len(events); j++ {
			if events[j].Client != events[i].Client {
				continue
			}
			if events[j].Phase == Crash {
				return -1
			}
			if events[j].Key == events[i].Key && events[j].Op != Use {
				return j
			}
		}
		return -1
	}
	for i, e := range events {
		s := step{client: names[e.Client], key: e.Key, permits: max(1, e.Permits), token: e.Token, phase: e.Phase}
		switch {
		case e.Phase == Crash:
			s.what = "crash"
			add(s, place(i), place(i)+1)
			continue
		case e.Op == Use:
			if e.Phase == ReturnOK {
				s.what = "use"
				add(s, place(i), place(i)+1)
			}
			continue
		case e.Phase != Invoke:
			continue
		}
		r := ret(i)
		s.phase = ReturnUnknown
		var back Event
		to := int64(never)
		if r >= 0 {
			back = events[r]
			s.phase, s.token = back.Phase, back.Token
		}
		if s.phase != ReturnUnknown {
			to = place(r)
		}
		over := func(e Event) bool {
			return e.Phase == ReturnOK && e.Lease != 0 && spec.expiry != NotKnown && e.Lease <= e.Time
		}
		stale := spec.kind == leaseKind && s.phase == ReturnOK && over(back)
		grants++
		s.grant = grants
		switch e.Op {
		case Acquire, TryAcquire:
			s.what, s.try, s.maybe = "acquire", e.Op == TryAcquire, used[e.Client]
			if strict && spec.kind == leaseKind && (s.phase == ReturnUnknown || stale) {
				add(step{what: "expire", grant: s.grant}, place(i), never)
			}
			if stale {
				s.phase = ReturnUnknown
				if spec.expiry == Believed {
					to = never
				} else {
					add(step{what: "expire", grant: s.grant}, place(r)+1, place(r)+2)
				}
			}
		case Release:
			s.what = "release"
			if s.phase == ReturnUnknown {
				for j := i + 1; j < len(events); j++ {
					n := events[j]
					if n.Client != e.Client || n.Key != e.Key || n.Phase != Invoke {
						continue
					}
					q := ret(j)
					if n.Op != Release && q >= 0 && events[q].Phase == ReturnOK && !(spec.kind == leaseKind && spec.expiry != NotKnown && over(events[q])) {
						to = place(j) - 1
						break
					}
				}
			}
		case Extend:
			s.what = "extend"
			if s.phase != ReturnOK || stale {
				continue
			}
		}
		add(s, place(i), to)
		if spec.kind != leaseKind || s.phase != ReturnOK || s.what == "release" {
			continue
		}
		expire := step{what: "expire", grant: s.grant}
		if back.Lease == 0 || spec.expiry == NotKnown {
			add(expire, place(r)+1, never)
			continue
		}
		loose := spec.expiry == Believed
		for j := r + 1; j < len(events); j++ {
			n := events[j]
			if n.Client == e.Client && n.Phase == Invoke && n.Op == Extend && n.Time < back.Lease {
				if q := ret(j); q < 0 || events[q].Phase == ReturnUnknown || over(events[q]) {
					loose = true
				}
			}
			if n.Client == e.Client && (n.Phase == ReturnOK && n.Op != Release && !over(n) || n.Phase == Crash) {
				break
			}
		}
		for j := r + 1; j < len(events); j++ {
			if events[j].Time >= back.Lease {
				if loose {
					add(expire, place(j)-2, never)
				} else {
					add(expire, place(j)-2, place(j)-1)
				}
				break
			}
		}
	}
	model := porcupine.NondeterministicModel{
		Init: func() []any { return []any{world{}} },
		Step: func(state, input, _ any) []any {
			var all []any
			for _, next := range apply(spec, state.(world), input.(step), strict) {
				all = append(all, next)
			}
			return all
		},
	}
	return porcupine.CheckOperations(model.ToModel(), ops)
}

// apply returns the states in which a step may leave a world.
func apply(spec Spec, w world, s step, strict bool) []world {
	same := []world{w}
	var done []world
	switch s.what {
	case "crash":
		switch spec.kind {
		case semaphoreKind:
			w.counts[s.client-1] = 0
		case multiKind:
			for i, k := range w.keys {
				if strings.HasPrefix(k, fmt.Sprint(s.client)) {
					w.keys[i] = ""
				}
			}
		default:
			if w.owner == s.client {
				w.owner, w.count = 0, 0
			}
		}
		return []world{w}
	case "expire":
		if w.owner != 0 && w.grant == s.grant {
			w.owner, w.count, w.grant = 0, 0, 0
		}
		return []world{w}
	case "use":
		if s.token > w.own[s.client-1] && w.used[s.client-1]>>s.token&1 == 0 || s.token < w.accepted {
			return nil
		}
		w.accepted = s.token
		return []world{w}
	}
	if s.phase == ReturnFail {
		if strict && s.try && !w.busy(spec, s) {
			return nil
		}
		return same
	}
	limit := 1
	if spec.kind == reentrantKind {
		limit = spec.limit
	}
	code := fmt.Sprint(s.client, s.key)
	switch {
	case spec.kind == fencedKind && s.what == "acquire":
		give := []int64{s.token}
		if s.phase == ReturnUnknown {
			give = s.maybe
		}
		for _, t := range give {
			if t > w.last {
				n := w
				n.last = t
				if s.phase == ReturnUnknown {
					n.used[s.client-1] |= 1 << t
				} else {
					n.own[s.client-1] = max(t, n.own[s.client-1])
				}
				done = append(done, n)
			}
		}
	case spec.kind == fencedKind:
		done = same
	case spec.kind == semaphoreKind:
		n := &w.counts[s.client-1]
		if s.what == "acquire" {
			if w.counts[0]+w.counts[1]+w.counts[2]+s.permits <= spec.limit {
				*n += s.permits
				done = []world{w}
			}
		} else if *n >= s.permits {
			*n -= s.permits
			done = []world{w}
		}
	case spec.kind == multiKind:
		ok := true
		for _, k := range strings.Fields(s.key) {
			at := &w.keys[k[0]-'x']
			want, next := "", code
			if s.what == "release" {
				want, next = code, ""
			}
			ok = ok && *at == want
			*at = next
		}
		if ok {
			done = []world{w}
		}
	case s.what == "acquire":
		if w.owner == 0 || w.owner == s.client && w.count < limit {
			w.owner, w.count, w.grant = s.client, w.count+1, s.grant
			done = []world{w}
		}
	case s.what == "release":
		if w.owner == s.client {
			if w.count--; w.count == 0 {
				w.owner = 0
			}
			done = []world{w}
		}
	case s.what == "extend":
		if w.owner == s.client {
			w.grant = s.grant
			done = []world{w}
		}
	}
	if s.phase == ReturnUnknown {
		return append(done, same[0])
	}
	return done
}

// busy says whether a try could be told so.
func (w world) busy(spec Spec, s step) bool {
	switch spec.kind {
	case semaphoreKind:
		return w.counts[0]+w.counts[1]+w.counts[2]+s.permits > spec.limit
	case multiKind:
		for _, k := range strings.Fields(s.key) {
			if w.keys[k[0]-'x'] != "" {
				return true
			}
		}
		return false
	}
	return w.owner != 0
}

// history draws a history: what a lock answers that mostly works, to clients
// that do anything.
func history(r *rand.Rand, spec Spec, n int) []Event {
	type state struct {
		op    Op
		key   string
		holds []string
		max   int64
	}
	clients := map[string]*state{"A": {}, "B": {}, "C": {}}
	out := map[string]int{}
	token := int64(0)
	now := time.Duration(0)
	var events []Event
	limit := max(spec.limit, 1)
	pct := func() int { return r.IntN(100) }
	lies, lost, crashes := one(r, 0, 0, 2, 8), one(r, 10, 25, 45), one(r, 0, 2, 6)
	names := []string{"A", "B", "C"}[:between(r, 2, 3)]
	for len(events) < n {
		now += time.Duration(one(r, 1, 1, 0, 2))
		e := Event{Time: now, Client: one(r, names...), Line: len(events) + 1}
		c := clients[e.Client]
		if pct() < crashes {
			e.Phase = Crash
			c.op, c.holds = 0, nil
			for k := range out {
				if strings.HasPrefix(k, e.Client) {
					delete(out, k)
				}
			}
			events = append(events, e)
			continue
		}
		if c.op == 0 {
			e.Phase = Invoke
			e.Op = one(r, Acquire, TryAcquire, Release)
			if spec.kind == leaseKind && pct() < 25 {
				e.Op = Extend
			}
			if spec.kind == fencedKind && pct() < 40 {
				e.Op, e.Phase = Use, ReturnOK
				e.Token = max(1, c.max+int64(one(r, 0, 0, 0, one(r, 0, lies&1, 1, -1))))
				events = append(events, e)
				continue
			}
			if spec.kind == multiKind {
				e.Key = one(r, "x", "y", "x y", "y z")
			}
			if spec == Semaphore(3) { // the one with operations on several permits
				e.Permits = between(r, 0, 2)
			}
			c.op, c.key = e.Op, e.Key
			events = append(events, e)
			continue
		}
		e.Op, e.Key, e.Phase = c.op, c.key, ReturnFail
		own := out[e.Client+e.Key]
		taken := 0
		for k, v := range out {
			if spec.kind == multiKind {
				for _, f := range strings.Fields(e.Key) {
					if strings.Contains(k[1:], f) {
						taken += v
					}
				}
			} else {
				taken += v
			}
		}
		can := own > 0
		if e.Op == Acquire || e.Op == TryAcquire {
			can = taken == 0 || spec.kind == reentrantKind && own == taken && own < limit || spec.kind == semaphoreKind && taken < limit ||
				spec == Fenced()
		}
		if can {
			e.Phase = ReturnOK
		}
		effect := can
		switch p := pct(); {
		case p < lost:
			e.Phase = ReturnUnknown
			effect = can && pct() < 50
		case p < lost+lies:
			e.Phase = one(r, ReturnOK, ReturnFail)
		}
		if effect && e.Op == Release {
			out[e.Client+e.Key]--
			if out[e.Client+e.Key] <= 0 {
				delete(out, e.Client+e.Key)
			}
		} else if effect && e.Op != Extend {
			out[e.Client+e.Key]++
		}
		if e.Phase != ReturnFail && (e.Op == Acquire || e.Op == TryAcquire) && spec.kind == fencedKind {
			token += int64(one(r, 1, 2))
			if pct() < lies {
				token -= int64(between(r, 1, 4))
			}
			token = max(token, 1)
			c.max = max(c.max, token)
			if e.Phase == ReturnOK {
				e.Token = token
			}
		}
		if spec.kind == leaseKind && e.Phase == ReturnOK && e.Op != Release {
			if d := between(r, -1, 12); d > 0 {
				e.Lease = now + time.Duration(d) - 1
			}
			if pct() < 30 {
				delete(out, e.Client)
			}
		}
		c.op = 0
		events = append(events, e)
	}
	return events
}

// random draws a source of chance: rapid itself prefers small numbers, and so
// histories in which next to nothing happens.
func random(t *rapid.T) *rand.Rand {
	return rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 1))
}

func one[T any](r *rand.Rand, of ...T) T { return of[r.IntN(len(of))] }

func between(r *rand.Rand, a, b int) int { return a + r.IntN(b-a+1) }

// specs are the specifications that porcupine can express.
func specs() map[string]Spec {
	return map[string]Spec{
		"mutex": Mutex(), "reentrant": Reentrant(2), "believed": Lease(Believed), "known": Lease(Known), "notknown": Lease(NotKnown),
		"fenced": Fenced(), "multi": Multi(), "semaphore1": Semaphore(1), "semaphore2": Semaphore(2), "semaphore3": Semaphore(3),
	}
}

// TestPorcupine compares with a general checker on random histories. With
// -rapid.checks=100000 it is the one that make test-checker runs.
func TestPorcupine(t *testing.T) {
	everySpec(t, func(t *testing.T, spec Spec, strict bool) {
		count, searched := map[Verdict]int{}, 0
		rapid.Check(t, func(t *rapid.T) {
			events := history(random(t), spec, rapid.IntRange(2, 24).Draw(t, "events"))
			if strict && crashes(events) {
				return
			}
			verdict, search := compare(t, spec, events, strict)
			count[verdict]++
			if search {
				searched++
			}
		})
		t.Logf("%d valid, %d invalid, %d unknown; %d by search", count[Valid], count[Invalid], count[Unknown], searched)
	})
}

// TestSameHistories is the same on histories that are the same each time.
func TestSameHistories(t *testing.T) {
	everySpec(t, func(t *testing.T, spec Spec, strict bool) {
		for seed := range uint64(500) {
			if events := history(rand.New(rand.NewPCG(seed, 2)), spec, 8+int(seed%20)); !strict || !crashes(events) {
				compare(t, spec, events, strict)
			}
		}
	})
}

// crashes says whether somebody crashes. Judged strictly that may leave a hold, which these models don't know.
func crashes(events []Event) bool {
	return slices.ContainsFunc(events, func(e Event) bool { return e.Phase == Crash })
}

func everySpec(t *testing.T, test func(*testing.T, Spec, bool)) {
	for name, spec := range specs() {
		for _, strict := range []bool{false, true} {
			if strict && spec.kind == fencedKind {
				continue
			}
			t.Run(fmt.Sprintf("%s/strict=%v", name, strict), func(t *testing.T) {
				t.Parallel()
				test(t, spec, strict)
			})
		}
	}
}

// compare fails t if the checker, or its search by itself, disagrees with
// porcupine, or doesn't know. It says whether the search was needed.
func compare(t interface {
	Logf(string, ...any)
	Fatalf(string, ...any)
}, spec Spec, events []Event, strict bool) (Verdict, bool) {
	got := Check(spec, events, Options{Strict: strict})
	want := oracle(spec, events, strict)
	byItself := spec.kind == fencedKind || follow(spec, events, strict) == want
	if want != (got.Verdict == Valid) || got.Verdict == Unknown || !byItself {
		for _, e := range events {
			t.Logf("%v %s key %q phase %d op %d token %d lease %v permits %d", e.Time, e.Client, e.Key, e.Phase, e.Op, e.Token, e.Lease, e.Permits)
		}
		t.Fatalf("got %+v, want legal %v; the search by itself agrees: %v", got, want, byItself)
	}
	_, open := run(spec, events, Options{Strict: strict}).conclusion()
	return got.Verdict, open
}

// follow lets a search alone say whether a history is legal.
func follow(spec Spec, events []Event, strict bool) bool {
	k := newKept(spec, strict)
	for i := range events {
		k.add(&events[i], int64(i))
	}
	refuted, lost := k.settle(func(string) bool { return true })
	return len(refuted) == 0 && !lost
}
