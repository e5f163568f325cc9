package reports_test

import (
	"bytes"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/lockfault/lockfault/checker"
	"github.com/lockfault/lockfault/internal/racetest"
	"github.com/lockfault/lockfault/reports"
	"github.com/lockfault/lockfault/reports/diagram"
	"github.com/lockfault/lockfault/reports/mermaid"
	"github.com/lockfault/lockfault/reports/perfetto"
	"github.com/lockfault/lockfault/reports/svg"
)

// pause returns the classic story about leases: A is paused for longer than its lease, B acquires
// and writes, and A writes over it.
func pause() (reports.Cell, checker.History) {
	meta := checker.Meta{Format: 1, Strategy: "set-nx|px", Scenario: "gc-pause", World: "sim", Seed: 1,
		Clients: []string{"A", "B"}, Nodes: []string{"n1"}, TTL: 30 * time.Second}
	acquire := func(at int, client string, call int) []checker.Event {
		set := "SET lock " + client + "1 NX PX 30000"
		return []checker.Event{
			{Time: ms(at), Kind: checker.Invoke, Client: client, Op: checker.Acquire, Call: call},
			{Time: ms(at + 1), Kind: checker.Request, Client: client, Node: "n1", Server: "n1/0", Command: set, Sent: ms(at)},
			{Time: ms(at + 1), Kind: checker.State, Client: client, Node: "n1", Server: "n1/0", Owner: client, Value: client + "1", Expires: ms(at + 30_001), Cause: checker.ByCommand},
			{Time: ms(at + 2), Kind: checker.Reply, Client: client, Node: "n1", Command: set, Reply: "OK", Sent: ms(at + 1)},
			{Time: ms(at + 2), Kind: checker.Return, Client: client, Op: checker.Acquire, Call: call, Result: checker.OK},
		}
	}
	events := acquire(0, "A", 1)
	events = append(events,
		checker.Event{Time: ms(2), Kind: checker.Pause, Client: "A"},
		checker.Event{Time: ms(30_001), Kind: checker.State, Node: "n1", Server: "n1/0", Cause: checker.ByExpiry})
	events = append(events, acquire(33_000, "B", 2)...)
	events = append(events,
		checker.Event{Time: ms(33_002), Kind: checker.Write, Client: "B", Accepted: true},
		checker.Event{Time: ms(33_003), Kind: checker.Resume, Client: "A"},
		checker.Event{Time: ms(33_004), Kind: checker.Write, Client: "A", Accepted: true},
		checker.Event{Time: ms(33_005), Kind: checker.End})
	c := cell("set-nx|px", "gc-pause", anomalies(checker.Overlap, checker.StaleWrite), anomalies(checker.Overlap, checker.StaleWrite))
	c.Witnesses = []checker.Witness{
		{Anomaly: checker.Overlap, Events: []int{4, 11}, Message: "B acquired at 33.002s while A still held it."},
		{Anomaly: checker.StaleWrite, Events: []int{4, 11, 14}, Message: "The resource accepted a write of A."},
	}
	return c, history(meta, events...)
}

