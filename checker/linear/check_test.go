package linear

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/lockfault/lockfault/internal/racetest"
)

// TestCheck names one history for each clause of docs/checker.md. The third
// column is the verdict and, if it is invalid, the rules and witnesses' lines.
func TestCheck(t *testing.T) {
	const a = "0 A acquire; 1 A acquire ok; "
	for _, tt := range []struct {
		name    string
		spec    Spec
		options Options
		events  string
		want    string
	}{
		{"handed over", Mutex(), Options{}, a + "2 A release; 2 B acquire; 3 B acquire ok; 4 A release ok", "valid"},
		{"overlap", Mutex(), Options{}, a + "2 B acquire; 3 B acquire ok; 5 A release; 6 A release ok", "invalid overlap [2 4] A,B 3s-5s"},
		{"open to the end", Mutex(), Options{}, a + "2 B acquire; 3 B acquire ok", "invalid overlap [2 4] A,B 3s-3s"},
		{"same time, release first", Mutex(), Options{}, a + "2 B acquire; 3 A release; 3 B acquire ok", "valid"},
		{"same time, acquire first", Mutex(), Options{}, a + "2 B acquire; 3 B acquire ok; 3 A release", "invalid overlap [2 4] A,B 3s-3s"},
		{"other keys", Mutex(), Options{}, "0 A acquire key=x; 1 A acquire ok key=x; 0 B acquire key=y; 1 B acquire ok key=y", "valid"},
		{"out of order", Mutex(), Options{}, "2 B acquire; 3 B acquire ok; 0 A acquire; 1 A acquire ok", "invalid overlap [4 2] A,B 3s-3s"},
		{"failed release holds", Mutex(), Options{}, a + "2 A release; 3 A release fail; 4 B acquire; 5 B acquire ok", "invalid overlap [2 6] A,B 5s-5s"},
		{"failed release after all", Mutex(), Options{}, a + "2 A release; 2 B acquire; 3 B acquire ok; 4 A release fail", "invalid overlap [2 5] A,B 3s-4s"},
		{"unknown release frees", Mutex(), Options{}, a + "2 A release; 3 A release unknown; 4 B acquire; 5 B acquire ok", "valid"},
		{"unknown release did not", Mutex(), Options{}, a + "2 A release; 3 A release unknown; 4 B acquire; 5 B acquire ok; 6 A release; 7 A release ok", "invalid overlap [2 6] A,B 5s-6s"},
		{"unknown release, then a new hold", Mutex(), Options{}, a + "2 A release; 3 A release unknown; 4 A acquire; 5 A acquire ok; 6 A release; 7 A release ok; 8 A release; 9 A release ok", "invalid not-held [9 10]"},
		{"unknown acquire", Mutex(), Options{}, "0 A acquire; 1 A acquire unknown; 2 B acquire; 3 B acquire ok", "valid"},
		{"unknown acquire released", Mutex(), Options{}, "0 A acquire; 1 A acquire unknown; 2 A release; 3 A release ok", "valid"},
		{"unknown acquire in the way", Mutex(), Options{}, "0 A acquire; 1 A acquire unknown; 2 B acquire; 3 B acquire ok; 4 A release; 5 A release ok", "invalid overlap [4 6] A,B 4s-5s"},
		{"unknown acquire counts once", Mutex(), Options{}, "0 A acquire; 1 A acquire unknown; 2 A release; 3 A release ok; 4 A release; 5 A release ok", "invalid not-held [5 6]"},
		{"unknown acquire before another's hold", Mutex(), Options{}, "0 A acquire; 1 A acquire unknown; 2 A release; 3 B acquire; 4 B acquire ok; 5 A release ok", "valid"},
		{"never returned", Mutex(), Options{}, "0 A acquire; 2 B acquire; 3 B acquire ok", "valid"},
		{"crash frees", Mutex(), Options{}, a + "2 A crash; 3 B acquire; 4 B acquire ok", "valid"},
		{"crashed and came back", Mutex(), Options{}, a + "2 A crash; 3 A acquire; 4 A acquire ok; 5 B acquire; 6 B acquire ok", "invalid overlap [5 7] A,B 6s-6s"},
		{"crash during acquire", Mutex(), Options{}, "0 A acquire; 2 A crash; 3 A release; 4 A release ok", "valid"},
		{"released by a stranger", Mutex(), Options{}, a + "2 B release; 3 B release ok", "invalid not-held [3 4]"},
		{"acquired twice", Mutex(), Options{}, a + "2 A acquire; 3 A acquire ok", "invalid again [2 4]"},
		{"reentered", Reentrant(2), Options{}, a + "2 A acquire; 3 A acquire ok; 4 A release; 5 A release ok; 6 B acquire; 7 B acquire ok", "invalid overlap [2 8] A,B 7s-7s"},
		{"reentered and left", Reentrant(0), Options{}, a + "2 A acquire; 3 A acquire ok; 4 A release; 5 A release ok; 6 A release; 7 A release ok; 8 B acquire; 9 B acquire ok", "valid"},
		{"limit", Reentrant(2), Options{}, a + "2 A acquire; 3 A acquire ok; 4 A acquire; 5 A acquire ok", "invalid again [2 6]"},
		{"lease over", Lease(Believed), Options{}, "0 A acquire; 1 A acquire ok lease=5; 2 B acquire; 5 B acquire ok", "valid"},
		{"lease not over", Lease(Believed), Options{}, "0 A acquire; 1 A acquire ok lease=5; 2 B acquire; 4 B acquire ok lease=9; 9 B crash", "invalid overlap [2 4] A,B 4s-5s"},
		{"extended", Lease(Believed), Options{}, "0 A acquire; 1 A acquire ok lease=5; 2 A extend; 3 A extend ok lease=9; 4 B acquire; 8 B acquire ok lease=12; 20 B crash", "invalid overlap [2 6] A,B 8s-9s"},
		{"released late, believed", Lease(Believed), Options{}, "0 A acquire; 1 A acquire ok lease=5; 6 A release; 7 A release ok", "valid"},
		{"released late, known", Lease(Known), Options{}, "0 A acquire; 1 A acquire ok lease=5; 6 A release; 7 A release ok", "invalid not-held [3 4]"},
		{"no lease stated", Lease(Believed), Options{}, a + "2 B acquire; 3 B acquire ok", "valid"},
		{"released after another's hold", Lease(NotKnown), Options{}, a + "2 B acquire; 3 B acquire ok; 4 A release; 5 A release ok", "invalid overlap [2 4] A,B 3s-3s"},
		{"tokens grow", Fenced(), Options{}, "0 A acquire; 1 A acquire ok token=1; 2 B acquire; 3 B acquire ok token=2; 4 A use ok token=1; 5 B use ok token=2", "valid"},
		{"tokens of concurrent acquires", Fenced(), Options{}, "0 A acquire; 0 B acquire; 1 A acquire ok token=2; 3 B acquire ok token=1", "valid"},
		{"token not larger", Fenced(), Options{}, "0 A acquire; 1 A acquire ok token=2; 2 B acquire; 3 B acquire ok token=2", "invalid token-order [2 4]"},
		{"token twice", Fenced(), Options{}, "0 A acquire; 0 B acquire; 1 A acquire ok token=2; 3 B acquire ok token=2", "invalid token-order [3 4]"},
		{"token twice, long after", Fenced(), Options{}, "0 A acquire; 1 A acquire ok token=2; 2 C try; 3 C try fail; 4 C try; 5 C try fail; 6 B acquire; 7 B acquire ok token=2", "invalid token-order [2 8]"},
		{"token twice, of acquires that outlived a third", Fenced(), Options{}, "0 A acquire; 0 B acquire; 0 C acquire; 1 A acquire fail; 2 B acquire ok token=2; 3 C acquire ok token=2", "invalid token-order [5 6]"},
		{"token went back", Fenced(), Options{}, "0 A acquire; 1 A acquire ok token=1; 2 B acquire; 3 B acquire ok token=2; 4 B use ok token=2; 5 A use ok token=1", "invalid token-back [5 6]"},
		{"old token turned away", Fenced(), Options{}, "0 A acquire; 1 A acquire ok token=1; 2 B acquire; 3 B acquire ok token=2; 4 B use ok token=2; 5 A use fail token=1", "valid"},
		{"token used twice", Fenced(), Options{}, "0 A acquire; 1 A acquire ok token=1; 2 A use ok token=1; 3 A use ok token=1", "valid"},
		{"token of nobody", Fenced(), Options{}, "0 A acquire; 1 A acquire ok token=1; 4 A use ok token=2", "invalid token-not-issued [3]"},
		{"no token", Fenced(), Options{}, "0 A acquire; 1 A acquire ok token=2; 2 B acquire; 3 B acquire ok", "unknown"},
		{"no token, and another is not larger", Fenced(), Options{}, "0 A acquire; 1 A acquire ok token=2; 2 B acquire; 3 B acquire ok; 4 C acquire; 5 C acquire ok token=1", "invalid token-order [2 6]"},
		{"no token, but used", Fenced(), Options{}, "0 A acquire; 1 A acquire ok; 2 A use ok token=7; 3 B acquire; 4 B acquire ok token=7", "invalid token-order [3 5]"},
		{"no token, yet a lease", Fenced(), Options{}, "0 A acquire; 1 A acquire ok lease=9; 2 B acquire; 3 B acquire ok lease=7; 9 A crash", "invalid overlap [2 4] A,B 3s-7s"},
		{"token below zero", Fenced(), Options{}, "0 A acquire; 1 A acquire ok token=-2", "unknown"},
		{"unknown acquire's token used", Fenced(), Options{}, "0 A acquire; 1 A acquire unknown; 2 A use ok token=7; 3 B acquire; 4 B acquire ok token=7", "invalid token-order [3 5]"},
		{"fenced overlap", Fenced(), Options{}, "0 A acquire; 1 A acquire ok token=1 lease=9; 2 B acquire; 3 B acquire ok token=2 lease=7; 9 A crash", "invalid overlap [2 4] A,B 3s-7s"},
		{"several keys", Multi(), Options{}, "0 A acquire key=x+y; 1 A acquire ok key=x+y; 2 B acquire key=y+z; 3 B acquire ok key=y+z", "invalid overlap [2 4] A,B 3s-3s"},
		{"several other keys", Multi(), Options{}, "0 A acquire key=x+y; 1 A acquire ok key=x+y; 2 B acquire key=z; 3 B acquire ok key=z", "valid"},
		{"a hold of several keys is over at once", Multi(), Options{}, "0 A acquire key=x+y; 1 A acquire ok key=x+y; 2 A release key=x+y; 3 A release unknown key=x+y; 4 B acquire key=x; 5 B acquire ok key=x; 6 A release key=x+y; 6 C acquire key=y; 7 C acquire ok key=y; 8 A release ok key=x+y",
			"invalid overlap [2 6] A,B 5s-6s"},
		{"permits", Semaphore(2), Options{}, a + "2 B acquire; 3 B acquire ok; 4 C acquire; 5 C acquire ok", "invalid permits [2 4 6] A,B,C 5s-5s"},
		{"permits in bulk", Semaphore(3), Options{}, "0 A acquire n=2; 1 A acquire ok n=2; 2 B acquire n=2; 3 B acquire ok n=2", "invalid permits [2 4] A,B 3s-3s"},
		{"several keys in any order, and twice", Multi(), Options{}, "0 A acquire key=y+x+y; 1 A acquire ok key=x+y; 2 A release key=x+x+y; 3 A release ok key=y+x", "valid"},
		{"permits returned", Semaphore(2), Options{}, a + "2 B acquire; 3 B acquire ok; 4 A release; 5 C acquire; 6 C acquire ok", "valid"},
		{"unknown release of a permit, and it did not", Semaphore(1), Options{}, a + "2 A release; 3 A release unknown; 4 B acquire; 5 B acquire ok; 6 A release; 7 A release ok", "invalid permits [2 6] A,B 5s-6s"},
		{"busy", Mutex(), Options{}, "0 A try; 1 A try fail", "valid"},
		{"busy, strictly", Mutex(), Options{Strict: true}, "0 A try; 1 A try fail", "invalid busy [2]"},
		{"busy, explained", Mutex(), Options{Strict: true}, "0 A acquire; 1 B try; 2 B try fail; 3 A acquire ok", "valid"},
		{"busy, before its call", Mutex(), Options{Strict: true}, "1 B try; 2 B try fail; 2 A acquire; 3 A acquire ok", "invalid busy [2]"},
		{"busy, perhaps explained", Mutex(), Options{Strict: true}, "0 A acquire; 1 A acquire unknown; 1 B try; 2 B try fail", "valid"},
		{"busy, explained by an unknown acquire that is in the way", Mutex(), Options{Strict: true}, "0 A acquire; 1 A acquire unknown; 1 B try; 2 B try fail; 3 B acquire; 4 B acquire ok", "invalid no-order [6]"},
		{"busy, explained by a hold that leaves no room for an unknown acquire before it", Mutex(), Options{Strict: true},
			"1 A try; 1 B try; 2 A try fail; 3 A try; 3 A try unknown; 4 A release; 5 B try ok; 6 A release ok", "invalid no-order [8]"},
		{"busy, explained by an old hold that leaves no room for an unknown acquire after it", Reentrant(2), Options{Strict: true},
			a + "2 A release; 3 A release unknown; 4 A acquire; 5 B try; 6 B try fail; 6 C acquire; 6 C acquire unknown; 6 C release; 7 A acquire ok; 8 C release ok", "invalid not-held [10 12]"},
		{"busy, explained by an acquire and a release that were under way at the same time", Semaphore(3), Options{Strict: true},
			"1 C try n=2; 1 A try; 3 B try; 4 B try ok; 5 B release; 7 B release ok; 8 C try ok n=2; 9 C release; 9 A try fail", "valid"},
		{"busy, explained by an acquire under way and a crash", Semaphore(2), Options{Strict: true},
			"0 B acquire; 1 B acquire ok; 2 C acquire; 3 A try; 4 B crash; 5 C acquire ok; 6 A try fail", "valid"},
		{"busy, one permit was left all the time", Semaphore(3), Options{Strict: true},
			"0 B acquire; 1 B acquire ok; 2 C acquire; 3 A try; 4 C acquire ok; 6 A try fail", "invalid busy [6]"},
		{"busy, explained by a release under way of another key, too", Multi(), Options{Strict: true},
			"1 B acquire key=x+y; 2 B acquire ok key=x+y; 3 B release key=x+y; 4 A acquire key=y; 5 C try key=x; 6 A acquire ok key=y; 7 B release ok key=x+y; 8 C try fail key=x", "valid"},
		{"busy, explained by an unknown acquire whose lease ran out", Lease(Believed), Options{Strict: true},
			"0 A acquire; 5 A acquire unknown; 10 B try; 11 B try fail; 40 B try; 41 B try ok lease=70", "valid"},
		{"busy, explained by a lease that ran out before the call ended", Lease(NotKnown), Options{Strict: true},
			"0 A acquire; 10 B try; 11 B try fail; 40 B try; 41 B try ok; 42 A acquire unknown", "valid"},
		{"busy, before and after an unknown acquire ended whose lease ran out", Lease(Believed), Options{Strict: true},
			"0 A acquire; 1 C try; 2 C try fail; 5 A acquire unknown; 10 B try; 11 B try fail; 40 B try; 41 B try ok lease=70", "valid"},
		{"busy, explained by a lease that was over when its client heard of it", Lease(Known), Options{Strict: true},
			"0 A acquire; 3 B try; 4 B try fail; 6 B try; 7 B try ok lease=30; 10 A acquire ok lease=5", "valid"},
		{"busy, explained by a lease that cannot have run out", Lease(Believed), Options{Strict: true},
			"0 A acquire; 10 B try; 11 B try fail; 40 B try; 41 B try ok lease=50; 60 A acquire ok lease=70", "invalid no-order [6]"},
		{"busy, fenced, by a lease", Fenced(), Options{Strict: true}, "0 A acquire; 1 A acquire ok token=1 lease=9; 2 B try; 3 B try fail", "valid"},
		{"busy, fenced, by who knows", Fenced(), Options{Strict: true}, "0 A acquire; 1 A acquire ok token=1 lease=2; 2 B try; 3 B try fail", "valid"},
		{"busy, explained by each of two that are unknown, in one order only", Mutex(), Options{Strict: true}, "0 A acquire; 0 A acquire unknown; 0 A release; 0 A release unknown; 0 B acquire; 0 B acquire unknown; 0 B release; 0 B release unknown; " +
			"1 T try; 1 T try fail; 2 B acquire; 2 B acquire ok; 2 B release; 2 B release ok; 3 T try; 3 T try fail; 4 T acquire; 4 T acquire ok", "valid"},
		{"busy, of several keys", Multi(), Options{Strict: true}, "0 A acquire key=x; 1 A acquire ok key=x; 2 B try key=x+y; 3 B try fail key=x+y", "valid"},
		{"busy, of several free keys", Multi(), Options{Strict: true}, "0 A acquire key=z; 1 A acquire ok key=z; 2 B try key=x+y; 3 B try fail key=x+y", "invalid no-order [4]"},
		{"busy, permits", Semaphore(2), Options{Strict: true}, a + "2 B try n=2; 3 B try fail n=2; 4 B try; 5 B try fail", "invalid busy [6]"},
		{"permits, some of an unknown acquire", Semaphore(3), Options{}, "0 A acquire n=2; 1 A acquire unknown n=2; 2 A release n=1; 3 A release ok n=1; 4 B acquire n=2; 5 B acquire ok n=2; 6 A release n=1; 7 A release ok n=1", "valid"},
		{"permits, a release under way of more than can be held", Semaphore(3), Options{}, "0 B acquire n=2; 1 B acquire ok n=2; 2 B acquire; 3 B acquire unknown; 4 C acquire; 5 C acquire ok; 6 B release n=3; " +
			"7 C release; 8 C release fail; 9 C acquire; 10 C acquire ok", "invalid no-order [11]"},
		{"permits, more than of an unknown acquire", Semaphore(3), Options{}, "0 A acquire n=2; 1 A acquire unknown n=2; 2 A release n=1; 3 A release ok n=1; 4 B acquire n=3; 5 B acquire ok n=3; 6 A release n=1; 7 A release ok n=1", "invalid no-order [6]"},
		{"a release under way that made room needs no acquire of unknown outcome", Mutex(), Options{}, "0 A acquire; 1 A acquire unknown; 2 A acquire; 3 A acquire ok; 4 A release; " +
			"5 B acquire; 6 B acquire ok; 7 A release ok; 8 B release; 9 B release ok; 10 A release; 11 A release ok", "valid"},
		{"no call", Mutex(), Options{}, "1 A acquire ok", "unknown"},
		{"two calls", Mutex(), Options{}, "1 A acquire; 2 A acquire", "unknown"},
		{"extend of a mutex", Mutex(), Options{}, "1 A extend", "unknown"},
		{"proven before it went wrong", Mutex(), Options{}, a + "2 B acquire; 3 B acquire ok; 4 B acquire ok", "invalid overlap [2 4] A,B 3s-4s"},
		{"within the skew", Mutex(), Options{Skew: time.Second}, a + "2 B acquire; 3 B acquire ok; 5 A release", "unknown overlap [2 4] A,B 3s-5s"},
		{"within the skew, and beyond it later", Mutex(), Options{Skew: time.Second}, a + "2 B acquire; 3 B acquire ok; 5 A release; 5 A release ok; 6 B release; 6 B release ok; " +
			"10 C acquire; 10 C acquire ok; 11 D acquire; 11 D acquire ok; 20 D release; 30 C release", "invalid overlap [10 12] C,D 11s-20s"},
		{"within the skew, twice", Mutex(), Options{Skew: time.Second}, a + "2 B acquire; 3 B acquire ok; 5 A release; 5 A release ok; 6 B release; 6 B release ok; " +
			"10 C acquire; 10 C acquire ok; 11 D acquire; 11 D acquire ok; 12 D release; 30 C release", "unknown overlap [2 4] A,B 3s-5s"},
		{"used before it was returned, by another clock", Fenced(), Options{Skew: time.Second}, "0 A acquire; 1 A use ok token=1; 2 A acquire ok token=1", "valid"},
		{"a token used that nobody returned, by another clock", Fenced(), Options{Skew: time.Second}, "0 A acquire; 1 A acquire ok token=1; 2 B use ok token=5", "unknown token-not-issued [3]"},
		{"beyond the skew", Mutex(), Options{Skew: time.Second}, a + "2 B acquire; 3 B acquire ok; 6 A release", "invalid overlap [2 4] A,B 3s-6s"},
		{"all", Mutex(), Options{All: true}, a + "2 B acquire; 3 B acquire ok; 4 C acquire; 5 C acquire ok; 6 B release; 7 A release; 8 D acquire; 9 D acquire ok; 10 D release",
			"invalid overlap [2 4] A,B,C 5s-6s; overlap [6 10] C,D 9s-10s"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			events := parse(t, tt.events)
			r := Check(tt.spec, events, tt.options)
			if got := short(r); got != tt.want {
				t.Errorf("got  %s\nwant %s\n%+v", got, tt.want, r)
			}
			if (r.Reason != "") != (r.Verdict == Unknown) {
				t.Errorf("verdict %s for the reason %q", r.Verdict, r.Reason)
			}
		})
	}
}

