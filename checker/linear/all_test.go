package linear

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// careless draws a history of clients that acquire and release in turn, whoever
// holds: it is full of overlaps, and each release is known to have succeeded,
// or has not returned, or its client crashed.
func careless(r *rand.Rand, n int) []Event {
	type client struct {
		op    Op // under way
		holds bool
	}
	clients := map[string]*client{"A": {}, "B": {}, "C": {}, "D": {}, "E": {}}
	var events []Event
	now := time.Duration(0)
	for len(events) < n {
		now += time.Duration(r.IntN(4))
		e := Event{Time: now, Client: one(r, "A", "B", "C", "D", "E"), Line: len(events) + 1}
		c := clients[e.Client]
		switch {
		case r.IntN(20) == 0:
			e.Phase = Crash
			*c = client{}
		case c.op == 0:
			e.Op, e.Phase = Acquire, Invoke
			if c.holds {
				e.Op = Release
			}
			c.op = e.Op
		default:
			e.Op, e.Phase = c.op, ReturnOK
			if c.op == Acquire && r.IntN(5) == 0 {
				e.Phase = one(r, ReturnFail, ReturnUnknown)
			}
			c.op = 0
			if e.Op == Acquire {
				c.holds = e.Phase == ReturnOK
			} else {
				c.holds = false
			}
		}
		events = append(events, e)
	}
	return events
}

// maximal lists the largest sets of holds that have an instant in common, the
// slow way: a set for each beginning of a hold, without those inside others.
func maximal(events []Event, skew time.Duration) []string {
	type hold struct {
		client   string
		from, to int // events; to is their number if it never ends
	}
	var holds []hold
	for i, e := range events {
		if e.Op != Acquire || e.Phase != ReturnOK {
			continue
		}
		h := hold{e.Client, i, len(events)}
		for j := i + 1; j < len(events) && h.to == len(events); j++ {
			if n := events[j]; n.Client == e.Client && (n.Phase == Crash || n.Op == Release && n.Phase == Invoke) {
				h.to = j
			}
		}
		holds = append(holds, h)
	}
	inside := func(set []hold, others [][]hold) bool {
		return slices.ContainsFunc(others, func(other []hold) bool {
			return !slices.ContainsFunc(set, func(h hold) bool { return !slices.Contains(other, h) })
		})
	}
	var sets [][]hold
	for _, begin := range holds {
		var set []hold
		for _, h := range holds {
			if h.from <= begin.from && begin.from < h.to {
				set = append(set, h)
			}
		}
		if len(set) > 1 {
			sets = append(sets, set)
		}
	}
	var all []string
	for i, set := range sets {
		if inside(set, slices.Concat(sets[:i], sets[i+1:])) {
			continue
		}
		var names []string
		from, to := events[set[0].from].Time, events[len(events)-1].Time
		for _, h := range set {
			names = append(names, h.client)
			from = max(from, events[h.from].Time)
			if h.to < len(events) {
				to = min(to, events[h.to].Time)
			}
		}
		slices.Sort(names)
		// It is certain if neither of two holds can have been before the other.
		outlasts := func(a, b hold) bool {
			return a.to == len(events) || events[a.to].Time-events[b.from].Time > 2*skew
		}
		certain := skew == 0
		for i, a := range set {
			for _, b := range set[:i] {
				certain = certain || outlasts(a, b) && outlasts(b, a)
			}
		}
		all = append(all, fmt.Sprintf("%s %v-%v %v", strings.Join(names, ","), from, to, certain))
	}
	slices.Sort(all)
	return all
}

// TestAll compares the sets of an overlap, their durations, and whether they are
// certain, with the slow way.
func TestAll(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		events := careless(random(t), rapid.IntRange(2, 60).Draw(t, "events"))
		skew := time.Duration(rapid.IntRange(0, 4).Draw(t, "skew"))
		r := Check(Mutex(), events, Options{All: true, Skew: skew})
		var got []string
		for _, v := range r.Violations {
			got = append(got, fmt.Sprintf("%s %v-%v %v", strings.Join(v.Clients, ","), v.From, v.To, v.Certain))
			for _, e := range v.Events {
				if e.Op != Acquire || e.Phase != ReturnOK || !slices.Contains(v.Clients, e.Client) || e.Time > v.From {
					t.Errorf("%+v proves no hold of %v", e, v.Clients)
				}
			}
		}
		slices.Sort(got)
		if want := maximal(events, skew); !slices.Equal(got, want) {
			for _, e := range events {
				t.Logf("%v %s phase %d op %d", e.Time, e.Client, e.Phase, e.Op)
			}
			t.Fatalf("got  %v\nwant %v", got, want)
		}
	})
}

// TestSkew moves every time by as much as it may be wrong: what was certain must
// stay wrong.
func TestSkew(t *testing.T) {
	for _, spec := range []Spec{Mutex(), Reentrant(2), Semaphore(2), Fenced(), Lease(Believed)} {
		t.Run(fmt.Sprint(spec), func(t *testing.T) {
			certain := 0
			for seed := range uint64(2000) {
				r := rand.New(rand.NewPCG(seed, 3))
				events := history(r, spec, between(r, 2, 24))
				if spec == Mutex() {
					events = careless(r, len(events))
				}
				skew := time.Duration(between(r, 1, 6))
				for i := range events {
					events[i].Time *= 4
					events[i].Lease *= 4
				}
				if Check(spec, events, Options{Skew: skew}).Verdict != Invalid {
					continue
				}
				certain++
				for range 10 {
					moved := slices.Clone(events)
					last, by := map[string]time.Duration{}, map[string]time.Duration{}
					for i := range moved {
						e := &moved[i]
						shift, ok := by[e.Client]
						if !ok || spec.kind != leaseKind { // a client's own order includes the ends of its leases
							shift = time.Duration(one(r, -1, 0, 1)) * skew
							by[e.Client] = shift
						}
						e.Time += shift
						if e.Lease != 0 {
							e.Lease += shift
						}
						if before, ok := last[e.Client]; ok {
							e.Time = max(e.Time, before) // each client's own order is known
						}
						last[e.Client] = e.Time
					}
					if got := Check(spec, moved, Options{}); got.Verdict == Valid {
						t.Fatalf("it is certain within %v that %v, but not that %v", skew, events, moved)
					}
				}
			}
			t.Logf("%d were certain", certain)
			if certain == 0 {
				t.Error("nothing was certain")
			}
		})
	}
}
