package reports_test

import (
	"bytes"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/lockfault/lockfault/checker"
	"github.com/lockfault/lockfault/reports"
)

// A scribe writes a history as its events happen.
type scribe struct {
	at     time.Duration
	events []checker.Event
}

func (s *scribe) write(e checker.Event) {
	e.Time, e.Index = s.at, len(s.events)
	s.events = append(s.events, e)
	s.at += time.Millisecond
}

func (s *scribe) ask(client, node, command string) {
	s.write(checker.Event{Kind: checker.Request, Client: client, Node: node, Server: node + "/0", Command: command})
}

func (s *scribe) answer(client, node, command, reply string) {
	s.write(checker.Event{Kind: checker.Reply, Client: client, Node: node, Command: command, Reply: reply, Sent: s.at})
}

func (s *scribe) round(client, node, command, reply string) {
	s.ask(client, node, command)
	s.answer(client, node, command, reply)
}

func (s *scribe) call(client string, op checker.Op) {
	s.write(checker.Event{Kind: checker.Invoke, Client: client, Op: op})
}

func (s *scribe) wait(n int) { s.at += ms(n) }

// polls returns a history in which B and C ask repeatedly.
func polls() checker.History {
	var s scribe
	s.write(checker.Event{Kind: checker.Step, Line: 5, Text: "A acquire"})
	s.call("A", checker.Acquire)
	s.ask("A", "n1", "SET lock A1 NX PX 30000")
	s.at -= time.Millisecond
	s.write(checker.Event{Kind: checker.State, Client: "A", Node: "n1", Server: "n1/0", Owner: "A", Value: "A1", Expires: ms(30_002), Cause: checker.ByCommand})
	s.answer("A", "n1", "SET lock A1 NX PX 30000", "OK")
	s.write(checker.Event{Kind: checker.Return, Client: "A", Op: checker.Acquire, Result: checker.OK})
	s.write(checker.Event{Kind: checker.Step, Line: 6, Text: "begin B C acquire"})
	s.call("B", checker.Acquire)
	s.call("C", checker.Acquire)
	s.ask("B", "n1", "SET lock B1 NX PX 30000") // the reply is lost
	s.write(checker.Event{Kind: checker.Dropped, Client: "B", Node: "n1", Direction: "reply", Command: "SET lock B1 NX PX 30000"})
	for i := range 8 {
		s.round("B", "n1", "SET lock B1 NX PX 30000", "(nil)")
		// C sends a new value each time, and gets the remaining time as the reply.
		s.round("C", "n1", fmt.Sprintf("SETNX lock C%d", i+1), "(integer) 0")
		s.round("C", "n1", "TTL lock", fmt.Sprintf("(integer) %d", 29-i))
		s.wait(3_500)
		if i == 5 { // while they wait
			s.ask("A", "n1", "PEXPIRE lock 30000")
			s.at -= time.Millisecond
			s.write(checker.Event{Kind: checker.State, Client: "A", Node: "n1", Server: "n1/0", Owner: "A", Value: "A1", Expires: s.at + 30*time.Second, Cause: checker.ByCommand})
			s.answer("A", "n1", "PEXPIRE lock 30000", "(integer) 1")
		}
	}
	s.write(checker.Event{Kind: checker.Step, Line: 7, Text: "n2 crash"})
	s.write(checker.Event{Kind: checker.Fault, Node: "n2", Text: "n2 crash"})
	// Three nodes reply at the same time in any order. Two rounds are too few for a fold.
	for i := range 4 {
		order := [][]string{{"n1", "n2", "n3"}, {"n3", "n1", "n2"}, {"n2", "n3", "n1"}, {"n1", "n3", "n2"}}[i]
		for _, node := range order {
			s.ask("B", node, "EVAL very long script that nobody wants to read 1 lock B1 30000")
		}
		for _, node := range order[1:] {
			s.answer("B", node, "EVAL very long script that nobody wants to read 1 lock B1 30000", "(nil)")
		}
		s.answer("B", order[0], "EVAL very long script that nobody wants to read 1 lock B1 30000", "(nil)")
		s.round("B", "n1", "PING", "PONG")
	}
	for range 2 {
		s.round("C", "n1", "GET lock", `"A1"`)
	}
	s.write(checker.Event{Kind: checker.State, Node: "n1", Server: "n1/0", Cause: checker.ByExpiry})
	for range 2 {
		s.round("C", "n1", "GET lock", `"A1"`)
	}
	s.write(checker.Event{Kind: checker.End})
	return checker.History{Meta: checker.Meta{Format: 1, World: "sim", Seed: 1, TTL: 30 * time.Second,
		Clients: []string{"A", "B", "C"}, Nodes: []string{"n1", "n2", "n3"}}, Events: s.events}
}