func short(r Result) string {
	s := string(r.Verdict)
	for i, v := range r.Violations {
		if i > 0 {
			s += ";"
		}
		var lines []int
		for _, e := range v.Events {
			lines = append(lines, e.Line)
		}
		s += fmt.Sprintf(" %s %v", v.Rule, lines)
		if len(v.Clients) > 0 {
			for j, name := range v.Clients {
				s += map[bool]string{true: " ", false: ","}[j == 0] + name
			}
			s += fmt.Sprintf(" %v-%v", v.From, v.To)
		}
	}
	return s
}

// TestTooManyStates has a question that takes more than the search may spend: which of forty sizes sum up to
// what was out.
func TestTooManyStates(t *testing.T) {
	racetest.Skip(t)
	var events []Event
	for i := range 40 {
		for _, phase := range []Phase{Invoke, ReturnUnknown} {
			events = append(events, Event{Client: fmt.Sprint(i), Op: Acquire, Phase: phase, Permits: 4 * (500 + i*i)})
		}
	}
	events = append(events,
		Event{Client: "A", Op: TryAcquire, Phase: Invoke, Permits: 2}, Event{Client: "A", Op: TryAcquire, Phase: ReturnFail, Permits: 2},
		Event{Client: "A", Op: Acquire, Phase: Invoke, Permits: 1}, Event{Client: "A", Op: Acquire, Phase: ReturnOK, Permits: 1})
	r := Check(Semaphore(40_003), events, Options{Strict: true})
	if r.Verdict != Unknown || !strings.Contains(r.Reason, "too many states") {
		t.Errorf("%+v", r)
	}
}

