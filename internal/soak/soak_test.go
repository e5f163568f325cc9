package soak_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/lockfault/lockfault/checker"
	"github.com/lockfault/lockfault/internal/leases"
	"github.com/lockfault/lockfault/internal/soak"
	"github.com/lockfault/lockfault/scenarios"
)

const lease = 30 * time.Second

func TestParseNemesis(t *testing.T) {
	for _, test := range []struct{ text, want, wrong string }{
		{text: "pause", want: "pause:10m:3s..1m"},
		{text: "pause:5m", want: "pause:5m:3s..1m"},
		{text: "crash:20ttl:1ttl", want: "crash:10m:30s"},
		{text: "clock:1h:10ms..2h", want: "clock:1h:10ms..2h"},
		{text: "flush:1h", want: "flush:1h"},
		{text: "failover", want: "failover:10m:3s..1m"},
		{text: "puase", wrong: `there is no nemesis "puase"`},
		{text: "", wrong: `there is no nemesis ""`},
		{text: "flush:1h:3s", wrong: "too many parts"},
		{text: "pause:1h:3s:4s", wrong: "too many parts"},
		{text: "pause:often", wrong: `"often" is not a length of time`},
		{text: "pause:1us", wrong: "less than a millisecond"},
		{text: "pause:-1s", wrong: "less than a millisecond"},
		{text: "pause:1m:5s..2s", wrong: "from more to less"},
		{text: "pause:1m:5s..", wrong: "is not a length of time"},
	} {
		n, err := soak.ParseNemesis(test.text, lease)
		switch {
		case test.wrong != "":
			if err == nil || !strings.Contains(err.Error(), test.wrong) {
				t.Errorf("%q: %v, want %q", test.text, err, test.wrong)
			}
		case err != nil:
			t.Errorf("%q: %v", test.text, err)
		case n.String() != test.want:
			t.Errorf("%q is %s, want %s", test.text, n, test.want)
		default:
			if again, err := soak.ParseNemesis(n.String(), lease); err != nil || again.String() != n.String() {
				t.Errorf("%s is read as %s, %v", n, again, err)
			}
		}
	}
	var none *soak.UnknownKind
	if _, err := soak.ParseNemesis("x:1s", lease); !errors.As(err, &none) || none.Name != "x" {
		t.Errorf("an unknown kind is %v", err)
	}
}

// TestWindowsAreScripts checks that each window of any plan is a valid and reproducible script, and
// that no client or node has two faults at once.
func TestWindowsAreScripts(t *testing.T) {
	kinds := soak.Kinds()
	rapid.Check(t, func(t *rapid.T) {
		p := soak.Plan{
			Clients: rapid.IntRange(1, soak.MostClients).Draw(t, "clients"), Nodes: rapid.IntRange(1, 5).Draw(t, "nodes"), Replicas: rapid.IntRange(1, 2).Draw(t, "replicas"),
			Think: time.Duration(rapid.IntRange(0, 20).Draw(t, "think")) * time.Second, Hold: time.Second,
			TTL: lease, Window: time.Duration(rapid.IntRange(1, 3600).Draw(t, "window")) * time.Second, Seed: rapid.Uint64().Draw(t, "seed"),
			Lag: time.Duration(rapid.IntRange(0, 2).Draw(t, "lag")) * time.Millisecond,
		}
		for range rapid.IntRange(0, 4).Draw(t, "nemeses") {
			n, err := soak.ParseNemesis(kinds[rapid.IntRange(0, len(kinds)-1).Draw(t, "kind")][0]+rapid.SampledFrom([]string{"", ":1m", ":20s"}).Draw(t, "every"), lease)
			if err != nil {
				t.Fatal(err)
			}
			p.Nemeses = append(p.Nemeses, n)
		}
		window := rapid.IntRange(0, 1000).Draw(t, "number")
		text := p.Script(window)
		if _, err := scenarios.Parse("window.txt", []byte(text)); err != nil {
			t.Fatalf("%v in\n%s", err, text)
		}
		if p.Script(window) != text {
			t.Fatal("it is another script the second time")
		}
		waited := time.Duration(0)
		for _, line := range strings.Split(text, "\n") {
			if span, ok := strings.CutPrefix(line, "wait "); ok {
				d, err := time.ParseDuration(span)
				if err != nil {
					t.Fatal(err)
				}
				waited += d
			}
		}
		if waited != p.Window {
			t.Fatalf("it waits for %v, want %v:\n%s", waited, p.Window, text)
		}
	})
}

