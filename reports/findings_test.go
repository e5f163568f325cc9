package reports_test

import (
	"bytes"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/lockfault/lockfault/checker"
	"github.com/lockfault/lockfault/internal/leases"
	"github.com/lockfault/lockfault/reports"
)

// found returns the result of a search with two anomalies. Real servers were asked about the first;
// the second has an equal story.
func found() reports.Findings {
	c, h := pause()
	c.Expected = c.Anomalies
	c.Settle()
	script := "clients A B\n\nA acquire\nA pause\nwait 1.1ttl\nB acquire\nB write\nA resume\nA write\n\nexpect overlap stale-write\n"
	return reports.Findings{
		Strategy: "set-nx|px", Summary: "SET NX PX; released by DEL",
		Conclusions: []string{"Exhausted: there is no other anomaly within this bound (2 clients, 1 round, pause 1).", "It says nothing of more clients."},
		Notes:       []string{"states and moves are at most so many: what two shards looked at is counted twice"},
		Searched:    [][2]string{{"strategy", "set-nx|px"}, {"pause 1", "a fault, once at most: a client stops"}},
		Coverage:    [][2]string{{"states", "248 different ones"}, {"runs", "78 scripts were played for them"}},
		Provenance:  [][2]string{{"version", "lockfault v0.1.0"}, {"command", "lockfault explore 'set-nx|px' --pause 1"}},
		Worlds:      []string{"docker", "process"},
		List: []reports.Found{
			{Anomaly: checker.Overlap, Outcome: leases.Limitation, Reason: "A paused", Moves: 5, Requests: 2, ShrunkFrom: 9, File: "set-nx|px-overlap.txt", Script: script, Said: []string{"", "confirmed with a lease of 2s"}, Flags: []string{"--seed", "7"}, Cell: c, History: h},
			{Anomaly: checker.StaleWrite, Outcome: leases.Bug, Reason: "it is <b>one</b>", Moves: 6, Requests: 2, File: "set-nx|px-stale-write.txt", Script: script, Said: []string{"not reproduced", "confirmed"}, Cell: c, History: h},
		},
		Failures: []reports.Failed{{Script: "clients A\n\nA acquire\n", Err: "panic: out of cheese"}},
	}
}