// TestStrangers has forty clients of whom nothing is known but that each may have acquired: any of
// them is as good as another.
func TestStrangers(t *testing.T) {
	var events []Event
	for i := range 40 {
		for _, phase := range []Phase{Invoke, ReturnUnknown} {
			events = append(events, Event{Client: fmt.Sprint(i), Op: Acquire, Phase: phase})
		}
	}
	events = append(events, Event{Client: "A", Op: TryAcquire, Phase: Invoke}, Event{Client: "A", Op: TryAcquire, Phase: ReturnFail})
	for limit, want := range map[int]Verdict{2: Valid, 20: Valid, 40: Valid, 41: Invalid} {
		if r := Check(Semaphore(limit), events, Options{Strict: true}); r.Verdict != want {
			t.Errorf("%d permits: %+v", limit, r)
		}
	}
}

// TestCounts counts operations, and those without a known outcome.
func TestCounts(t *testing.T) {
	r := Check(Mutex(), parse(t, "0 A acquire; 1 A acquire unknown; 2 A try; 3 A try fail; 4 A release; 5 B acquire; 6 B crash"), Options{})
	if r.Ops != 4 || r.Unknown != 3 {
		t.Errorf("%d operations, %d unknown; want 4 and 3", r.Ops, r.Unknown)
	}
}