func viewed(t *testing.T, c reports.Cell, v reports.View) string {
	t.Helper()
	var b bytes.Buffer
	if err := reports.Story(&b, c, polls(), v); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func TestStoryOfPolls(t *testing.T) {
	c := cell("mine", "polls", nil, nil)
	for name, v := range map[string]reports.View{
		"polls.txt":              {},
		"polls-all.txt":          {All: true},
		"polls-around.txt":       {Around: &reports.Neighbourhood{Event: 12, Lines: 3}},
		"polls-first.txt":        {Around: &reports.Neighbourhood{Event: 0, Lines: 0}},
		"polls-only-client.txt":  {Only: []string{"C"}},
		"polls-only-link.txt":    {Only: []string{"A", "B", "n2/0", "n3"}},
		"polls-only-node.txt":    {Only: []string{"n1"}, All: true},
		"polls-around-other.txt": {Only: []string{"A"}, Around: &reports.Neighbourhood{Event: 13, Lines: 2}},
	} {
		matches(t, name, viewed(t, c, v))
	}
}

// TestWitnessesAreNotFolded checks that a proving event has its own line, between separate folds of
// the rounds before and after it.
func TestWitnessesAreNotFolded(t *testing.T) {
	for _, w := range []struct {
		event int
		lines []string
	}{
		{0, []string{"11-57 ", "13-61 "}}, // somewhere else
		{29, []string{"11-24 ", "29 ", "30 ", "35-57 ", "13-61 "}},
		{30, []string{"11-24 ", "29 ", "30 ", "35-57 ", "13-61 "}},
	} {
		c := cell("mine", "polls", anomalies(checker.Starvation), nil)
		c.Witnesses[0].Events = []int{w.event}
		text := viewed(t, c, reports.View{})
		for _, line := range w.lines {
			if !regexp.MustCompile(`(?m)^ *` + line).MatchString(text) {
				t.Errorf("with a proof of event %d there is no line %s:\n%s", w.event, line, text)
			}
		}
		c = unordered()
		c.Conflict.Events = []int{w.event}
		if conflict := viewed(t, c, reports.View{}); listing(conflict) != listing(text) {
			t.Errorf("event %d is a witness's, and then a conflict's:\n%s\n%s", w.event, text, conflict)
		}
	}
}

// listing returns the lines of the events.
func listing(story string) string {
	_, story, _ = strings.Cut(story, "\n\n")
	story, _, _ = strings.Cut(story, "\n\n")
	return story
}

// TestAttemptsThatCount checks that attempts that only increment a counter are folded. Changes of
// the owner or the expiry, and proving events, are not folded.
func TestAttemptsThatCount(t *testing.T) {
	const incr = "INCR lock"
	owner, expires, said := "A", ms(30_000), 0
	history := func(different string) checker.History {
		var s scribe
		s.write(checker.Event{Kind: checker.Step, Line: 5, Text: "B acquire"})
		for i := range 9 {
			client := "B"
			if i == 0 {
				client = "A"
			}
			s.ask(client, "n1", incr)
			s.at -= time.Millisecond
			state := checker.Event{Kind: checker.State, Client: client, Node: "n1", Server: "n1/0", Owner: owner, Value: fmt.Sprint(i + 1), Expires: expires, Cause: checker.ByCommand}
			if i == 4 {
				said = len(s.events)
				switch different {
				case "owner":
					state.Owner = ""
				case "expiry":
					state.Expires += time.Second
				case "gone":
					state.Owner, state.Value, state.Expires = "", "", 0
				case "another's":
					state.Client = "A"
				}
			}
			if different == "later" {
				s.at += time.Microsecond
			}
			s.write(state)
			s.answer(client, "n1", incr, fmt.Sprintf("(integer) %d", i+1))
		}
		s.write(checker.Event{Kind: checker.End})
		return checker.History{Meta: checker.Meta{Format: 1, World: "sim", Seed: 1, TTL: 30 * time.Second,
			Clients: []string{"A", "B"}, Nodes: []string{"n1"}}, Events: s.events}
	}
	tell := func(c reports.Cell, h checker.History) string {
		var b bytes.Buffer
		if err := reports.Story(&b, c, h, reports.View{}); err != nil {
			t.Fatal(err)
		}
		return b.String()
	}
	c := cell("mine", "polls", nil, nil)
	// Real servers are asked for the state of the key afterwards.
	if text := tell(c, history("later")); !strings.Contains(text, "B asks n1 8 times") || strings.Count(listing(text), incr) != 2 {
		t.Errorf("attempts that count are not told in one line where the change is seen later:\n%s", text)
	}
	text := tell(c, history(""))
	if !regexp.MustCompile(`(?m)^ *4-27 .* B asks n1 8 times in \S+: INCR lock gets 2 to 9 +n1: A until 30.000$`).MatchString(text) || strings.Count(listing(text), incr) != 2 {
		t.Errorf("attempts that count are not told in one line:\n%s", text)
	}
	if !strings.Contains(text, "in short:\n  1. A's INCR lock on n1 made the key A's and was answered (integer) 1\n\n") {
		t.Errorf("attempts that count are told in short:\n%s", text)
	}
	for _, different := range []string{"owner", "expiry", "gone", "another's", "named"} {
		h := history(different)
		c := cell("mine", "polls", nil, nil)
		if different == "named" {
			c.Conflict = &checker.Conflict{Events: []int{said}}
		}
		if text := tell(c, h); !regexp.MustCompile(fmt.Sprintf(`(?m)^ *(%d-)?%d `, said-1, said)).MatchString(text) {
			t.Errorf("%s: event %d has no line:\n%s", different, said, text)
		}
	}
}

// TestFoldsLoseNothing checks that folding loses and repeats no line: if every event proves
// something, the story equals the unfolded story.
func TestFoldsLoseNothing(t *testing.T) {
	c := cell("mine", "polls", nil, nil)
	all := viewed(t, c, reports.View{All: true})
	c.Conflict = &checker.Conflict{}
	for i := range polls().Events {
		c.Conflict.Events = append(c.Conflict.Events, i)
	}
	if got := viewed(t, c, reports.View{}); listing(got) != listing(all) {
		t.Errorf("got\n%s\nwant\n%s", got, all)
	}
	var told []string
	for _, line := range strings.Split(listing(all), "\n")[1:] {
		told = append(told, strings.Fields(line)[0])
	}
	if slices.Contains(told, "…") || len(told) < len(polls().Events)-4 {
		t.Errorf("%d lines of %d events: %q", len(told), len(polls().Events), told)
	}
}

// TestWhichReplyIsWhose checks that each of two equal commands gets its own reply in either order,
// and that a command whose reply was lost gets none.
func TestWhichReplyIsWhose(t *testing.T) {
	const set = "SET lock A1 NX PX 30000"
	state := checker.Event{Kind: checker.State, Client: "A", Node: "n1", Server: "n1/0", Owner: "A", Value: "A1", Expires: time.Minute, Cause: checker.ByCommand}
	for _, c := range []struct {
		name string
		late bool
		want string
	}{
		{"the first answer comes late", true, "1. A's SET lock A1 NX PX 30000 on n1 made the key A's and was answered OK\n"},
		{"the first answer is lost", false, "1. A's SET lock A1 NX PX 30000 on n1 made the key A's\n"},
	} {
		var s scribe
		s.ask("A", "n1", set)
		s.at -= time.Millisecond
		s.write(state)
		s.ask("A", "n1", set)
		if c.late {
			s.write(checker.Event{Kind: checker.Reply, Client: "A", Node: "n1", Command: set, Reply: "OK", Sent: 0})
		}
		s.answer("A", "n1", set, "(nil)")
		h := history(checker.Meta{TTL: 30 * time.Second, Clients: []string{"A"}}, s.events...)
		if text := story(t, cell("mine", "late", nil, nil), h); !strings.Contains(text, c.want) {
			t.Errorf("%s: the story does not say %q:\n%s", c.name, c.want, text)
		}
	}
}

// TestOnlyOneServer checks that a message that names no server of its node may be from any of them.
func TestOnlyOneServer(t *testing.T) {
	h := history(checker.Meta{TTL: 30 * time.Second, Clients: []string{"A"}, Nodes: []string{"n1", "n2"}},
		checker.Event{Kind: checker.Push, Client: "A", Node: "n1", Reply: "hello"},
		checker.Event{Kind: checker.State, Node: "n1", Server: "n1/1", Owner: "A", Value: "A1", Cause: checker.ByReplication},
		checker.Event{Kind: checker.End})
	for only, want := range map[string][2]bool{"n1": {true, true}, "n1/0": {true, false}, "n1/1": {true, true}, "n2/0": {}, "A": {true, true}} {
		var b bytes.Buffer
		if err := reports.Story(&b, cell("mine", "push", nil, nil), h, reports.View{Only: []string{only}}); err != nil {
			t.Fatal(err)
		}
		if got := [2]bool{strings.Contains(b.String(), "message hello"), strings.Contains(b.String(), "n1/1: A")}; got != want {
			t.Errorf("with only %s the push and the replica's key are told: %v, want %v\n%s", only, got, want, &b)
		}
	}
}