func TestPictureOfAPause(t *testing.T) {
	p := reports.Picture(pausedOf(t))
	var lanes []string
	for _, l := range p.Lanes {
		lanes = append(lanes, l.Name)
	}
	if got := strings.Join(lanes, " "); got != "A B n1 resource" {
		t.Errorf("lanes %q", got)
	}
	spans := map[string]diagram.Span{}
	for _, s := range p.Spans {
		spans[p.Lanes[s.Lane].Name+" "+s.Label] = s
	}
	for name, want := range map[string][2]time.Duration{
		"A holds":       {ms(2), ms(33_005)},
		"B holds":       {ms(33_002), ms(33_005)},
		"A paused 33 s": {ms(2), ms(33_003)},
		"A acquire: ok": {0, ms(2)},
		"n1 A":          {ms(1), ms(30_001)},
		"n1 B":          {ms(33_001), ms(33_005)},
	} {
		if s, ok := spans[name]; !ok || s.From != want[0] || s.To != want[1] {
			t.Errorf("%s: %+v (there: %v), want %v", name, s, ok, want)
		}
	}
	if len(p.Overlaps) != 1 || p.Overlaps[0].From != ms(33_002) || p.Overlaps[0].Label() != "overlap 3 ms, open at the end" {
		t.Errorf("overlaps %+v", p.Overlaps)
	}
	proves := 0
	for _, m := range p.Points {
		if m.Proves() {
			proves++
		}
	}
	if proves != 3 {
		t.Errorf("%d moments prove something, want 3", proves)
	}
	// The lease has its true length.
	if got, want := p.Axis.X(ms(30_001))-p.Axis.X(ms(2)), p.Axis.LeaseWidth; got < 0.98*want || got > 1.02*want {
		t.Errorf("the lease is %v wide, want %v", got, want)
	}
}

func pausedOf(t *testing.T) (reports.Cell, checker.History, int) {
	t.Helper()
	c, h := pause()
	return c, h, reports.MostMoments
}

func TestDrawings(t *testing.T) {
	c, h := pause()
	p := reports.Picture(c, h, reports.MostMoments)
	var timeline, sequence, text bytes.Buffer
	if err := svg.Timeline(&timeline, p, true); err != nil {
		t.Fatal(err)
	}
	if err := svg.Sequence(&sequence, p, true); err != nil {
		t.Fatal(err)
	}
	if err := mermaid.Of(p).Write(&text); err != nil {
		t.Fatal(err)
	}
	matches(t, "timeline.svg", timeline.String())
	matches(t, "sequence.svg", sequence.String())
	matches(t, "sequence.mmd", text.String())
	var trace bytes.Buffer
	if err := perfetto.Write(&trace, p); err != nil {
		t.Fatal(err)
	}
	matches(t, "perfetto.json", trace.String())
	if lines := strings.Count(text.String(), ": "); lines < len(p.Points) {
		t.Errorf("%d lines of %d moments", lines, len(p.Points))
	}
}

// TestFaultsAreSpans checks that every lasting fault is a span that ends with the line that ends
// the fault.
func TestFaultsAreSpans(t *testing.T) {
	fault := func(at int, node, client, text string) checker.Event {
		return checker.Event{Time: ms(at), Kind: checker.Fault, Node: node, Client: client, Text: text}
	}
	meta := checker.Meta{Format: 1, World: "sim", TTL: time.Second, Clients: []string{"A", "B"}, Nodes: []string{"n1", "n2"}}
	h := history(meta,
		checker.Event{Time: 0, Kind: checker.Invoke, Client: "A", Op: checker.Acquire, Call: 1},
		checker.Event{Time: 0, Kind: checker.Request, Client: "A", Node: "n1", Server: "n1/0", Command: "GET lock"},
		checker.Event{Time: 0, Kind: checker.Request, Client: "B", Node: "n2", Server: "n2/0", Command: "GET lock"},
		fault(1, "", "A", "partition A from n1"), fault(2, "n1", "", "n1 crash"), fault(3, "n2", "", "n2 split B"),
		fault(4, "", "", "partition B"), fault(5, "", "A", "heal A"), fault(6, "n1", "", "n1 restart empty"),
		fault(7, "n2", "", "n2 join"), fault(8, "", "", "heal"), fault(9, "n1", "", "n1 drift 2"),
		fault(9, "", "", "partition n2 from n1"), fault(10, "", "", "heal n2"),
		fault(12, "", "", "partition n1 from n2"), fault(13, "", "", "heal n2 from n3"), fault(14, "", "", "heal n2"),
		checker.Event{Time: ms(9), Kind: checker.Held, Client: "A", Node: "n1", Direction: "request", Command: "SET lock A1"},
		checker.Event{Time: ms(10), Kind: checker.Passed, Client: "A", Node: "n1", Direction: "request", Command: "SET lock A1"},
		checker.Event{Time: ms(15), Kind: checker.End})
	p := reports.Picture(cell("x", "y", nil, nil), h, reports.MostMoments)
	got := map[string][2]time.Duration{}
	for _, s := range p.Spans {
		got[p.Lanes[s.Lane].Name+" "+s.Label] = [2]time.Duration{s.From, s.To}
	}
	for name, want := range map[string][2]time.Duration{
		"A cut off from n1": {ms(1), ms(5)}, "n1 down": {ms(2), ms(6)}, "n2 split B": {ms(3), ms(7)}, "B cut off": {ms(4), ms(8)},
		"n2 cut off from n1": {ms(9), ms(10)}, "n1 cut off from n2": {ms(12), ms(14)}, "n1 drift 2": {ms(9), ms(15)}, "A kept: SET": {ms(9), ms(10)},
	} {
		if got[name] != want {
			t.Errorf("%s: %v, want %v; there are %v", name, got[name], want, got)
		}
	}
}

