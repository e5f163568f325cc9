package checker

import (
	"encoding/binary"
	"reflect"
	"slices"
	"strconv"
	"testing"
	"time"
)

// hostile makes a history out of any bytes, a few bytes an event, with no
// regard to what makes sense.
func hostile(data []byte) History {
	pick := func(of ...string) string {
		if len(data) == 0 {
			return of[0]
		}
		b := data[0]
		data = data[1:]
		return of[int(b)%len(of)]
	}
	number := func() time.Duration {
		if len(data) < 9 {
			return 0
		}
		n := binary.LittleEndian.Uint64(data)
		shift := data[8] % 64 // small numbers as well as huge ones
		data = data[9:]
		return time.Duration(n) >> shift
	}
	h := History{Meta: Meta{TTL: number(), Grace: number(), Bound: number(), HonourValidity: pick("", "x") == "x"}}
	for len(data) > 0 {
		h.Events = append(h.Events, Event{
			Index: int(number() % 3), Time: number(),
			Kind:   Kind(pick("invoke", "return", "state", "lost", "write", "pause", "resume", "crash", "restart", "fault", "request", "end", "", "?")),
			Client: pick("A", "B", "C", "", "nobody"), Node: pick("n1", "n2", ""), Server: pick("n1/0", "n1/1", ""),
			Op: Op(pick("acquire", "try", "release", "extend", "")), Call: int(number() % 5),
			Result: Result(pick("ok", "fail", "unknown", "")), Until: number(), Token: int64(number() % 3), Accepted: pick("", "x") == "x",
			Owner: pick("", "A", "B"), Value: pick("", "A1", "B1"), Expires: number(),
			Cause: Cause(pick("command", "expiry", "clock", "failover", "replication", "flush", "")),
			Text:  pick("", "n1 split A", "n1 join", "n1 failover", "n1", " join"),
		})
	}
	return h
}

func FuzzCheck(f *testing.F) {
	f.Add([]byte{})
	seed := make([]byte, 4000)
	for i := range seed {
		seed[i] = byte(i * i >> 3)
	}
	f.Add(seed)
	f.Fuzz(func(t *testing.T, data []byte) {
		h := hostile(data)
		v := Check(h)
		for _, w := range v.Witnesses {
			if len(w.Events) == 0 || !slices.IsSorted(w.Events) || w.Events[0] < 0 || w.Events[len(w.Events)-1] >= len(h.Events) || w.Message == "" {
				t.Errorf("%d events: %+v", len(h.Events), w)
			}
		}
		if !slices.IsSortedFunc(v.Anomalies(), func(a, b Anomaly) int {
			return slices.Index(Anomalies(), a) - slices.Index(Anomalies(), b)
		}) {
			t.Errorf("out of order: %v", v.Anomalies())
		}
		if again := Check(h); !reflect.DeepEqual(v, again) {
			t.Errorf("first %+v, then %+v", v, again)
		}
		for _, b := range Holds(h) {
			if b.Began < 0 || b.Ended <= b.Began || b.Ended > len(h.Events) || b.By == "" {
				t.Errorf("%d events: %+v", len(h.Events), b)
			}
		}
	})
}

// longHistory is one of well over n events, in which clients take turns and
// nothing is wrong until the very end.
func longHistory(n int) History {
	h := History{Meta: Meta{Format: 1, TTL: 30 * time.Second, Grace: 15 * time.Second, Bound: 150 * time.Second}}
	now := time.Duration(0)
	add := func(e Event) {
		now += time.Millisecond
		e.Index, e.Time = len(h.Events), now
		h.Events = append(h.Events, e)
	}
	clients := []string{"A", "B", "C", "D", "E", "F", "G", "H"}
	for call := 1; len(h.Events) < n; call += 3 {
		c, loser := clients[call%len(clients)], clients[(call+1)%len(clients)]
		add(Event{Kind: Invoke, Client: c, Op: Acquire, Call: call})
		add(Event{Kind: Request, Client: c, Node: "n1", Command: "SET"})
		add(Event{Kind: State, Client: c, Node: "n1", Server: "n1/0", Owner: c, Value: c + "1", Expires: now + 30*time.Second, Cause: ByCommand})
		add(Event{Kind: Return, Client: c, Op: Acquire, Call: call, Result: OK})
		add(Event{Kind: Invoke, Client: loser, Op: TryAcquire, Call: call + 1})
		add(Event{Kind: Return, Client: loser, Op: TryAcquire, Call: call + 1, Result: Fail})
		add(Event{Kind: Write, Client: c, Accepted: true})
		add(Event{Kind: Invoke, Client: c, Op: Release, Call: call + 2})
		add(Event{Kind: State, Client: c, Node: "n1", Server: "n1/0", Cause: ByCommand})
		add(Event{Kind: Return, Client: c, Op: Release, Call: call + 2, Result: OK})
	}
	add(Event{Kind: End})
	return h
}

func TestLongHistory(t *testing.T) {
	h := longHistory(100_000)
	if v, c := Check(h), Linearize(h); len(v.Witnesses) != 0 || c != nil {
		t.Errorf("%+v %+v", v, c)
	}
	if got, want := len(Holds(h)), len(h.Events)/10; got != want {
		t.Errorf("%d holds, want %d", got, want)
	}
}

func BenchmarkCheck(b *testing.B) {
	for _, n := range []int{1_000, 10_000, 100_000} {
		h := longHistory(n)
		b.Run(strconv.Itoa(n), func(b *testing.B) {
			for b.Loop() {
				Check(h)
			}
		})
	}
}
