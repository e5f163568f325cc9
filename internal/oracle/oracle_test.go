package oracle_test

import (
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/lockfault/lockfault/checker"
	"github.com/lockfault/lockfault/internal/oracle"
)

// histories draws well-formed histories in which everything goes wrong: few
// clients and nodes, each event drawn almost without regard to the last.
func histories(clients []string) *rapid.Generator[checker.History] {
	return rapid.Custom(func(t *rapid.T) checker.History {
		g := generator{T: t, clients: clients, calls: map[string]checker.Event{}, keys: map[string]checker.Event{}}
		g.h.Meta = checker.Meta{
			Format: 1, TTL: 30 * time.Second, Grace: 5 * time.Second, Bound: 50 * time.Second,
			HonourValidity: rapid.Bool().Draw(t, "honour"), Fenced: rapid.Bool().Draw(t, "fenced"),
			Nodes: rapid.SampledFrom([][]string{{"n1"}, {"n1", "n2"}}).Draw(t, "nodes"),
		}
		for range rapid.IntRange(2, 40).Draw(t, "steps") {
			g.now += rapid.SampledFrom([]time.Duration{0, 0, time.Millisecond, time.Second, 10 * time.Second, 31 * time.Second}).Draw(t, "later")
			g.step()
		}
		g.add(checker.Event{Kind: checker.End})
		return g.h
	})
}

type generator struct {
	*rapid.T
	clients []string
	h       checker.History
	now     time.Duration
	n       int
	calls   map[string]checker.Event // under way, by client
	keys    map[string]checker.Event // the last State, by server
}

func (g *generator) add(e checker.Event) {
	e.Index, e.Time = len(g.h.Events), g.now
	g.h.Events = append(g.h.Events, e)
}

func draw[T any](g *generator, of ...T) T { return rapid.SampledFrom(of).Draw(g.T, "of") }

func (g *generator) step() {
	client := draw(g, g.clients...)
	switch draw(g, "call", "call", "call", "call", "state", "state", "state", "win", "tangle", "write", "life", "fault", "beat") {
	case "call":
		if call, ok := g.calls[client]; ok {
			g.comeBack(call)
			return
		}
		g.n++
		e := checker.Event{Kind: checker.Invoke, Client: client, Call: g.n, Op: draw(g,
			checker.Acquire, checker.Acquire, checker.TryAcquire, checker.Release, checker.Release, checker.Extend)}
		g.calls[client] = e
		g.add(e)
	case "state":
		g.state(client)
	case "win":
		if _, ok := g.calls[client]; !ok {
			g.win(client)
		}
	case "tangle":
		g.tangle(client)
	case "write":
		g.add(checker.Event{Kind: checker.Write, Client: client, Accepted: draw(g, true, true, false), Token: draw[int64](g, 0, 0, 1, 2)})
	case "life":
		e := checker.Event{Client: client, Kind: draw(g, checker.Lost, checker.Pause, checker.Resume, checker.Resume, checker.Crash, checker.Restart, checker.Cancel)}
		if e.Kind == checker.Crash || e.Kind == checker.Restart {
			delete(g.calls, client)
		}
		g.add(e)
	case "beat": // a watchdog's requests, sometimes after a long time without anything else
		if draw(g, true, false) {
			g.now += 61 * time.Second
		}
		for range draw(g, 1, 1, 3) {
			g.add(checker.Event{Kind: checker.Request, Client: client, Node: "n1", Command: "EVAL renew " + draw(g, "1", "23")})
		}
	case "fault":
		g.add(checker.Event{Kind: checker.Fault, Node: "n1", Text: draw(g, "n1 split A", "n1 join", "n1 failover", "n1 flush")})
	}
}

// win is what goes together and by chance rarely would: an acquire that gets the
// key on all nodes, and a write.
func (g *generator) win(client string) {
	g.n++
	call := checker.Event{Kind: checker.Invoke, Client: client, Call: g.n, Op: checker.Acquire}
	g.add(call)
	for _, node := range g.h.Meta.Nodes {
		key := checker.Event{Kind: checker.State, Node: node, Server: node + "/0", Client: client, Owner: client,
			Value: client + "2", Expires: g.now + 30*time.Second, Cause: checker.ByCommand}
		g.keys[key.Server] = key
		g.add(key)
	}
	call.Kind, call.Result, call.Token = checker.Return, checker.OK, draw[int64](g, 0, 1, 2)
	g.add(call)
	g.add(checker.Event{Kind: checker.Write, Client: client, Accepted: draw(g, true, false), Token: call.Token})
}

