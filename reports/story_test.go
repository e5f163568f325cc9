package reports_test

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/lockfault/lockfault/checker"
	"github.com/lockfault/lockfault/reports"
)

// history returns a history of the events, with their indices set.
func history(meta checker.Meta, events ...checker.Event) checker.History {
	for i := range events {
		events[i].Index = i
	}
	return checker.History{Meta: meta, Events: events}
}

func ms(n int) time.Duration { return time.Duration(n) * time.Millisecond }

// race returns a small version of the race of document 000: A wins, and B restores the wrong value.
func race() checker.History {
	meta := checker.Meta{Format: 1, Strategy: "getset", Scenario: "race", World: "sim", Seed: 1,
		Clients: []string{"A", "B"}, Nodes: []string{"n1"}, TTL: 30 * time.Second}
	command := func(at int, client, text string) checker.Event {
		return checker.Event{Time: ms(at), Kind: checker.Request, Client: client, Node: "n1", Conn: 1, Command: text}
	}
	reply := func(at int, client, text, answer string) checker.Event {
		return checker.Event{Time: ms(at), Kind: checker.Reply, Client: client, Node: "n1", Conn: 1, Command: text, Reply: answer}
	}
	key := func(at int, by, owner string) checker.Event {
		return checker.Event{Time: ms(at), Kind: checker.State, Client: by, Node: "n1", Server: "n1/0",
			Owner: owner, Value: owner + "1", Cause: checker.ByCommand}
	}
	return history(meta,
		checker.Event{Time: 0, Kind: checker.Step, Line: 3, Text: "hold B before GETSET"},
		checker.Event{Time: 0, Kind: checker.Fault, Text: "hold B before GETSET"},
		checker.Event{Time: 0, Kind: checker.Step, Line: 4, Text: "begin A B acquire"},
		checker.Event{Time: 0, Kind: checker.Invoke, Client: "A", Op: checker.Acquire, Call: 1},
		checker.Event{Time: 0, Kind: checker.Invoke, Client: "B", Op: checker.Acquire, Call: 2},
		checker.Event{Time: ms(1), Kind: checker.Held, Client: "B", Node: "n1", Direction: "request", Command: "GETSET lock B1"},
		command(2, "A", "GETSET lock A1"),
		key(2, "A", "A"),
		reply(3, "A", "GETSET lock A1", `"D1"`),
		checker.Event{Time: ms(3), Kind: checker.Return, Client: "A", Op: checker.Acquire, Call: 1, Result: checker.OK},
		checker.Event{Time: ms(4), Kind: checker.Passed, Client: "B", Node: "n1", Direction: "request", Command: "GETSET lock B1"},
		command(4, "B", "GETSET lock B1"),
		key(4, "B", "B"),
		reply(5, "B", "GETSET lock B1", `"A1"`),
		checker.Event{Time: ms(5), Kind: checker.Invoke, Client: "A", Op: checker.Release, Call: 3},
		command(6, "A", "GET lock"),
		reply(7, "A", "GET lock", `"B1"`),
		checker.Event{Time: ms(7), Kind: checker.Return, Client: "A", Op: checker.Release, Call: 3, Result: checker.Fail, Error: "lock not held"},
		checker.Event{Time: ms(8), Kind: checker.End},
	)
}