// TestALeaseOutlivesTheRun checks that a picture of a run that ends inside a lease extends to the
// end of the lease.
func TestALeaseOutlivesTheRun(t *testing.T) {
	meta := checker.Meta{Format: 1, World: "sim", TTL: 30 * time.Second, Clients: []string{"A"}, Nodes: []string{"n1"}}
	p := reports.Picture(cell("x", "y", nil, nil), history(meta,
		checker.Event{Time: ms(1), Kind: checker.State, Client: "A", Node: "n1", Server: "n1/0", Owner: "A", Value: "A1", Expires: ms(30_001), Cause: checker.ByCommand},
		checker.Event{Time: ms(9), Kind: checker.End}), reports.MostMoments)
	if got := p.Axis.X(ms(30_001)) - p.Axis.X(ms(9)); got < 0.99*p.Axis.LeaseWidth || p.End != ms(9) {
		t.Errorf("the run ends at %v, and what is left of the lease is %v wide of %v", p.End, got, p.Axis.LeaseWidth)
	}
}

// TestFailoverEndsThePrimarysKey checks that the key on a primary ends when the primary fails.
func TestFailoverEndsThePrimarysKey(t *testing.T) {
	meta := checker.Meta{Format: 1, World: "sim", TTL: time.Second, Clients: []string{"A"}, Nodes: []string{"n1"}}
	p := reports.Picture(cell("x", "y", nil, nil), history(meta,
		checker.Event{Time: ms(1), Kind: checker.Request, Client: "A", Node: "n1", Server: "n1/0", Command: "SET lock A1"},
		checker.Event{Time: ms(1), Kind: checker.State, Client: "A", Node: "n1", Server: "n1/0", Owner: "A", Value: "A1", Expires: ms(1001), Cause: checker.ByCommand},
		checker.Event{Time: ms(2), Kind: checker.Fault, Node: "n1", Text: "n1 failover"},
		checker.Event{Time: ms(2), Kind: checker.State, Node: "n1", Server: "n1/1", Cause: checker.ByFailover},
		checker.Event{Time: ms(9), Kind: checker.End}), reports.MostMoments)
	got := ""
	for _, s := range p.Spans {
		got += fmt.Sprintf("%s %s %v-%v open %v; ", p.Lanes[s.Lane].Name, s.Label, s.From, s.To, s.Open)
	}
	if want := "n1/0 A 1ms-2ms open false; n1/0 failed over 2ms-9ms open true; "; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

// TestPictureOfALongStory checks that the picture of a long story is a short excerpt with the
// proving events, and counts the rest.
func TestPictureOfALongStory(t *testing.T) {
	racetest.Skip(t)
	c, short := pause()
	meta, events := short.Meta, []checker.Event(nil)
	for i := range 50_000 {
		text := "GET " + strings.Repeat("x", i%41) // nothing to fold
		events = append(events, checker.Event{Time: ms(i), Kind: checker.Request, Client: "B", Node: "n1", Server: "n1/0", Command: text},
			checker.Event{Time: ms(i), Kind: checker.Reply, Client: "B", Node: "n1", Command: text, Reply: strings.Repeat("y", i%37)})
	}
	for _, e := range short.Events {
		e.Time += ms(50_000)
		events = append(events, e)
	}
	for i := range c.Witnesses {
		for k := range c.Witnesses[i].Events {
			c.Witnesses[i].Events[k] += 100_000
		}
	}
	p := reports.Picture(c, history(meta, events...), 30)
	proves := 0
	for _, m := range p.Points {
		if m.Proves() {
			proves++
		}
	}
	if len(p.Points) != 30 || proves != 3 || p.Left.All() < 1000 || len(p.Spans) > 60 {
		t.Errorf("%d moments, %d of which prove something, %+v left out, %d spans", len(p.Points), proves, p.Left, len(p.Spans))
	}
}

// TestPictureOfNothing checks that pictures of empty and malformed histories are drawn without a
// panic.
func TestPictureOfNothing(t *testing.T) {
	for _, h := range []checker.History{{}, history(checker.Meta{}, checker.Event{Kind: checker.End}), mishaps(), race()} {
		c := cell("x", "y", nil, nil)
		c.Witnesses = []checker.Witness{{Events: []int{-1, 5, 1 << 20}}}
		p := reports.Picture(c, h, reports.MostMoments)
		var b bytes.Buffer
		if svg.Timeline(&b, p, true) != nil || svg.Sequence(&b, p, true) != nil || mermaid.Of(p).Write(&b) != nil {
			t.Error("a buffer failed")
		}
	}
}

// lettersOf returns the texts of a group of a drawing.
func lettersOf(t *testing.T, drawing, class string) []string {
	t.Helper()
	_, rest, _ := strings.Cut(drawing, `<g class="`+class+`"`)
	group, _, _ := strings.Cut(rest, "</g>")
	var list []string
	for _, m := range regexp.MustCompile(`<text[^>]*>([^<]*)`).FindAllStringSubmatch(group, -1) {
		list = append(list, m[1])
	}
	return list
}

func timelineOf(t *testing.T, p diagram.Picture) string {
	t.Helper()
	var b bytes.Buffer
	if err := svg.Timeline(&b, p, true); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// TestLengthsOfWhatIsCut checks that the stated length of a span is that of the whole span, with
// the visible length if it is cut.
func TestLengthsOfWhatIsCut(t *testing.T) {
	c, h := pause()
	p := reports.Picture(c, h, 2) // from A's acquire to B's
	if p.Points[0].Event != 4 || p.Points[1].Event != 11 {
		t.Fatalf("moments %+v", p.Points)
	}
	drawing := timelineOf(t, p)
	for _, want := range []string{
		"A believed that it held the lock for 33 s, to the end of the run (the picture shows 33 s of it)",
		"B believed that it held the lock for 3 ms, to the end of the run (the picture shows 0 ns of it)",
		"B&#39;s acquire succeeded, after 2 ms", // not cut
		"A&#39;s process stood still for 33 s (the picture shows 33 s of it)",
		"overlap 3 ms, open at the end (the picture shows 0 ns of it)",
		">holds 33 s<", "l4,7-4,7H", // its pointed end
		"the key on n1 was A&#39;s, until 30.001 s, by a command of A, and was so for 30 s, until expiry (the picture shows 30 s of it)",
		"l-4-7z",
	} {
		if !strings.Contains(drawing, want) {
			t.Errorf("it doesn't say %q:\n%s", want, drawing)
		}
	}
	if whole := timelineOf(t, reports.Picture(c, h, reports.MostMoments)); strings.Contains(whole, "the picture shows") || strings.Contains(whole, "l4,7-4") {
		t.Errorf("nothing is cut of it, but:\n%s", whole)
	}
}

// TestNumbersOfProofs checks that the highlighted numbers in a picture are those of the proofs: not
// those of a command that made a proving change, nor of a conflict.
func TestNumbersOfProofs(t *testing.T) {
	for _, test := range []struct {
		proof, conflict []int
		timeline, rows  string
	}{
		{[]int{4, 11}, nil, "#4 #11", "4 11"},
		{[]int{2, 11}, []int{4, 11}, "#2 #11", "2 11"}, // a change of the key
		{[]int{1, 2, 14}, []int{5}, "#1 #2 #14", "1 2 14"},
	} {
		c, h := pause()
		c.Witnesses = []checker.Witness{{Anomaly: checker.Overlap, Events: test.proof}}
		if test.conflict != nil {
			c.Conflict = &checker.Conflict{Events: test.conflict}
		}
		p := reports.Picture(c, h, reports.MostMoments)
		if got := strings.Join(lettersOf(t, timelineOf(t, p), "wt c"), " "); got != test.timeline {
			t.Errorf("%v: timeline %q, want %q", test.proof, got, test.timeline)
		}
		var b bytes.Buffer
		if err := svg.Sequence(&b, p, true); err != nil {
			t.Fatal(err)
		}
		if got := strings.Join(lettersOf(t, b.String(), "wt e"), " "); got != test.rows {
			t.Errorf("%v: rows %q, want %q", test.proof, got, test.rows)
		}
	}
}

// TestEndsOfTheAxis checks that the times at both ends are readable and distinct.
func TestEndsOfTheAxis(t *testing.T) {
	for _, times := range [][]time.Duration{
		ns(0, 33_005_000_000), ns(33_210_000_000, 33_210_002_000), ns(33_210_002_100, 33_210_002_900), ns(0, 7), ns(3_600_000_000_000_000, 3_600_000_000_000_900),
		ns(0, 3_600_000_000_000_000), ns(5, 5),
	} {
		p := diagram.Picture{Axis: diagram.NewAxis(30*time.Second, times)}
		drawing := timelineOf(t, p)
		width, last, texts := 0, -1000.0, []string(nil)
		if _, err := fmt.Sscanf(regexp.MustCompile(` width="\d+"`).FindString(drawing), ` width="%d"`, &width); err != nil {
			t.Fatal(err)
		}
		for _, m := range regexp.MustCompile(`<text x="(\d+)" y="38">([\d.]+)<`).FindAllStringSubmatch(drawing, -1) {
			x, err := strconv.ParseFloat(m[1], 64)
			half := 3.5 * float64(len(m[2])) // for wide digits
			if err != nil || x-half < 45 || x+half > float64(width) || x-half < last {
				t.Errorf("%v: %s at %v of %d, error %v", times, m[2], x, width, err)
			}
			last = x + half
			texts = append(texts, m[2])
		}
		if n := len(texts); n == 0 || times[0] != times[1] && (n < 2 || texts[0] == texts[n-1]) {
			t.Errorf("%v: the times are %v", times, texts)
		}
	}
}

func ns(list ...time.Duration) []time.Duration { return list }

// TestLongNamesOfLanes checks that a name that is cut has an ellipsis, and a title with the full
// name.
func TestLongNamesOfLanes(t *testing.T) {
	c, h := pause()
	h.Meta.Clients[0] = "a-client-with-a-long-name"
	for i := range h.Events {
		if h.Events[i].Client == "A" {
			h.Events[i].Client = h.Meta.Clients[0]
		}
	}
	if drawing := timelineOf(t, reports.Picture(c, h, reports.MostMoments)); !strings.Contains(drawing, ">a-client-…<title>a-client-with-a-long-name</title></text>") {
		t.Errorf("it isn't in full in:\n%s", drawing)
	}
}