// tangle lets two clients wait, each with a part of the lock.
func (g *generator) tangle(client string) {
	other := draw(g, g.clients...)
	for i, name := range []string{client, other} {
		if _, ok := g.calls[name]; !ok {
			g.n++
			g.calls[name] = checker.Event{Kind: checker.Invoke, Client: name, Call: g.n, Op: checker.Acquire}
			g.add(g.calls[name])
		}
		node := g.h.Meta.Nodes[i%len(g.h.Meta.Nodes)]
		key := checker.Event{Kind: checker.State, Node: node, Server: node + "/0", Client: name, Owner: name,
			Value: name + "1", Expires: g.now + 30*time.Second, Cause: checker.ByCommand}
		g.keys[key.Server] = key
		g.add(key)
	}
	g.now += draw(g, time.Second, 11*time.Second, 29*time.Second, 151*time.Second)
}

func (g *generator) comeBack(call checker.Event) {
	e := call
	e.Kind, e.Result = checker.Return, draw(g, checker.OK, checker.OK, checker.Fail, checker.Fail, checker.Unknown)
	if e.Result == checker.Unknown {
		e.Error = draw(g, "", "NOSCRIPT", "NOSCRIPT", "READONLY")
	}
	if e.Result == checker.OK && e.Op != checker.Release {
		e.Token = draw[int64](g, 0, 1, 2)
		if draw(g, true, false) {
			e.Until = g.now + draw(g, -time.Second, 5*time.Second, 29*time.Second)
		}
	}
	delete(g.calls, call.Client)
	g.add(e)
}

func (g *generator) state(client string) {
	server := draw(g, "n1/0", "n1/0", "n1/1", "n2/0")
	key := g.keys[server]
	e := checker.Event{Kind: checker.State, Node: server[:2], Server: server, Owner: key.Owner, Value: key.Value, Expires: key.Expires, Cause: draw(g,
		checker.ByCommand, checker.ByCommand, checker.ByCommand, checker.ByCommand, checker.ByExpiry, checker.ByClock,
		checker.ByFailover, checker.ByRestart, checker.ByFlush, checker.ByReplication)}
	if e.Cause == checker.ByCommand {
		e.Client = client
		if draw(g, true, false) {
			g.add(checker.Event{Kind: checker.Request, Client: client, Node: e.Node, Command: "SET"})
		}
	}
	switch draw(g, "gone", "own", "own", "anybody's", "expiry", "expiry") {
	case "gone":
		e.Owner, e.Value, e.Expires = "", "", 0
	case "own":
		e.Owner, e.Value = client, client+"1"
		e.Expires = draw(g, 0, g.now+30*time.Second)
	case "anybody's":
		e.Owner = draw(g, g.clients...)
		e.Value = e.Owner + "1"
	case "expiry":
		if e.Value != "" {
			e.Expires = draw(g, 0, g.now+time.Second, g.now+30*time.Second)
		}
	}
	g.keys[server] = e
	g.add(e)
}

func TestWitnessesAreProofs(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		h := histories([]string{"A", "B", "C"}).Draw(t, "history")
		first := map[checker.Anomaly]checker.Witness{}
		for _, w := range checker.Occurrences(h, 20) {
			if _, seen := first[w.Anomaly]; !seen {
				first[w.Anomaly] = w
			}
			if err := oracle.Witness(h, w); err != nil {
				var text strings.Builder
				_ = checker.Encode(&text, h)
				t.Fatalf("%v\n%s\n%s", err, w.Message, &text)
			}
		}
		if v := checker.Check(h); len(v.Witnesses) != len(first) {
			t.Fatalf("%d anomalies occur, and the verdict has %d", len(first), len(v.Witnesses))
		}
		for _, w := range checker.Check(h).Witnesses {
			if !reflect.DeepEqual(w, first[w.Anomaly]) {
				t.Fatalf("the witness %+v is not the first occurrence, %+v", w, first[w.Anomaly])
			}
		}
	})
}

// TestRandomHistoriesShowAll keeps the property above from being true of
// nothing: the histories that it draws show every anomaly.
func TestRandomHistoriesShowAll(t *testing.T) {
	seen := map[checker.Anomaly]int{}
	for seed := range 3000 {
		for _, a := range checker.Check(histories([]string{"A", "B"}).Example(seed)).Anomalies() {
			seen[a]++
		}
	}
	for _, a := range checker.Anomalies() {
		if seen[a] == 0 {
			t.Errorf("no random history shows %s; of the others: %v", a, seen)
		}
	}
	t.Log(seen)
}