// mishaps returns a history with an event of every other kind.
func mishaps() checker.History {
	meta := checker.Meta{Format: 1, World: "sim", Seed: 2, TTL: 30 * time.Second, HonourValidity: true, Fenced: true,
		Clients: []string{"A", "B"}, Nodes: []string{"n1", "n2"}}
	return history(meta,
		checker.Event{Time: 0, Kind: checker.Invoke, Client: "A", Op: checker.TryAcquire, Call: 1},
		checker.Event{Time: ms(1), Kind: checker.State, Client: "A", Node: "n2", Server: "n2/0", Owner: "A", Value: "A1", Expires: ms(30_001), Cause: checker.ByCommand},
		checker.Event{Time: ms(1), Kind: checker.Return, Client: "A", Op: checker.TryAcquire, Call: 1, Result: checker.OK, Token: 7, Until: ms(20_000)},
		checker.Event{Time: ms(2), Kind: checker.Step, Line: 9, Text: "A pause"},
		checker.Event{Time: ms(2), Kind: checker.Pause, Client: "A"},
		checker.Event{Time: ms(3), Kind: checker.Dropped, Client: "A", Node: "n1", Direction: "reply", Command: "SET lock A1 NX PX 30000"},
		checker.Event{Time: ms(4), Kind: checker.Push, Client: "B", Node: "n1", Conn: 2, Reply: `"0"`},
		checker.Event{Time: ms(5), Kind: checker.Fault, Node: "n2", Text: "n2 failover"},
		checker.Event{Time: ms(5), Kind: checker.State, Node: "n2", Server: "n2/1", Cause: checker.ByFailover},
		checker.Event{Time: ms(6), Kind: checker.Return, Client: "B", Op: checker.Acquire, Call: 2, Result: checker.OK, Token: 8},
		checker.Event{Time: ms(30_000), Kind: checker.Resume, Client: "A"},
		checker.Event{Time: ms(30_001), Kind: checker.Write, Client: "A", Token: 7},
		checker.Event{Time: ms(30_001), Kind: checker.Write, Client: "B", Token: 8, Accepted: true},
		checker.Event{Time: ms(30_002), Kind: checker.Lost, Client: "B"},
		checker.Event{Time: ms(30_003), Kind: checker.Measure, Text: "recovery", Took: ms(30_000)},
		checker.Event{Time: ms(30_004), Kind: checker.Crash, Client: "B"},
		checker.Event{Time: ms(30_005), Kind: checker.Restart, Client: "B"},
		checker.Event{Time: ms(30_006), Kind: checker.State, Node: "n1", Value: "leftover", Cause: checker.ByRestart},
		checker.Event{Time: ms(30_007), Kind: checker.Return, Client: "B", Op: checker.Extend, Call: 5, Result: checker.Unknown, Error: "i/o timeout"},
		checker.Event{Time: ms(30_008), Kind: checker.Step, Line: 12, Text: "A cancel"},
		checker.Event{Time: ms(30_008), Kind: checker.Cancel, Client: "A"},
		checker.Event{Time: ms(30_008), Kind: checker.End},
	)
}

