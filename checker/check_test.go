package checker

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write what came out into testdata")

// TestCases checks the verdict on each history in testdata/cases. A file is a
// list of cases; a case is a title behind "#", a history in the notation of
// parseHistory, and behind "->" what must be found: an anomaly, the indices of
// its witness and the sentence, or "held"; "not linearizable", with the events and
// the sentence of the conflict unless an overlap says it; and "unjudged".
func TestCases(t *testing.T) {
	files, err := filepath.Glob("testdata/cases/*.txt")
	if err != nil || len(files) < len(Anomalies()) {
		t.Fatalf("%d files of cases (%v), want one for each anomaly", len(files), err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txt"), func(t *testing.T) {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			got := judgeFile(t, string(text))
			if *update {
				if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
			}
		})
	}
}

// judgeFile checks all cases of a file, and returns it with the verdicts as
// they are.
func judgeFile(t *testing.T, text string) string {
	var out strings.Builder
	var title string
	var lines, want []string
	finish := func() {
		if len(lines) == 0 {
			return
		}
		t.Run(title, func(t *testing.T) {
			h, err := parseHistory(lines)
			if err != nil {
				t.Fatal(err)
			}
			got := verdictLines(h)
			for _, line := range got {
				fmt.Fprintf(&out, "-> %s\n", line)
			}
			if g, w := strings.Join(got, "\n"), strings.Join(want, "\n"); g != w && !*update {
				t.Errorf("found\n%s\nwant\n%s", g, w)
			}
		})
		lines, want = nil, nil
	}
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		switch {
		case line == "":
			finish()
			out.WriteString("\n")
		case strings.HasPrefix(line, "#"):
			title = strings.TrimSpace(line[1:])
			fmt.Fprintln(&out, line)
		case strings.HasPrefix(line, "->"):
			want = append(want, strings.TrimSpace(line[2:]))
		default:
			lines = append(lines, line)
			fmt.Fprintln(&out, line)
		}
	}
	finish()
	return out.String()
}

func verdictLines(h History) []string {
	v := Check(h)
	var lines []string
	for _, w := range v.Witnesses {
		lines = append(lines, fmt.Sprintf("%s %v %s", w.Anomaly, w.Events, w.Message))
	}
	if len(lines) == 0 {
		lines = append(lines, "held")
	}
	if c := Linearize(h); c != nil {
		line := "not linearizable"
		if !slices.Contains(v.Anomalies(), Overlap) {
			line = fmt.Sprintf("%s %v %s", line, c.Events, c.Message)
		}
		lines = append(lines, line)
	}
	if v.Unjudged != nil {
		lines = append(lines, fmt.Sprintf("unjudged %v %s", v.Unjudged.Events, v.Unjudged.Message))
	}
	return lines
}

// Where two clients rely on the lock at one instant, that is the conflict.
func TestConflictOfAnOverlap(t *testing.T) {
	h, err := parseHistory([]string{"0s A acquire", "1ms A acquire ok", "33s B acquire", "33.002s B acquire ok", "40s end"})
	if err != nil {
		t.Fatal(err)
	}
	c := Linearize(h)
	if c == nil || !slices.Equal(c.Events, []int{1, 3}) || c.Message != "B acquired at 33.002s while A, who had acquired at 0.001s, had yet to release." {
		t.Errorf("the conflict is %+v", c)
	}
}