// TestPlanRoundTrips checks that the JSON form of a plan has every field.
func TestPlanRoundTrips(t *testing.T) {
	var plan, read soak.Plan
	fields := reflect.ValueOf(&plan).Elem()
	for i := range fields.NumField() {
		switch f := fields.Field(i); f.Interface().(type) {
		case int, time.Duration:
			f.SetInt(int64(i) + 2)
		case uint64:
			f.SetUint(1<<63 + 1)
		case []soak.Nemesis:
			for _, text := range []string{"pause:1m:5s..20s", "clock:30m:2s", "flush:1h"} {
				n, err := soak.ParseNemesis(text, lease)
				if err != nil {
					t.Fatal(err)
				}
				plan.Nemeses = append(plan.Nemeses, n)
			}
		default:
			t.Fatalf("%s is a %T: teach this test to fill one", fields.Type().Field(i).Name, f.Interface())
		}
	}
	text, err := json.Marshal(plan)
	if err == nil {
		err = json.Unmarshal(text, &read)
	}
	if err != nil {
		t.Fatal(err)
	}
	if got, want := fmt.Sprintf("%+v", read), fmt.Sprintf("%+v", plan); got != want {
		t.Errorf("%s is read as\n%s, want\n%s", text, got, want)
	}
}

// TestShorterWindows checks that a shorter window begins with the same faults.
func TestShorterWindows(t *testing.T) {
	n, err := soak.ParseNemesis("pause:1m:5s..20s", lease)
	if err != nil {
		t.Fatal(err)
	}
	p := soak.Plan{Clients: 3, Hold: time.Second, Window: time.Hour, Nemeses: []soak.Nemesis{n}, Seed: 7}
	faults := func(p soak.Plan) (list []string) {
		for _, line := range strings.Split(p.Script(3), "\n") {
			if strings.HasSuffix(line, "pause") || strings.HasPrefix(line, "wait") {
				list = append(list, line)
			}
		}
		return list
	}
	long := faults(p)
	p.Window = 10 * time.Minute
	short := faults(p)
	if len(short) < 5 || !slices.Equal(short[:len(short)-3], long[:len(short)-3]) {
		t.Errorf("ten minutes have\n%s\nan hour\n%s", strings.Join(short, "\n"), strings.Join(long, "\n"))
	}
}

// A scribe writes a history.
type scribe struct{ h checker.History }

func newScribe(clients ...string) *scribe {
	return &scribe{checker.History{Meta: checker.Meta{Format: 1, World: "sim", TTL: lease, Clients: clients, Nodes: []string{"n1"}}}}
}

func (s *scribe) at(seconds float64, e checker.Event) {
	e.Time, e.Index = time.Duration(seconds*float64(time.Second)), len(s.h.Events)
	s.h.Events = append(s.h.Events, e)
}

func (s *scribe) acquire(from, to float64, client string, r checker.Result) {
	call := len(s.h.Events) + 1
	s.at(from, checker.Event{Kind: checker.Invoke, Client: client, Op: checker.Acquire, Call: call})
	s.at(to, checker.Event{Kind: checker.Return, Client: client, Op: checker.Acquire, Call: call, Result: r})
}

func (s *scribe) release(at float64, client string) {
	call := len(s.h.Events) + 1
	s.at(at, checker.Event{Kind: checker.Invoke, Client: client, Op: checker.Release, Call: call})
	s.at(at, checker.Event{Kind: checker.Return, Client: client, Op: checker.Release, Call: call, Result: checker.OK})
}

func (s *scribe) write(at float64, client string, accepted bool) {
	s.at(at, checker.Event{Kind: checker.Write, Client: client, Accepted: accepted})
}

func TestCount(t *testing.T) {
	s := newScribe("A", "B", "C")
	s.acquire(0, 1, "A", checker.OK)
	s.acquire(2, 5, "B", checker.OK) // overlaps with A
	s.write(6, "B", true)            // based on the initial value
	s.write(7, "A", true)            // also based on the initial value: B's update is lost
	s.release(8, "A")                // overlap from 5 to 8
	s.acquire(9, 10, "C", checker.Fail)
	s.write(11, "B", false)
	s.release(12, "B")
	s.acquire(13, 13, "C", checker.OK)
	s.write(14, "C", true) // based on A's update
	s.at(15, checker.Event{Kind: checker.Crash, Client: "C"})
	s.acquire(20, 45, "A", checker.OK) // 30 s after C's crash, asked for during 25 of them
	s.release(46, "A")
	s.at(47, checker.Event{Kind: checker.End})
	v := checker.Verdict{Witnesses: []checker.Witness{{Anomaly: checker.Overlap, Events: []int{1, 3}}, {Anomaly: checker.Overlap, Events: []int{5}}}}
	got := soak.Count(s.h, v)
	const second = time.Second
	if got.Virtual != 47*second || got.Acquired != 4 || got.Failed != 1 || got.Unknown != 0 || got.Updates != 3 || got.Refused != 1 || got.Lost != 1 {
		t.Errorf("counted %+v", got)
	}
	for _, list := range []struct {
		name      string
		got, want []time.Duration
	}{
		{"overlaps", got.Overlaps, []time.Duration{3 * second}},
		{"outages", got.Outages, []time.Duration{25 * second}},
		{"recoveries", got.Recoveries, []time.Duration{30 * second}},
	} {
		if !slices.Equal(list.got, list.want) {
			t.Errorf("%s: %v, want %v", list.name, list.got, list.want)
		}
	}
	if got.Anomalies[checker.Overlap] != 2 || got.First[checker.Overlap] != 5*second {
		t.Errorf("%d overlaps, the first after %v", got.Anomalies[checker.Overlap], got.First[checker.Overlap])
	}
}