func findingsPage(t *testing.T, f reports.Findings) string {
	t.Helper()
	var b bytes.Buffer
	if err := reports.WriteFindings(&b, f); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func TestFindings(t *testing.T) {
	text := findingsPage(t, found())
	matches(t, "findings.html", text)
	whole(t, text)
	if findingsPage(t, found()) != text {
		t.Error("the second time it is another page")
	}
}

// TestNoFindings checks that a search without findings has a page.
func TestNoFindings(t *testing.T) {
	f := found()
	f.List, f.Failures, f.Notes, f.Worlds = nil, nil, nil, nil
	text := findingsPage(t, f)
	whole(t, text)
	for _, want := range []string{"Nothing was found.", "Exhausted: there is no other anomaly"} {
		if !strings.Contains(text, want) {
			t.Errorf("it doesn't say %q", want)
		}
	}
	for _, never := range []string{"<article", `id="failures"`, "#stories"} {
		if strings.Contains(text, never) {
			t.Errorf("it has %s", never)
		}
	}
}

// TestFindingsThatDiffer checks the page of a finding that shows something else when it is played
// again, and of a script that failed.
func TestFindingsThatDiffer(t *testing.T) {
	f := found()
	f.List[0].Cell.Expected = anomalies(checker.Ghost)
	f.List[0].Cell.Settle()
	f.List[1].Cell = reports.Cell{World: "sim", Strategy: "set-nx|px", Scenario: "x", Verdict: reports.Error, Reason: "this program has no such strategy"}
	f.List[1].History = checker.History{}
	f.List[1].Cell.Settle()
	text := findingsPage(t, f)
	for _, want := range []string{"missing: ghost; not expected: overlap, stale-write", "this program has no such strategy"} {
		if !strings.Contains(text, want) {
			t.Errorf("it doesn't say %q", want)
		}
	}
}

// TestFindingsAreEscaped checks that names and texts are escaped, and that a page of all anomalies
// is small enough for an e-mail.
func TestFindingsAreEscaped(t *testing.T) {
	var bad strings.Builder
	for _, text := range hostile() {
		bad.WriteString(text)
	}
	f := found()
	text := bad.String()
	f.Strategy, f.Summary, f.Worlds = text, text, []string{text, `<script>`}
	f.Conclusions, f.Notes = hostile(), hostile()
	for _, h := range hostile() {
		f.Searched, f.Coverage, f.Provenance = append(f.Searched, [2]string{h, h}), append(f.Coverage, [2]string{h, h}), append(f.Provenance, [2]string{h, h})
		f.Failures = append(f.Failures, reports.Failed{Script: h, Err: h})
	}
	f.List = nil
	for i, a := range checker.Anomalies() {
		c, h := pause()
		name := hostile()[i%len(hostile())]
		c.Strategy, c.Scenario, c.Reason, c.Expected = name, name, name, nil
		c.Witnesses[0].Message = name
		c.MetNothing = []reports.MetNothing{{Line: 1, Text: name}}
		c.Settle()
		h.Meta.Clients = []string{name, "B"}
		for k := range h.Events {
			if e := &h.Events[k]; e.Client == "A" {
				e.Client, e.Command, e.Reply = name, name, name
			}
		}
		f.List = append(f.List, reports.Found{Anomaly: a, Moves: 1, File: name, Script: name, Said: []string{name, name}, Flags: []string{name}, Cell: c, History: h})
	}
	page := findingsPage(t, f)
	whole(t, page)
	if n := strings.Count(page, "<script"); n != 1 {
		t.Errorf("%d scripts, want the page's own", n)
	}
	for _, never := range []string{"<img", "\x1b", "]]></svg>"} {
		if strings.Contains(page, never) {
			t.Errorf("%q came through", never)
		}
	}
	if len(page) > 5<<20 {
		t.Errorf("the page has %d bytes", len(page))
	}
	if n := strings.Count(page, "<article"); n != len(checker.Anomalies()) {
		t.Errorf("%d stories, want one of each anomaly", n)
	}
}

// TestCheckFindingsPage checks that a foreign page is not accepted as a page of a search.
func TestCheckFindingsPage(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, reports.HTMLFile)
	if err := reports.CheckFindingsPage(dir); err != nil {
		t.Errorf("of nothing: %v", err)
	}
	for text, ours := range map[string]bool{
		findingsPage(t, found()): true,
		"<p>mine":                false,
		"":                       false,
		read(t, write(t, sample(), []int{0, 1}), reports.HTMLFile): false,
	} {
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		if err := reports.CheckFindingsPage(dir); (err == nil) != ours {
			t.Errorf("of %.40q: %v", text, err)
		}
	}
}

// whole fails the test unless the page is self-contained and each link leads to exactly one
// element.
func whole(t *testing.T, text string) {
	t.Helper()
	ids := map[string]bool{}
	for _, m := range regexp.MustCompile(` id="([^"]*)"`).FindAllStringSubmatch(text, -1) {
		if ids[m[1]] {
			t.Errorf("two places are called %s", m[1])
		}
		ids[m[1]] = true
	}
	for _, m := range regexp.MustCompile(`(?:src|href)="([^"]*)"`).FindAllStringSubmatch(text, -1) {
		if !strings.HasPrefix(m[1], "#") && m[1] != "data:," {
			t.Errorf("it asks for %s", m[1])
		}
	}
	for _, m := range regexp.MustCompile(`<a href="#([^"/]*)"`).FindAllStringSubmatch(text, -1) {
		if !ids[m[1]] {
			t.Errorf("nothing is called %s, where a link leads", m[1])
		}
	}
	if regexp.MustCompile(`@import|url\((?:[^#)]|$)`).MatchString(text) {
		t.Error("its style asks for something")
	}
}