func story(t *testing.T, c reports.Cell, h checker.History) string {
	t.Helper()
	var b bytes.Buffer
	if err := reports.Story(&b, c, h, reports.View{}); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func TestStoryOfARace(t *testing.T) {
	c := cell("getset", "race", anomalies(checker.Unreleasable), anomalies(checker.Unreleasable))
	c.Witnesses[0] = checker.Witness{Anomaly: checker.Unreleasable, Events: []int{9, 12, 17},
		Message: "A could not release, since B had put B1 in place of A1."}
	matches(t, "race.txt", story(t, c, race()))
}

func TestStoryOfMishaps(t *testing.T) {
	c := cell("fenced", "mishaps", anomalies(checker.LostLock), nil)
	var all []int
	for i := range mishaps().Events {
		all = append(all, i)
	}
	c.Witnesses[0].Events = append(all, 99)
	c.Measures = map[string]time.Duration{"recovery": 30 * time.Second}
	c.MetNothing = []reports.MetNothing{{Line: 4, Text: "drop A before HSET"}, {Line: 6, Text: "drop messages or none", OrNone: true}}
	matches(t, "mishaps.txt", story(t, c, mishaps()))
}

// unordered returns a cell that held although its acquires and releases have no legal order.
func unordered() reports.Cell {
	c := cell("fenced", "mishaps", nil, nil)
	c.Linearizable, c.Conflict = false, &checker.Conflict{Events: []int{2, 9}, Message: "B acquired, after A's validity had ended."}
	return c
}

func TestStoryOfWhatHasNoLegalOrder(t *testing.T) {
	text := story(t, unordered(), mishaps())
	want := "held: nothing went wrong\n\nlinearizable: no, the acquires and releases have no legal order\n" +
		"B acquired, after A's validity had ended.\n" +
		"  2  at 0.001 s A's try succeeded with fencing token 7\n  9  at 0.006 s B's acquire succeeded with fencing token 8\n" +
		"as expected: nothing\n"
	if !strings.HasSuffix(text, want) {
		t.Errorf("got\n%s\nwant at its end\n%s", text, want)
	}

	// An overlap has the same meaning, and its proof is already shown.
	c := unordered()
	c.Verdict, c.Anomalies = reports.Violated, anomalies(checker.Overlap)
	if text := story(t, c, mishaps()); strings.Contains(text, c.Conflict.Message) {
		t.Errorf("the story tells of the conflict beside the overlap:\n%s", text)
	}
}

func TestReportOfWhatHasNoLegalOrder(t *testing.T) {
	plain := cell("redlock", "mishaps", nil, nil)
	dir := write(t, []reports.Cell{plain, unordered()}, []int{0, 1})
	want := "- `fenced`: held ([history](histories/sim/fenced/mishaps.jsonl))\n" +
		"  - not linearizable: B acquired, after A's validity had ended. Events 2, 9.\n- held: `redlock`\n"
	if text := read(t, dir, reports.MarkdownFile); !strings.HasSuffix(text, want) {
		t.Errorf("got\n%s\nwant at its end\n%s", text, want)
	}
	if text := read(t, dir, reports.ResultsFile); strings.Count(text, `"conflict"`) != 1 ||
		!strings.Contains(text, `"linearizable":false,"conflict":{"events":[2,9],"says":"B acquired, after A's validity had ended."}`) {
		t.Errorf("results.json has not the conflict:\n%s", text)
	}
}

func TestStoryWithoutAHistory(t *testing.T) {
	c := sample()[6]
	text := story(t, c, checker.History{})
	for _, want := range []string{"set-nx|px under flush\n", "error: panic: out of cheese", "main.explode()"} {
		if !strings.Contains(text, want) {
			t.Errorf("the story does not say %q:\n%s", want, text)
		}
	}
	if strings.Contains(text, "linearizable") {
		t.Errorf("the story says whether a cell without an answer is linearizable:\n%s", text)
	}
}

// FuzzStory checks that a story can be drawn from a history that was truncated or edited.
func FuzzStory(f *testing.F) {
	f.Add("invoke", "A", "n1", "acquire", "ok", int64(5), 3)
	f.Add("state", "A", "n1", "", "", int64(-1), -1)
	f.Add("reply", "A", "n1", "", "", int64(1<<62), 3)
	f.Add("request", "B", "n1", "", "", int64(-1<<62), 1<<62)
	f.Fuzz(func(t *testing.T, kind, client, node, op, result string, at int64, witness int) {
		e := checker.Event{Kind: checker.Kind(kind), Client: client, Node: node, Op: checker.Op(op),
			Result: checker.Result(result), Time: time.Duration(at), Until: time.Duration(at), Owner: client}
		h := race()
		h.Events = append(h.Events, e, e)
		h.Meta.HonourValidity = true
		c := cell("a", "b", anomalies(checker.Overlap), nil)
		c.Witnesses[0].Events = []int{witness, len(h.Events) - 1}
		for _, v := range []reports.View{
			{}, {All: true}, {Only: []string{client, node}}, {Around: &reports.Neighbourhood{Event: witness, Lines: int(at)}},
		} {
			var b bytes.Buffer
			if err := reports.Story(&b, c, h, v); err != nil {
				t.Error(err)
			}
		}
	})
}

// TestShortStoryOfRealServers checks that the short story is the same if changes of a key are
// observed afterwards, with other events in between, as on real servers.
func TestShortStoryOfRealServers(t *testing.T) {
	short := func(h checker.History) string {
		var b bytes.Buffer
		if err := reports.Story(&b, cell("getset", "race", nil, nil), h, reports.View{}); err != nil {
			t.Fatal(err)
		}
		_, text, _ := strings.Cut(b.String(), "in short:\n")
		return text
	}
	want := short(race())
	if !strings.Contains(want, `B's GETSET lock B1 on n1 changed the key from A's to B's and was answered "A1"`) {
		t.Fatalf("in virtual time it is\n%s", want)
	}
	played := race()
	var events []checker.Event
	for _, e := range played.Events {
		if e.Kind == checker.State {
			e.Time += 300 * time.Microsecond
			// A request on a broken connection never gets a reply; another has no reply yet.
			lost := checker.Event{Time: e.Time, Kind: checker.Request, Client: e.Client, Node: "n1", Conn: 2, Command: "PING"}
			events = append(events, lost, checker.Event{Time: e.Time, Kind: checker.Step, Line: 9, Text: "await A held"})
		}
		events = append(events, e)
	}
	if got := short(history(played.Meta, events...)); !strings.Contains(got, `B's GETSET lock B1 on n1 changed the key from A's to B's and was answered "A1"`) ||
		strings.Contains(got, "PING") {
		t.Errorf("seen later it is\n%s\nwant\n%s", got, want)
	}
}

// TestShortStoryOfAService checks that the short story gives the last reply with a failed
// operation, and names the member of a cluster that received a command.
func TestShortStoryOfAService(t *testing.T) {
	at := func(n int, kind checker.Kind, client, node, command, reply string) checker.Event {
		return checker.Event{Time: ms(n), Kind: kind, Client: client, Node: node, Command: command, Reply: reply}
	}
	operation := func(n int, kind checker.Kind, op checker.Op, result checker.Result) checker.Event {
		return checker.Event{Time: ms(n), Kind: kind, Client: "A", Op: op, Result: result}
	}
	h := history(checker.Meta{Format: 1, Strategy: "s", Scenario: "x", World: "process", Service: "etcd", Clients: []string{"A"}, Nodes: []string{"n1", "n2"}, TTL: time.Second},
		operation(1, checker.Invoke, checker.Acquire, ""),
		at(2, checker.Request, "A", "n1", "AUTHENTICATE root", ""),
		sent(at(2, checker.Request, "A", "n2", "TXN", ""), 1500*time.Microsecond),
		sent(checker.Event{Time: ms(3), Kind: checker.State, Client: "A", Node: "n1", Server: "n1/0", Owner: "A", Value: "A1", Cause: checker.ByCommand}, 1500*time.Microsecond),
		at(3, checker.Reply, "A", "n1", "AUTHENTICATE root", "ok"),
		at(4, checker.Reply, "A", "n2", "TXN", "else"),
		operation(5, checker.Return, checker.Acquire, checker.Fail),
		operation(6, checker.Invoke, checker.Release, ""),
		operation(7, checker.Return, checker.Release, checker.Fail),
		// The request that caused this change is unknown.
		at(8, checker.Request, "A", "n1", "PUT", ""),
		checker.Event{Time: ms(9), Kind: checker.State, Client: "A", Node: "n1", Server: "n1/0", Cause: checker.ByCommand},
		at(10, checker.Reply, "A", "n1", "PUT", "ok"),
	)
	var b bytes.Buffer
	if err := reports.Story(&b, cell("s", "x", nil, nil), h, reports.View{}); err != nil {
		t.Fatal(err)
	}
	_, text, _ := strings.Cut(b.String(), "in short:\n")
	for _, want := range []string{"A's TXN on n2 made the key A's", "A's acquire failed after TXN was answered else\n", "A's release failed\n"} {
		if !strings.Contains(text, want) {
			t.Errorf("in short it is\n%s\nwithout %q", text, want)
		}
	}
	for _, never := range []string{"AUTHENTICATE", "PUT"} {
		if strings.Contains(text, never) {
			t.Errorf("in short it is\n%s\nwith %q", text, never)
		}
	}
}

// sent returns the event with the time at which it was sent.
func sent(e checker.Event, at time.Duration) checker.Event {
	e.Sent = at
	return e
}

// TestNamesThatAreNoText checks that a client's name may have any bytes.
func TestNamesThatAreNoText(t *testing.T) {
	h := race()
	h.Meta.Clients = []string{"A\xff(", "B"}
	for i := range h.Events {
		if h.Events[i].Client == "A" {
			h.Events[i].Client = "A\xff("
		}
		h.Events[i].Command = strings.ReplaceAll(h.Events[i].Command, "A1", "A\xff(1")
	}
	var b bytes.Buffer
	if err := reports.Story(&b, cell("getset", "race", nil, nil), h, reports.View{}); err != nil {
		t.Fatal(err)
	}
}