// TestRefusedForGood checks that a lock which a server refuses is one outage, though each acquire returns
// at once, and that its occurrences are judged.
func TestRefusedForGood(t *testing.T) {
	s := newScribe("A", "B")
	for at := 1.0; at < 60; at += 20 {
		for _, client := range []string{"A", "B"} {
			s.acquire(at, at, client, checker.Unknown)
			s.h.Events[len(s.h.Events)-1].Error = "NOSCRIPT No matching script."
		}
	}
	s.at(61, checker.Event{Kind: checker.End})
	got := soak.Count(s.h, checker.Check(s.h))
	if !slices.Equal(got.Outages, []time.Duration{60 * time.Second}) {
		t.Errorf("outages %v, want one of 1m0s", got.Outages)
	}
	got.Judge(s.h, leases.Lock{})
	if of := got.Judged[checker.Unavailable]; of.Outcome != leases.Bug || of.Occurrences[leases.Bug] != 2 || of.At != time.Second {
		t.Errorf("it is judged %+v", of)
	}
}

// TestLostUpdatesAreOfASet checks lost updates against a model: a set to which each update adds
// itself, so that lost updates are missing at the end.
func TestLostUpdatesAreOfASet(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := newScribe("A", "B", "C")
		set, found, written := []int{}, map[string][]int{}, 0
		for i := range rapid.IntRange(0, 40).Draw(t, "events") {
			client := rapid.SampledFrom([]string{"A", "B", "C"}).Draw(t, "client")
			if rapid.Bool().Draw(t, "reads") {
				s.acquire(float64(i), float64(i), client, checker.OK)
				found[client] = set
				continue
			}
			accepted := rapid.Bool().Draw(t, "accepted")
			s.write(float64(i), client, accepted)
			if accepted {
				written++
				set = append(slices.Clone(found[client]), i)
				found[client] = set
			}
		}
		if got := soak.Count(s.h, checker.Verdict{}); got.Lost != written-len(set) || got.Updates != written {
			t.Fatalf("%d of %d lost, want %d of %d", got.Lost, got.Updates, written-len(set), written)
		}
	})
}

// TestRates checks the confidence intervals. For a count they are Garwood's, from his table; equal
// windows have the same interval; windows that differ by more than chance have a wider one, and a
// single window has none.
func TestRates(t *testing.T) {
	sum := func(counts ...int) *soak.Sum {
		var s soak.Sum
		for _, n := range counts {
			s.Add(soak.Counts{Updates: 100, Lost: n})
		}
		return &s
	}
	near := func(a, b float64) bool { return math.Abs(a-b) < 5e-4 }
	for _, test := range []struct {
		counts      []int
		least, most float64 // of the count
	}{
		{[]int{0}, 0, 3.689}, {[]int{1, 1}, 0.2422, 7.2247}, {[]int{5, 5}, 4.7954, 18.3904}, {[]int{5, 5, 5, 5}, 12.217, 30.888},
	} {
		n := float64(100 * len(test.counts))
		r := sum(test.counts...).Losses()
		if !near(r.Least*n, test.least) || !near(r.Most*n, test.most) {
			t.Errorf("%v: from %v to %v, want %v to %v", test.counts, r.Least*n, r.Most*n, test.least, test.most)
		}
	}
	if even, uneven := sum(10, 10, 10, 10).Losses(), sum(0, 0, 0, 40).Losses(); uneven.Of != even.Of || uneven.Most < 2*even.Most || uneven.Least != 0 {
		t.Errorf("windows that differ: %+v, that don't: %+v", uneven, even)
	}
	if r := sum(5).Losses(); r.Of != 0.05 || r.Least != 0 || !math.IsInf(r.Most, 1) {
		t.Errorf("of one window, of which nobody knows how it differs from others: %+v", r)
	}
	if r := new(soak.Sum).Losses(); r.Of != 0 || !math.IsInf(r.Most, 1) {
		t.Errorf("of nothing: %+v", r)
	}
}

func TestDurations(t *testing.T) {
	var s soak.Sum
	for i := range 1000 {
		s.Add(soak.Counts{Overlaps: []time.Duration{time.Duration(i+1) * time.Millisecond}})
	}
	s.Add(soak.Counts{Overlaps: []time.Duration{0, 5000 * time.Hour}})
	if d := s.Overlap; d.Count != 1002 || d.Quantile(50) < 495*time.Millisecond || d.Quantile(50) > 505*time.Millisecond || d.Quantile(100) < 990*time.Hour {
		t.Errorf("%d, half within %v, all within %v", d.Count, d.Quantile(50), d.Quantile(100))
	}
	var none soak.Durations
	if none.Quantile(50) != 0 {
		t.Error("of nothing half is within something")
	}
}
