package reports_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/lockfault/lockfault/checker"
	"github.com/lockfault/lockfault/reports"
)

// twoWorlds returns cells of a simulated and a real world. One pair differs, and two cannot be
// compared.
func twoWorlds() []reports.Cell {
	overlap, both := anomalies(checker.Overlap), anomalies(checker.Overlap, checker.Ghost)
	simulated := []reports.Cell{
		cell("redlock", "flush", overlap, overlap), cell("fenced", "flush", nil, nil),
		cell("redlock", "node-down", nil, nil), cell("fenced", "node-down", nil, nil),
	}
	played := []reports.Cell{
		cell("redlock", "flush", both, overlap), cell("fenced", "flush", nil, nil),
		cell("redlock", "node-down", nil, nil), cell("fenced", "node-down", nil, nil),
	}
	for i := range played {
		played[i].World = "process"
		played[i].History = strings.Replace(played[i].History, "sim", "process", 1)
	}
	played[0].Late, played[0].Lease = []string{"the machine was 30ms late"}, 4*time.Second
	played[0].Twin = &reports.ReferenceCell{Verdict: reports.Violated, Anomalies: overlap}
	played[2].Verdict, played[2].Reason = reports.Unknown, "the machine was 7ms late"
	played[3].Verdict, played[3].Reason = reports.NotApplicable, "there is no compiler"
	for i := range played {
		played[i].Settle()
	}
	return append(simulated, played...)
}

func TestAgreement(t *testing.T) {
	var a reports.Agreement
	if !a.Empty() {
		t.Error("nothing was added, and yet there is something to compare")
	}
	cells := twoWorlds()
	slices.Reverse(cells) // in any order
	for _, c := range cells {
		if err := a.Add(c); err != nil {
			t.Fatal(err)
		}
	}
	want := []string{
		"process agrees with sim in 1 of 2 cells; 2 could not be compared",
		"redlock under flush: overlap in sim, overlap, ghost in process",
		"in sim all clients of a cell are one process: a lock that keeps state in package variables shares it among them there, and nowhere else",
	}
	if got := a.Lines(); !slices.Equal(got, want) {
		t.Errorf("got %q\nwant %q", got, want)
	}
	if a.Empty() || a.Differing() != 1 {
		t.Errorf("empty %v, %d differ", a.Empty(), a.Differing())
	}
	if err := a.Add(reports.Cell{Anomalies: anomalies("no such")}); err == nil {
		t.Error("an anomaly that nobody knows was taken")
	}
}

func TestReportOfTwoWorlds(t *testing.T) {
	dir := t.TempDir()
	r, err := reports.Create(dir, reports.Head{Version: "v0.1.0", World: "sim,process", Seed: 7}, reports.Plan{Cells: len(twoWorlds())})
	if err != nil {
		t.Fatal(err)
	}
	for i, c := range twoWorlds() {
		add(t, r, i, c)
	}
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	matches(t, "worlds.md", read(t, dir, reports.MarkdownFile))
	page := read(t, dir, reports.HTMLFile)
	_, matrix, _ := strings.Cut(page, `<table class="matrix">`)
	matrix, _, _ = strings.Cut(matrix, "</table>")
	matches(t, "worlds.html", matrix)
	for _, want := range []string{
		`<p class="note">In <a href="#redlock%2fflush%40process">process</a>: violated: overlap, ghost, unlike sim.</p>`,
		`<p class="note">In <a href="#redlock%2fflush">sim</a>: violated: overlap.</p>`,
		`<p class="note">attempt 1 was not judged: the machine was 30ms late</p>`,
		`<p class="note">attempt 2, with a lease of 4s, is this one</p>`,
		`<p class="note">with that lease sim showed: overlap</p>`,
	} {
		if !strings.Contains(page, want) {
			t.Errorf("the page has no %s", want)
		}
	}
	var agrees []string
	_, err = reports.Scan(filepath.Join(dir, reports.ResultsFile), func(c reports.Cell) error {
		says := "nothing to compare"
		if c.AgreesWithSim != nil && *c.AgreesWithSim {
			says = "agrees"
		} else if c.AgreesWithSim != nil {
			says = "differs"
		}
		agrees = append(agrees, c.World+" "+c.Strategy+" "+c.Scenario+": "+says)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	want := []string{
		"sim redlock flush: nothing to compare", "sim fenced flush: nothing to compare",
		"sim redlock node-down: nothing to compare", "sim fenced node-down: nothing to compare",
		"process redlock flush: differs", "process fenced flush: agrees",
		"process redlock node-down: nothing to compare", "process fenced node-down: nothing to compare",
	}
	if !slices.Equal(agrees, want) {
		t.Errorf("got %q\nwant %q", agrees, want)
	}
	if _, err := os.Stat(filepath.Join(dir, reports.HistoryDir)); err != nil {
		t.Error(err)
	}
}
