package reports_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/lockfault/lockfault/checker"
	"github.com/lockfault/lockfault/reports"
)

// TestTellingIsTheStory checks that a Narrative has the lines and the words of the story.
func TestTellingIsTheStory(t *testing.T) {
	paused, pausedHistory := pause()
	for name, c := range map[string]struct {
		cell reports.Cell
		h    checker.History
	}{
		"race":    {cell("getset", "race", anomalies(checker.Unreleasable), nil), race()},
		"mishaps": {cell("fenced", "mishaps", anomalies(checker.LostLock), nil), mishaps()},
		"pause":   {paused, pausedHistory},
	} {
		for _, v := range []reports.View{{}, {All: true}, {Only: []string{"B"}}, {Around: &reports.Neighbourhood{Event: 5, Lines: 2}}} {
			var b strings.Builder
			if err := reports.Story(&b, c.cell, c.h, v); err != nil {
				t.Fatal(err)
			}
			told := reports.Narrate(c.cell, c.h, v)
			lines := strings.Split(b.String(), "\n")
			if lines[0] != told.Heading {
				t.Errorf("%s: heading %q, want %q", name, told.Heading, lines[0])
			}
			for i, r := range append([]reports.Row{reports.Headings()}, told.Rows...) {
				rest := lines[2+i]
				for _, text := range []string{r.Number, r.Seconds, r.What, r.Belief, r.Server, r.Result, r.Damage} {
					before, after, found := strings.Cut(rest, text)
					if !found || strings.TrimSpace(before) != "" {
						t.Errorf("%s, %+v: line %q has not %q next", name, v, lines[2+i], text)
					}
					rest = after
				}
				if rest != "" {
					t.Errorf("%s, %+v: the row of line %q has not %q", name, v, lines[2+i], rest)
				}
			}
			if line := lines[2+1+len(told.Rows)]; line != "" {
				t.Errorf("%s, %+v: line %q has no row", name, v, line)
			}
			if verdict := strings.Join(told.Verdict, "\n") + "\n"; !strings.HasSuffix(b.String(), verdict) {
				t.Errorf("%s, %+v: the verdict is\n%s\nwant the end of\n%s", name, v, verdict, b.String())
			}
		}
	}
}

// rowOf returns the row of an event.
func rowOf(t *testing.T, told reports.Narrative, event int) reports.Row {
	t.Helper()
	at := slices.IndexFunc(told.Rows, func(r reports.Row) bool { return slices.Contains(r.Events, event) })
	if at < 0 {
		t.Fatalf("no row tells event %d", event)
	}
	return told.Rows[at]
}

func TestTruths(t *testing.T) {
	c, h := pause()
	told := reports.Narrate(c, h, reports.View{})
	for _, want := range []struct {
		event                           int
		believers, keys, results, write string
		overlap                         bool
	}{
		{0, "", "", "", "", false},
		{1, "", "n1: A until 30.001", "", "", false},
		{4, "A", "n1: A until 30.001", "A acquire: ok", "", false},
		{6, "A", "n1: free", "A acquire: ok", "", false},
		{9, "A", "n1: B until 63.001", "A acquire: ok", "", false},
		{11, "A B", "n1: B until 63.001", "A acquire: ok, B acquire: ok", "", true},
		{14, "A B", "n1: B until 63.001", "A acquire: ok, B acquire: ok", "B accepted, A accepted", true},
	} {
		now := rowOf(t, told, want.event).Now
		if strings.Join(now.Believers, " ") != want.believers || strings.Join(now.Keys, ", ") != want.keys || strings.Join(now.Results, ", ") != want.results ||
			strings.Join(now.Writes, ", ") != want.write || now.Overlap() != want.overlap {
			t.Errorf("after event %d: %+v, want %+v", want.event, now, want)
		}
	}
}

// TestTruthsAfterAFailoverAndTwoAcquires checks that the key of a failed primary is gone, and that
// a client that acquired twice believes until its second release.
func TestTruthsAfterAFailoverAndTwoAcquires(t *testing.T) {
	meta := checker.Meta{Clients: []string{"A"}, Nodes: []string{"n1", "n2"}, TTL: 30 * time.Second}
	told := reports.Narrate(cell("a", "b", nil, nil), history(meta,
		checker.Event{Kind: checker.Request, Client: "A", Node: "n2", Server: "n2/0", Command: "SET"},
		checker.Event{Kind: checker.State, Client: "A", Node: "n2", Server: "n2/0", Owner: "A", Value: "A1", Cause: checker.ByCommand},
		checker.Event{Kind: checker.State, Node: "n1", Server: "n1/0", Value: "leftover"},
		checker.Event{Kind: checker.Invoke, Client: "A", Op: checker.Acquire, Call: 1},
		checker.Event{Kind: checker.Return, Client: "A", Op: checker.Acquire, Call: 1, Result: checker.OK},
		checker.Event{Kind: checker.Return, Client: "A", Op: checker.Acquire, Call: 2, Result: checker.OK},
		checker.Event{Kind: checker.Fault, Node: "n2", Text: "n2 failover"},
		checker.Event{Kind: checker.Invoke, Client: "A", Op: checker.Release, Call: 3},
		checker.Event{Kind: checker.Invoke, Client: "A", Op: checker.Release, Call: 4},
		checker.Event{Kind: checker.End},
	), reports.View{})
	if got := strings.Join(rowOf(t, told, 5).Now.Keys, ", "); got != "n1: leftover, no TTL, n2: A, no TTL" {
		t.Errorf("before the failover the keys are %s", got)
	}
	if got := strings.Join(rowOf(t, told, 6).Now.Keys, ", "); got != "n1: leftover, no TTL" {
		t.Errorf("after the failover the keys are %s", got)
	}
	for event, want := range map[int]string{5: "A", 7: "A", 8: ""} {
		if got := strings.Join(rowOf(t, told, event).Now.Believers, " "); got != want {
			t.Errorf("after event %d %q believe, want %q", event, got, want)
		}
	}
}

// TestLanesOfRows checks that a row has the lanes of all clients and servers that it concerns.
func TestLanesOfRows(t *testing.T) {
	told := reports.Narrate(cell("fenced", "mishaps", nil, nil), mishaps(), reports.View{})
	if got := strings.Join(told.Lanes, " "); got != "A B n1 n2/0 n2/1" {
		t.Fatalf("lanes %s", got)
	}
	ends := 0
	for _, r := range told.Rows {
		var names []string
		for _, lane := range r.Lanes {
			names = append(names, told.Lanes[lane])
		}
		got := strings.Join(names, " ")
		if r.Number == "" {
			ends++
			if got != "A" {
				t.Errorf("%q is of %q", r.What, got)
			}
		}
		for what, want := range map[string]string{"A calls try": "A", "── line 9: A pause": "A", "n2 failover": "n2/0 n2/1", "── the end": ""} {
			if r.What == what && got != want {
				t.Errorf("%q is of %q, want %q", what, got, want)
			}
		}
	}
	if ends != 1 {
		t.Errorf("%d validities end, want 1", ends)
	}
}
