package reports_test

import (
	"bytes"
	"encoding/json"
	"encoding/xml"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/lockfault/lockfault/checker"
	"github.com/lockfault/lockfault/reports"
)

// TestRebuild checks that a report that is rebuilt from its results and histories is
// byte-identical.
func TestRebuild(t *testing.T) {
	dir := write(t, sample(), []int{0, 1, 2, 3, 4, 5, 6, 7})
	was := map[string]string{}
	for _, name := range []string{reports.MarkdownFile, reports.HTMLFile} {
		was[name] = read(t, dir, name)
		if err := os.Remove(filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	if err := reports.Rebuild(t.Context(), dir); err != nil {
		t.Fatal(err)
	}
	for name, text := range was {
		if read(t, dir, name) != text {
			t.Errorf("%s is another one", name)
		}
	}
	// The results may be reformatted, with their keys in any order.
	var any map[string]any
	if err := json.Unmarshal([]byte(read(t, dir, reports.ResultsFile)), &any); err != nil {
		t.Fatal(err)
	}
	again, err := json.MarshalIndent(any, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, reports.ResultsFile), again, 0o644); err != nil {
		t.Fatal(err)
	}
	if err := reports.Rebuild(t.Context(), dir); err != nil {
		t.Error(err)
	}
	if read(t, dir, reports.MarkdownFile) != was[reports.MarkdownFile] {
		t.Error("of results that were formatted anew there is another report")
	}
	if err := os.WriteFile(filepath.Join(dir, reports.HTMLFile), []byte("<p>mine"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := reports.Rebuild(t.Context(), dir); err == nil || !strings.Contains(err.Error(), reports.HTMLFile) {
		t.Errorf("error %v, want one of the file that is somebody's", err)
	}
}

// hostile returns names that could break out of their context.
func hostile() []string {
	return []string{`<script>alert("x")</script>`, "a|b`c`", "two\nlines", "\x1b[31mred\x1b[0m", strings.Repeat("long", 2500), `"><img src=x onerror=alert(1)>`, "]]></svg>", "{{.}}", "[name](https://example.com/x)", "# title", "![x](y)"}
}

// hostileReport writes a report in which every name, text and reply is hostile.
func hostileReport(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	head := head()
	for _, text := range hostile() {
		head.Scripts = append(head.Scripts, reports.NewScript(text, text, text))
		head.Command = append(head.Command, text)
		head.Strategies = append(head.Strategies, reports.StrategyInfo{Name: text, Summary: text})
	}
	r, err := reports.Create(dir, head, reports.Plan{Cells: len(hostile())})
	if err != nil {
		t.Fatal(err)
	}
	for i, text := range hostile() {
		c, h := pause()
		c.Strategy, c.Scenario = text, text
		c.History = filepath.ToSlash(filepath.Join(reports.HistoryDir, "sim", "s", string(rune('a'+i))+".jsonl"))
		c.Witnesses[0].Message = text
		c.MetNothing = []reports.MetNothing{{Line: 1, Text: text}}
		c.Expected = nil
		c.Settle()
		h.Meta.World, h.Meta.Strategy, h.Meta.Scenario = c.World, text, text
		h.Meta.Clients = []string{text, "B"}
		for k := range h.Events {
			e := &h.Events[k]
			if e.Client == "A" {
				e.Client = text
			}
			if e.Owner == "A" {
				e.Owner, e.Value = text, text
			}
			if e.Command != "" {
				e.Command = text
			}
			if e.Reply != "" {
				e.Reply = text
			}
		}
		h.Events = append(h.Events[:len(h.Events)-1], checker.Event{Index: len(h.Events) - 1, Time: ms(33_005), Kind: checker.Fault, Text: text})
		if err := reports.WriteHistory(r.Dir(), c.History, h); err != nil {
			t.Fatal(err)
		}
		if err := r.Add(i, c); err != nil {
			t.Fatal(err)
		}
	}
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	return dir
}

func TestEverythingIsEscaped(t *testing.T) {
	dir := hostileReport(t)
	text := read(t, dir, reports.HTMLFile)
	if n := strings.Count(text, "<script"); n != 1 {
		t.Errorf("%d scripts, want the page's own", n)
	}
	for _, never := range []string{"<img", "\x1b", "{{.}}</script", "]]></svg>"} {
		if strings.Contains(text, never) {
			t.Errorf("%q came through", never)
		}
	}
	if longest := len(text); longest > 1<<20 {
		t.Errorf("the page has %d bytes: long names have come through each time", longest)
	}
	for i, name := range hostile() {
		for _, format := range reports.Formats() {
			var b bytes.Buffer
			if err := reports.DrawCell(&b, dir, name, name, "", format); err != nil {
				t.Fatalf("name %d as %s: %v", i, format, err)
			}
			if format == "svg" || format == "sequence" {
				wellFormed(t, b.String())
			}
			if format != "text" && strings.ContainsAny(b.String(), "\x1b") {
				t.Errorf("name %d as %s: a terminal would obey", i, format)
			}
		}
	}
}

// wellFormed fails the test unless the text is well-formed XML.
func wellFormed(t *testing.T, text string) {
	t.Helper()
	d := xml.NewDecoder(strings.NewReader(text))
	for {
		_, err := d.Token()
		if err == io.EOF {
			return
		}
		if err != nil {
			t.Fatalf("%v in\n%s", err, text)
		}
	}
}

// TestThePageIsWhole checks that a page is self-contained and that its links lead somewhere.
func TestThePageIsWhole(t *testing.T) {
	text := read(t, write(t, sample(), []int{0, 1, 2, 3, 4, 5, 6, 7}), reports.HTMLFile)
	for _, m := range regexp.MustCompile(`(?:src|href)="([^"]*)"`).FindAllStringSubmatch(text, -1) {
		if !strings.HasPrefix(m[1], "#") && m[1] != "data:," {
			t.Errorf("it asks for %s", m[1])
		}
	}
	if regexp.MustCompile(`@import|url\((?:[^#)]|$)`).MatchString(text) {
		t.Error("its style asks for something")
	}
	ids := map[string]bool{}
	for _, m := range regexp.MustCompile(` id="([^"]*)"`).FindAllStringSubmatch(text, -1) {
		if ids[m[1]] {
			t.Errorf("two places are called %s", m[1])
		}
		ids[m[1]] = true
	}
}

// TestStandardTellsOfOthers checks that for a lock that is played alone the standard supplies the
// other locks of its class, provided that the scenario's text and its lease are the standard's.
func TestStandardTellsOfOthers(t *testing.T) {
	text, err := os.ReadFile("../scenarios/library/pause-in-release.txt")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		what  string
		nodes int
		text  string
		ttl   time.Duration
		says  string
	}{
		{"as it is", 1, string(text), 0, "Avoidable: of the same kind set-nx-px-del, set-nx-px-lua"},
		{"on five nodes, of which there is no plain lease", 5, string(text), 0, "No other lock of its kind was played here, and none is known."},
		{"another script", 1, string(text) + "\n", 0, "No other lock of its kind was played here, and none is known."},
		{"other leases", 1, string(text), time.Second, "No other lock of its kind was played here, and none is known."},
	} {
		dir := t.TempDir()
		h := head()
		h.Scripts, h.TTL = []reports.Script{reports.NewScript("pause-in-release", "", c.text)}, c.ttl
		r, err := reports.Create(dir, h, reports.Plan{Cells: 1})
		if err != nil {
			t.Fatal(err)
		}
		mine := cell("mine", "pause-in-release", anomalies(checker.ForeignRelease), nil)
		mine.Nodes, mine.History = c.nodes, ""
		if err := r.Add(0, mine); err != nil {
			t.Fatal(err)
		}
		if err := r.Close(); err != nil {
			t.Fatal(err)
		}
		if page := read(t, dir, reports.HTMLFile); !strings.Contains(page, c.says) {
			t.Errorf("%s: the page doesn't say %q", c.what, c.says)
		}
	}
}

// TestStandardIsOfTheRun checks that a new standard depends only on the run and not on the old
// standard: here redlock no longer returns a validity.
func TestStandardIsOfTheRun(t *testing.T) {
	dir := t.TempDir()
	h := head()
	h.Scripts, h.Strategies = []reports.Script{reports.NewScript("s", "", "x")}, []reports.StrategyInfo{{Name: "redlock", Nodes: 5}}
	r, err := reports.Create(dir, h, reports.Plan{Cells: 1})
	if err != nil {
		t.Fatal(err)
	}
	c := cell("redlock", "s", anomalies(checker.Overlap), nil)
	c.Nodes, c.History, c.Acquires = 5, "", reports.Acquires{Acquired: []string{"A1"}}
	if err := r.Add(0, c); err != nil {
		t.Fatal(err)
	}
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	if err := reports.Standard(&b, filepath.Join(dir, reports.ResultsFile)); err != nil {
		t.Fatal(err)
	}
	if got, want := b.String(), `{"strategies":[
{"name":"redlock","nodes":5}
],"scenarios":[
{"name":"s","hash":"`+h.Scripts[0].Hash+`","shows":{"redlock":["overlap"]},"acquires":{"redlock":{"acquired":["A1"]}}}
]}
`; got != want {
		t.Errorf("the standard is\n%s\nwant\n%s", got, want)
	}
}

// TestInherentOrAvoidable checks that the other locks of a class decide whether an anomaly is
// inherent.
func TestInherentOrAvoidable(t *testing.T) {
	both, one := cell("a", "s1", anomalies(checker.Overlap), nil), cell("a", "s2", anomalies(checker.Ghost), nil)
	cells := []reports.Cell{both, cell("b", "s1", anomalies(checker.Overlap), nil), cell("c", "s1", nil, nil), one, cell("b", "s2", nil, nil), cell("c", "s2", anomalies(checker.StuckLock), nil)}
	for i := range cells {
		cells[i].Nodes, cells[i].History = 1, ""
	}
	cells[2].Nodes, cells[5].Nodes = 5, 5 // another class
	dir := t.TempDir()
	r, err := reports.Create(dir, head(), reports.Plan{Cells: len(cells)})
	if err != nil {
		t.Fatal(err)
	}
	for i, c := range cells {
		if err := r.Add(i, c); err != nil {
			t.Fatal(err)
		}
	}
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	text := read(t, dir, reports.HTMLFile)
	for _, want := range []string{
		"<td>1 node, plain lease</td><td>overlap</td><td class=\"wide\">s1</td>",
		"Inherent: every other lock of its kind shows it too.",
		"No other lock of its kind was played here, and none is known.",
		"Avoidable: of the same kind b did not show it.",
		"Take b instead: of the same kind, it shows nothing that this does not, and 1 anomaly fewer.",
		`<span class="avoidable">ghost</span>`, `<span>overlap</span>`,
	} {
		if !strings.Contains(text, want) {
			t.Errorf("the page doesn't say %q", want)
		}
	}
}

// TestEqualFailuresAreGrouped checks that cells with the same text, except for times, are in one
// group.
func TestEqualFailuresAreGrouped(t *testing.T) {
	late := func(strategy, reason string) reports.Cell {
		c := cell(strategy, "flush", nil, nil)
		c.Verdict, c.Reason = reports.Unknown, reason
		c.Settle()
		return c
	}
	text := read(t, write(t, []reports.Cell{late("a", "the machine was 1.5s late: wait"), late("b", "something else"), late("c", "the machine was 30ms late: wait")}, []int{0, 1, 2}), reports.HTMLFile)
	for _, want := range []string{
		`<li><b>unknown: the machine was … late: wait</b>: <a href="#a%2fflush">a under flush</a>, <a href="#c%2fflush">c under flush</a></li>`,
		`<li><b>unknown: something else</b>: <a href="#b%2fflush">b under flush</a></li>`,
	} {
		if !strings.Contains(text, want) {
			t.Errorf("the page has no %s", want)
		}
	}
}

// TestMarkdownIsPrintable checks that texts of a cell cannot move a terminal's cursor in Markdown
// either.
func TestMarkdownIsPrintable(t *testing.T) {
	c := cell("a", "flush", anomalies(checker.Ghost), nil)
	c.Witnesses[0].Message = "red \x1b[31m and\nmore"
	text := read(t, write(t, []reports.Cell{c}, []int{0}), reports.MarkdownFile)
	if strings.Contains(text, "\x1b") || !strings.Contains(text, `red ␛\[31m and more`) {
		t.Errorf("it has what moves a cursor:\n%q", text)
	}
}