func TestOverlapIsFoundWhereverItIs(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		h := histories([]string{"A", "B", "C"}).Draw(t, "history")
		v := checker.Check(h)
		if got, want := slices.Contains(v.Anomalies(), checker.Overlap), oracle.Overlaps(h); got != want {
			t.Errorf("overlap found: %v, by definition: %v", got, want)
		}
		if want := oracle.Doubtful(h); (v.Unjudged != nil) != want {
			t.Errorf("not judged: %v, by definition: %v", v.Unjudged, want)
		}
		if oracle.Overlaps(h) && checker.Linearize(h) == nil {
			t.Error("two clients held at one instant, and there is a legal order")
		}
	})
}

// TestEarliestProof checks that the checker misses nothing that the naive definitions of these
// anomalies prove, and finds the earliest proof.
func TestEarliestProof(t *testing.T) {
	found := map[checker.Anomaly]int{}
	rapid.Check(t, func(t *rapid.T) {
		h := histories([]string{"A", "B", "C"}).Draw(t, "history")
		v := checker.Check(h)
		for anomaly, kinds := range map[checker.Anomaly][]checker.Kind{
			checker.TokenOrder:   {checker.Return},
			checker.Keyless:      {checker.Invoke, checker.Return},
			checker.RefusedWrite: {checker.Return, checker.Write},
		} {
			if v.Unjudged != nil && slices.Contains(checker.ServerSide(), anomaly) {
				continue // it was not looked for
			}
			got := -1
			for _, w := range v.Witnesses {
				if w.Anomaly == anomaly {
					got = w.Events[len(w.Events)-1]
					found[anomaly]++
				}
			}
			if want := firstProof(h, anomaly, kinds); got != want {
				var text strings.Builder
				_ = checker.Encode(&text, h)
				t.Fatalf("%s is proven by event %d, and found at %d\n%s", anomaly, want, got, &text)
			}
		}
	})
	t.Log(found)
}

// firstProof returns the first event that ends a proof of the anomaly, by trying
// all that are made of these kinds; -1 if there is none.
func firstProof(h checker.History, anomaly checker.Anomaly, kinds []checker.Kind) int {
	var all []int // nothing else is part of a proof
	for i, e := range h.Events {
		if slices.Contains(kinds, e.Kind) && (e.Kind != checker.Return || e.Result == checker.OK) {
			all = append(all, i)
		}
	}
	proves := func(events ...int) bool {
		return oracle.Witness(h, checker.Witness{Anomaly: anomaly, Events: events}) == nil
	}
	for k, last := range all {
		for j, second := range all[:k] {
			if proves(second, last) {
				return last
			}
			for _, first := range all[:j] {
				if len(kinds) > 1 && h.Events[last].Kind == checker.Write && proves(first, second, last) {
					return last
				}
			}
		}
	}
	return -1
}

func TestWitnessIsRefused(t *testing.T) {
	h := checker.History{Events: []checker.Event{
		{Index: 0, Kind: checker.Invoke, Client: "A", Op: checker.Acquire, Call: 1},
		{Index: 1, Kind: checker.Return, Client: "A", Op: checker.Acquire, Call: 1, Result: checker.OK},
		{Index: 2, Kind: checker.Invoke, Client: "A", Op: checker.Release, Call: 2},
		{Index: 3, Kind: checker.Invoke, Client: "B", Op: checker.Acquire, Call: 3},
		{Index: 4, Kind: checker.Return, Client: "B", Op: checker.Acquire, Call: 3, Result: checker.OK},
	}}
	for _, test := range []struct {
		name   string
		w      checker.Witness
		reason string
	}{
		{"no overlap", checker.Witness{Anomaly: checker.Overlap, Events: []int{1, 4}}, "the first began one that lasts"},
		{"no anomaly", checker.Witness{Anomaly: "overlapping", Events: []int{1, 4}}, "is no anomaly"},
		{"no events", checker.Witness{Anomaly: checker.Overlap}, "ascending"},
		{"out of order", checker.Witness{Anomaly: checker.Overlap, Events: []int{4, 1}}, "ascending"},
		{"out of range", checker.Witness{Anomaly: checker.Overlap, Events: []int{1, 5}}, "in a history of 5"},
	} {
		err := oracle.Witness(h, test.w)
		if err == nil || !strings.Contains(err.Error(), test.reason) {
			t.Errorf("%s: got %v, want an error about %q", test.name, err, test.reason)
		}
	}
	for _, a := range checker.Anomalies() {
		for i := range h.Events {
			for j := i; j < len(h.Events); j++ {
				if oracle.Witness(h, checker.Witness{Anomaly: a, Events: []int{i, j}}) == nil {
					t.Errorf("%s %d %d: accepted in a history without anomalies", a, i, j)
				}
			}
		}
	}
}
