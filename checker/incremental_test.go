package checker

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// Of each beginning of each case a judge who goes on says what Check says of it, and once more after having gone back.
func TestJudgeSaysWhatCheckDoes(t *testing.T) {
	files, err := filepath.Glob("testdata/cases/*.txt")
	if err != nil {
		t.Fatal(err)
	}
	beginnings := 0
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, one := range strings.Split(string(text), "\n\n") {
			lines := slices.DeleteFunc(strings.Split(one, "\n"), func(line string) bool {
				return line == "" || strings.HasPrefix(line, "#") || strings.HasPrefix(line, "->")
			})
			if len(lines) == 0 {
				continue
			}
			h, err := parseHistory(lines)
			if err != nil {
				t.Fatal(err)
			}
			judge := NewJudge(h.Meta)
			places := make([]int, len(h.Events))
			for pass, from := range []int{0, len(h.Events) / 2, len(h.Events) / 3} {
				if pass > 0 {
					judge.Rollback(places[from])
				}
				for i := from; i < len(h.Events); i++ {
					beginnings++
					places[i] = judge.Checkpoint()
					judge.Add(h.Events[i])
					place := judge.Checkpoint()
					got, unjudged := judge.Anomalies()
					judge.Rollback(place)
					want := Check(History{Meta: h.Meta, Events: h.Events[:i+1]})
					if !slices.Equal(got, want.Anomalies()) || unjudged != (want.Unjudged != nil) {
						t.Fatalf("%s: until event %d the judge says %v (unjudged: %v), and Check %v (%v)\n%s",
							file, i, got, unjudged, want.Anomalies(), want.Unjudged, strings.Join(lines, "\n"))
					}
				}
			}
		}
	}
	if beginnings < 1000 {
		t.Errorf("only %d beginnings", beginnings)
	}
}
