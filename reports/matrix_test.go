package reports_test

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/lockfault/lockfault/checker"
	"github.com/lockfault/lockfault/reports"
)

func matrix(t *testing.T, cells []reports.Cell) *reports.Matrix {
	t.Helper()
	var m reports.Matrix
	for _, c := range cells {
		if err := m.Add(c); err != nil {
			t.Fatal(err)
		}
	}
	return &m
}

func table(t *testing.T, m *reports.Matrix) string {
	t.Helper()
	var b bytes.Buffer
	if err := m.Table(&b); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func TestTableInWords(t *testing.T) {
	matches(t, "wide.txt", table(t, matrix(t, sample())))
}

// many returns more cells than fit on a terminal in full words.
func many() []reports.Cell {
	var cells []reports.Cell
	for i, scenario := range []string{"contention", "gc-pause", "failover", "flush"} {
		for j := range 8 {
			strategy := fmt.Sprintf("set-nx-px-%d", j)
			var found []checker.Anomaly
			for k, a := range checker.Anomalies() {
				if i > 0 && (j*k+i)%7 == 3 {
					found = append(found, a)
				}
			}
			expected := found
			if i == 3 && j == 4 {
				expected = anomalies(checker.Ghost)
			}
			c := cell(strategy, scenario, found, expected)
			switch {
			case i == 2 && j == 1:
				c.Verdict, c.Anomalies = reports.Error, nil
			case i == 2 && j == 6:
				c.Verdict, c.Anomalies = reports.Unknown, nil
			case i == 3 && j == 0:
				c.Verdict, c.Anomalies = reports.NotApplicable, nil
			}
			if i == 1 {
				c.MetNothing = []reports.MetNothing{{Line: 3, Text: "drop messages", OrNone: j%2 == 0}}
			}
			c.Settle()
			cells = append(cells, c)
		}
	}
	return cells
}

func TestTableInLetters(t *testing.T) {
	matches(t, "narrow.txt", table(t, matrix(t, many())))
}

// TestLettersTellAnomaliesApart checks that each anomaly has a letter of its own, so that the
// narrow table is unambiguous.
func TestLettersTellAnomaliesApart(t *testing.T) {
	cells := many()
	for i, a := range checker.Anomalies() {
		cells = append(cells, cell(cells[i%8].Strategy, fmt.Sprint("only-", a), anomalies(a), anomalies(a)))
	}
	text := table(t, matrix(t, cells))
	seen := map[string]checker.Anomaly{}
	for _, a := range checker.Anomalies() {
		_, row, _ := strings.Cut(text, fmt.Sprint("\nonly-", a, " "))
		row, _, _ = strings.Cut(row, "\n")
		letter := strings.Trim(row, " …") // the other strategies were not played
		if other, ok := seen[letter]; ok || utf8.RuneCountInString(letter) != 1 {
			t.Errorf("%s shows as %q, as %q does", a, letter, other)
		}
		seen[letter] = a
		if !strings.Contains(text, letter+" "+string(a)) {
			t.Errorf("the legend does not explain %s as %s", letter, a)
		}
	}
}

func TestTally(t *testing.T) {
	m := matrix(t, sample())
	want := reports.Tally{Cells: 8, Held: 3, Violated: 2, NotApplicable: 1, Unknown: 1, Failed: 1, Differing: 2}
	if got := m.Tally(); got != want {
		t.Errorf("tally %+v, want %+v", got, want)
	}
	// A cell that is added again counts once.
	for _, c := range sample() {
		if err := m.Add(c); err != nil {
			t.Fatal(err)
		}
	}
	if got := m.Tally(); got != want {
		t.Errorf("tally after adding all again %+v, want %+v", got, want)
	}
	if got, want := m.Tally().String(), "8 cells: 3 held, 2 violated, 1 not applicable, 1 unknown, 1 in error; 2 not decided, 2 not as expected"; got != want {
		t.Errorf("tally %q, want %q", got, want)
	}
	if got, want := matrix(t, sample()[:1]).Tally().String(), "1 cell: 1 violated; all as expected"; got != want {
		t.Errorf("tally %q, want %q", got, want)
	}
}

func TestAVerdictNobodyKnowsIsAnError(t *testing.T) {
	c := cell("a", "b", nil, nil)
	c.Verdict = "splendid"
	if got := matrix(t, []reports.Cell{c}).Tally(); got.Failed != 1 || got.Held != 0 {
		t.Errorf("tally %+v, want one failed", got)
	}
}

func TestMatrixRefusesAnUnknownAnomaly(t *testing.T) {
	c := cell("a", "b", nil, nil)
	c.Anomalies = anomalies("overslept")
	var m reports.Matrix
	if err := m.Add(c); err == nil || !strings.Contains(err.Error(), "overslept") {
		t.Errorf("error %v, want one that names the anomaly", err)
	}
}

func TestMeasures(t *testing.T) {
	var m reports.Measures
	for i, took := range []time.Duration{31 * time.Second, 30 * time.Second, 90 * time.Second} {
		c := cell(fmt.Sprintf("s%d", i), "holder-crash", nil, nil)
		c.Measures = map[string]time.Duration{"recovery": took, "again": time.Millisecond}
		m.Add(c)
	}
	var b bytes.Buffer
	if err := m.Write(&b); err != nil {
		t.Fatal(err)
	}
	want := "holder-crash: again 1ms\nholder-crash: recovery from 30s (s1) to 1m30s (s2)\n"
	if b.String() != want {
		t.Errorf("got %q, want %q", &b, want)
	}
}

// TestNotPlayed checks that an entry without a cell differs from entries that held or do not apply.
func TestNotPlayed(t *testing.T) {
	for _, cells := range [][]reports.Cell{sample(), many()} {
		last := cells[len(cells)-1]
		text := table(t, matrix(t, cells[:len(cells)-1]))
		_, row, _ := strings.Cut(text, "\n"+last.Scenario)
		row, _, _ = strings.Cut(row, "\n")
		if !strings.HasSuffix(row, "…") || !strings.Contains(text, "… not played") {
			t.Errorf("a missing cell does not show as such:\n%s", text)
		}
	}
}