// TestMemory lets many clients come and go: none may be kept.
func TestMemory(t *testing.T) {
	c := New(Mutex(), Options{})
	for i := range 50_000 {
		e := Event{Time: time.Duration(i), Client: fmt.Sprint(i)}
		for _, op := range []Op{Acquire, Release} {
			for _, phase := range []Phase{Invoke, ReturnOK} {
				e.Op, e.Phase = op, phase
				if err := c.Add(e); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
	if len(c.clients) > 2048 {
		t.Errorf("%d clients are kept", len(c.clients))
	}
	if r := c.Result(); r.Verdict != Valid {
		t.Error(r)
	}
}

// TestMemoryOfManyLocksEach lets clients come, take many locks at once, and give all back: none may be kept.
func TestMemoryOfManyLocksEach(t *testing.T) {
	c := New(Mutex(), Options{})
	for i := range 50 {
		e := Event{Time: time.Duration(i), Client: fmt.Sprint(i)}
		for _, e.Op = range []Op{Acquire, Release} {
			for j := range 1000 {
				e.Key = fmt.Sprint("k", i, ".", j)
				for _, e.Phase = range []Phase{Invoke, ReturnOK} {
					if err := c.Add(e); err != nil {
						t.Fatal(err)
					}
				}
			}
		}
	}
	owners := 0
	for _, cl := range c.clients {
		owners += len(cl.owners)
	}
	if len(c.slots) > 4096 || owners > 4096 || c.owned != owners+len(c.clients) {
		t.Errorf("%d locks, %d clients and %d owners are kept, and %d were counted", len(c.slots), len(c.clients), owners, c.owned)
	}
}

// TestMemoryOfLocks lets one client use many locks in turn: none may be kept.
func TestMemoryOfLocks(t *testing.T) {
	for _, clients := range []int{1, 50_000} {
		c := New(Mutex(), Options{})
		for i := range 50_000 {
			e := Event{Time: time.Duration(i), Client: fmt.Sprint(i % clients), Key: fmt.Sprint("k", i)}
			for _, op := range []Op{Acquire, Release} {
				for _, phase := range []Phase{Invoke, ReturnOK} {
					e.Op, e.Phase = op, phase
					if err := c.Add(e); err != nil {
						t.Fatal(err)
					}
				}
			}
		}
		if len(c.slots) > 2048 {
			t.Errorf("%d locks are kept of %d clients", len(c.slots), clients)
		}
		if r := c.Result(); r.Verdict != Valid {
			t.Error(r)
		}
	}
}

// TestResultChangesNothing asks for the result after each event, and after one alone: the next
// events must be judged as if nobody had asked.
func TestResultChangesNothing(t *testing.T) {
	everySpec(t, func(t *testing.T, spec Spec, strict bool) {
		for seed := range uint64(100) {
			r := rand.New(rand.NewPCG(seed, 4))
			changesNothing(t, spec, strict, history(r, spec, 8+int(seed%20)), r.IntN(8))
		}
	})
	// Four of three permits are out, of which nobody may ask twice.
	events := parse(t, `1 a acquire; 2 a acquire ok; 3 b acquire n=3; 4 c acquire n=2; 5 b acquire ok n=3; 6 c acquire unknown n=2`)
	for at := range events {
		changesNothing(t, Semaphore(3), false, events, at)
	}
}

func changesNothing(t *testing.T, spec Spec, strict bool, events []Event, once int) {
	t.Helper()
	for _, o := range []Options{{Strict: strict, All: true}, {Strict: strict, Search: true}} {
		always, asked, plain := New(spec, o), New(spec, o), New(spec, o)
		for i, e := range events {
			always.Add(e)
			asked.Add(e)
			plain.Add(e)
			if first := always.Result(); !reflect.DeepEqual(first, always.Result()) {
				t.Fatalf("two results after %v of %v", e, events)
			}
			if i == once {
				asked.Result()
			}
		}
		for _, c := range []*Checker{always, asked} {
			if got, want := c.Result(), plain.Result(); !reflect.DeepEqual(got, want) {
				t.Fatalf("got %+v\nwant %+v\nof %v, asked after event %d or after each", got, want, events, once)
			}
		}
	}
}

// Without Options.All what is found first is what Result says, even if an event is wrong in two ways.
func TestFoundFirst(t *testing.T) {
	for _, c := range []struct {
		spec    Spec
		history string
		want    Rule
	}{
		{Fenced(), "1 a acquire; 2 a acquire ok token=5 lease=100; 3 a acquire; 4 a acquire ok token=5 lease=100", TokenOrder},
		{Multi(), "1 a acquire key=x; 2 a acquire ok key=x; 3 a acquire key=y; 4 a acquire ok key=y; 5 a acquire key=x+y; 6 a acquire ok key=x+y", Reacquire},
	} {
		var found []Violation
		r := read(c.spec, parse(t, c.history), Options{Found: func(v Violation) { found = append(found, v) }})
		if len(found) != 1 || found[0].Rule != c.want || !reflect.DeepEqual(r.Violations, found) {
			t.Errorf("%s: found %+v, and in the end %+v", c.history, found, r.Violations)
		}
	}
}

// What is acquired again is a lock that the second acquire is about.
func TestAgainOfSeveral(t *testing.T) {
	r := read(Multi(), parse(t, "1 a acquire key=x+y; 2 a acquire ok key=x+y; 3 a acquire key=y+z; 4 a acquire ok key=y+z"), Options{})
	if len(r.Violations) != 1 || r.Violations[0].Rule != Reacquire || r.Violations[0].Key != "y" {
		t.Errorf("%+v", r)
	}
}

// What goes on lasts until the history's end, whoever says when that was.
func TestUntil(t *testing.T) {
	c := New(Mutex(), Options{})
	for _, e := range parse(t, "1 a acquire; 2 a acquire ok; 3 b acquire; 4 b acquire ok") {
		c.Add(e)
	}
	for _, end := range []struct{ at, want time.Duration }{{3, 4}, {9, 9}, {8, 9}} { // s
		c.Until(end.at * time.Second)
		if r := c.Result(); len(r.Violations) != 1 || r.Violations[0].From != 4*time.Second || r.Violations[0].To != end.want*time.Second {
			t.Errorf("until %v: %+v", end.at, r)
		}
	}
}

func read(spec Spec, events []Event, o Options) Result {
	c := New(spec, o)
	for _, e := range events {
		c.Add(e)
	}
	return c.Result()
}

// TestOpenLocks reads histories twice, the second time with a search of those locks alone
// that the first reading left open: it must say what a search of all does.
func TestOpenLocks(t *testing.T) {
	var named atomic.Int64
	everySpec(t, func(t *testing.T, spec Spec, strict bool) {
		for seed := range uint64(100) {
			r := rand.New(rand.NewPCG(seed, 9))
			var events []Event
			for _, key := range []string{"x", "y", "z"} {
				for _, e := range history(r, spec, 8+int(seed%20)) {
					if e.Key = key; e.Phase != Crash { // it would be about all
						events = append(events, e)
					}
				}
			}
			slices.SortStableFunc(events, func(a, b Event) int { return int(a.Time - b.Time) })
			o := Options{Strict: strict, All: true}
			first := read(spec, events, o)
			if !first.Unsettled {
				continue
			}
			o.Search = true
			all := read(spec, events, o)
			named.Add(int64(len(first.Open)))
			if o.Locks = first.Open; !reflect.DeepEqual(read(spec, events, o), all) {
				t.Errorf("%v: %+v, of all %+v", first.Open, read(spec, events, o), all)
			}
		}
	})
	t.Cleanup(func() {
		if named.Load() == 0 {
			t.Error("no lock was left open")
		}
	})
}

// TestLimit has more violations than are listed: each is told, and counted.
func TestLimit(t *testing.T) {
	const n = MaxViolations + 500
	told := 0
	for _, found := range []func(Violation){nil, func(Violation) { told++ }} {
		c := New(Mutex(), Options{All: true, Found: found})
		for i := range n {
			for j, client := range []string{"A", "B", "A", "B"} {
				for _, phase := range []Phase{Invoke, ReturnOK} {
					op := Acquire
					if j > 1 {
						op = Release
					}
					c.Add(Event{Time: time.Duration(4*i + j), Client: client, Op: op, Phase: phase})
				}
			}
		}
		r := c.Result()
		if r.Verdict != Invalid || len(r.Violations) != MaxViolations || r.Omitted != n-MaxViolations {
			t.Errorf("%s, %d listed, %d omitted", r.Verdict, len(r.Violations), r.Omitted)
		}
	}
	if told != n {
		t.Errorf("%d of %d were told", told, n)
	}
}

// TestBackInTime is about Add alone, since Check sorts.
func TestBackInTime(t *testing.T) {
	c := New(Mutex(), Options{})
	if err := c.Add(Event{Time: 2, Client: "A", Op: Acquire, Phase: Invoke, Line: 7}); err != nil {
		t.Fatal(err)
	}
	err := c.Add(Event{Time: 1, Client: "A", Op: Acquire, Phase: ReturnOK, Line: 8})
	if err == nil || c.Result().Verdict != Unknown || c.Result().Reason != err.Error() {
		t.Errorf("error %v, result %+v", err, c.Result())
	}
	if again := c.Add(Event{Time: 3, Client: "B", Op: Acquire, Phase: Invoke}); again != err {
		t.Errorf("error %v after %v", again, err)
	}
}

// hostile makes events of any bytes.
func hostile(data []byte) []Event {
	var events []Event
	for len(data) >= 8 {
		b := data[:8]
		data = data[8:]
		e := Event{
			Time: time.Duration(int8(b[0])), Client: []string{"A", "B", "C", ""}[b[1]%4], Key: []string{"", "x", "x y", "y y x"}[b[1]/4%4],
			Phase: Phase(b[2] % 7), Op: Op(b[3] % 7), Token: int64(int8(b[4])), Lease: time.Duration(int8(b[5])), Permits: int(int8(b[6])), Line: int(b[7]),
		}
		if b[7] == 255 {
			e.Time, e.Lease, e.Token, e.Permits = e.Time<<56, e.Lease<<56, e.Token<<56, e.Permits<<56
		}
		events = append(events, e)
	}
	return events
}

func FuzzCheck(f *testing.F) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 10 {
		seed := make([]byte, 800)
		for i := range seed {
			seed[i] = byte(r.IntN(8))
		}
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		events := hostile(data)
		before := slices.Clone(events)
		for _, name := range slices.Sorted(maps.Keys(specs())) {
			spec := specs()[name]
			for _, o := range []Options{{}, {Strict: true, All: true}, {Skew: 3, All: true}} {
				got := Check(spec, events, o)
				if !reflect.DeepEqual(got, Check(spec, events, o)) {
					t.Errorf("%s: two results", name)
				}
				certain := slices.ContainsFunc(got.Violations, func(v Violation) bool { return v.Certain })
				if certain != (got.Verdict == Invalid) || (got.Verdict == Unknown) != (got.Reason != "") {
					t.Errorf("%s: %+v", name, got)
				}
				for _, v := range got.Violations {
					if len(v.Events) == 0 || v.Message == "" || v.To < v.From && v.Rule == Overlap {
						t.Errorf("%s: %+v", name, v)
					}
				}
			}
		}
		if !reflect.DeepEqual(events, before) {
			t.Error("the events were changed")
		}
	})
}

// A list of keys is compared as a set of them, however it is written.
func TestSet(t *testing.T) {
	for list, want := range map[string]string{
		"": "", "x": "x", "x y": "x y", "y x": "x y", "x x": "x", "x y x": "x y", " x": "x", "x ": "x", "x  y": "x y", "x\ty": "x y", "x y\nw": "w x y",
	} {
		if got := set(list); got != want {
			t.Errorf("%q is %q, want %q", list, got, want)
		}
	}
}
