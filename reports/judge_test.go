package reports_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/lockfault/lockfault/checker"
	"github.com/lockfault/lockfault/reports"
)

// atMost returns the cell with AtMost set. Its reference lock grants nothing that the cell's does not.
func atMost(c reports.Cell) reports.Cell {
	c.AtMost, c.Reference = true, &reports.ReferenceLock{Strategy: "set-nx-px-lua"}
	c.Settle()
	return c
}

// withBetter returns the sample with a further scenario in which locks are better than expected.
func withBetter() []reports.Cell {
	measured := atMost(cell("redlock", "late", nil, anomalies(checker.Overlap, checker.StaleWrite)))
	return append(sample(),
		atMost(cell("set-nx|px", "late", anomalies(checker.Overlap), anomalies(checker.Overlap, checker.StaleWrite))),
		measured)
}

func TestBetter(t *testing.T) {
	dir := write(t, withBetter(), []int{0, 1, 2, 3, 4, 5, 6, 7, 8, 9})
	matches(t, "better.md", read(t, dir, reports.MarkdownFile))
	matches(t, "better-wide.txt", table(t, matrix(t, withBetter())))
	narrow := many()
	for i := range 8 {
		found := anomalies(checker.Overlap)
		narrow = append(narrow, atMost(cell(narrow[i].Strategy, "late", found[:i%2], found)))
	}
	matches(t, "better-narrow.txt", table(t, matrix(t, narrow)))
	if got, want := matrix(t, withBetter()).Tally().String(),
		"10 cells: 4 held, 3 violated, 1 not applicable, 1 unknown, 1 in error; 2 not decided, 2 not as expected, 2 better"; got != want {
		t.Errorf("tally %q, want %q", got, want)
	}
	var all reports.Comparison
	for _, world := range []string{"sim", "process"} {
		c := withBetter()[9]
		c.World = world
		if err := all.Add(c); err != nil {
			t.Fatal(err)
		}
	}
	if got, want := all.Tally().String(), "2 cells: 2 held; all as expected, 2 better"; got != want {
		t.Errorf("tally %q, want %q", got, want)
	}
	text := read(t, dir, reports.ResultsFile)
	for _, want := range []string{
		`"anomalies":["overlap"],"expected":["overlap","stale-write"],"as_expected":true,"at_most":true,"better":["stale-write"],"reference":{"strategy":"set-nx-px-lua"},"linearizable"`,
		`"anomalies":[],"expected":["overlap","stale-write"],"as_expected":true,"at_most":true,"better":["overlap","stale-write"],"reference":{"strategy":"set-nx-px-lua"},"linearizable"`,
	} {
		if !strings.Contains(text, want) {
			t.Errorf("results.json lacks %s:\n%s", want, text)
		}
	}
}

// TestUnavailableInPlaceOfAGhost checks that unavailable replaces an expected ghost if the owner of
// the key is unknown.
func TestUnavailableInPlaceOfAGhost(t *testing.T) {
	doubt := &checker.Ambiguity{Message: "The key became 1."}
	for _, c := range []struct {
		unjudged *checker.Ambiguity
		expected []checker.Anomaly
		want     bool
	}{
		{doubt, anomalies(checker.Ghost), true},
		{doubt, anomalies(checker.StuckLock, checker.Overlap), true},
		{doubt, anomalies(checker.LostLock, checker.Overlap), false},
		{doubt, nil, false},
		{nil, anomalies(checker.Ghost), false},
	} {
		got := atMost(cell("mine", "ghost-retry", anomalies(checker.Unavailable), c.expected))
		got.Unjudged = c.unjudged
		got.Settle()
		var story strings.Builder
		if err := reports.Story(&story, got, checker.History{}, reports.View{}); err != nil {
			t.Fatal(err)
		}
		if strings.Contains(story.String(), "unavailable is what shows of a ghost") != c.want {
			t.Errorf("expected %v, judged in part: %v:\n%s", c.expected, c.unjudged != nil, story.String())
		}
		if got.AsExpected != c.want || (got.Difference() == "") != c.want || c.want && slices.Contains(got.Better, checker.Ghost) {
			t.Errorf("expected %v, judged in part: %v: as expected %v, %q, better: %v", c.expected, c.unjudged != nil, got.AsExpected, got.Difference(), got.Better)
		}
	}
}

// TestJudge checks that a report is judged by the expectations at the time of writing, including
// the cells of an earlier run with other expectations.
func TestJudge(t *testing.T) {
	dir := t.TempDir()
	r, err := reports.Create(dir, head(), plan())
	if err != nil {
		t.Fatal(err)
	}
	for i := range 4 {
		add(t, r, i, sample()[i])
	}
	r.Judge(func(c *reports.Cell) { c.Expected = anomalies(checker.Starvation) })
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	if r, err = reports.Resume(dir, head(), plan()); err != nil {
		t.Fatal(err)
	}
	for i := 4; i < len(sample()); i++ {
		add(t, r, i, sample()[i])
	}
	seen := 0
	if err := r.Cells(func(c reports.Cell) error {
		if want := sample()[seen]; c.Strategy != want.Strategy || c.Scenario != want.Scenario || !slices.Equal(c.Anomalies, want.Anomalies) {
			t.Errorf("cell %d is %s under %s with %v", seen, c.Strategy, c.Scenario, c.Anomalies)
		}
		seen++
		return nil
	}); err != nil || seen != len(sample()) {
		t.Fatalf("%d cells, %v", seen, err)
	}
	enough := errors.New("enough")
	if err := r.Cells(func(reports.Cell) error { return enough }); !errors.Is(err, enough) {
		t.Errorf("an error of visit becomes %v", err)
	}
	r.Judge(func(c *reports.Cell) {
		c.Expected, c.AtMost, c.ExpectedBy = anomalies(checker.Ghost, checker.Overlap), true, reports.ByFile
		c.Reference = &reports.ReferenceLock{Strategy: "set-nx-px-lua"}
	})
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	var got []string
	if _, err := reports.Scan(filepath.Join(dir, reports.ResultsFile), func(c reports.Cell) error {
		text, err := json.Marshal(c.Better)
		got = append(got, fmt.Sprint(c.AsExpected, " ", c.ExpectedBy, " ", string(text)))
		return err
	}); err != nil {
		t.Fatal(err)
	}
	want := []string{
		`false file null`, `true file null`, `true file ["overlap","ghost"]`, `true file ["overlap","ghost"]`,
		`true file null`, `true file ["overlap","ghost"]`, `false file null`, `false file null`,
	}
	if !slices.Equal(got, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	if text := read(t, dir, reports.MarkdownFile); !strings.Contains(text, "3 better") || strings.Contains(text, "starvation") {
		t.Errorf("report.md is not drawn from that:\n%s", text)
	}
}
