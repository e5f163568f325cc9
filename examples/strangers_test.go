package examples

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/lockfault/lockfault/internal/leases"
)

const strangersPage = "../docs/results/strangers.md"

// A stranger is a line of examples/strangers/expected.txt.
type stranger struct {
	name, words, comment string
	bugs                 []string // findings that are bugs, with their scenarios
}

func (s stranger) sound() bool {
	return strings.HasPrefix(s.name, "sound-") || strings.HasSuffix(s.name, "-fixed")
}

// later reports whether the lock was added with a rule that it brought, so that it does not count in
// the score.
func (s stranger) later() bool { return strings.HasPrefix(s.comment, "later: ") }

func (s stranger) missed() bool { return strings.HasPrefix(s.comment, "missed: ") }

// TestStrangers checks the verdicts on locks that were written from the documentation alone, and
// writes the score with -update.
func TestStrangers(t *testing.T) {
	text, err := os.ReadFile("strangers/expected.txt")
	if err != nil {
		t.Fatal(err)
	}
	var list []*stranger
	for line := range strings.Lines(string(text)) {
		line, comment, _ := strings.Cut(strings.TrimSpace(line), "#")
		name, words, _ := strings.Cut(strings.TrimSpace(line), ":")
		if name != "" {
			list = append(list, &stranger{name: name, words: strings.TrimSpace(words), comment: strings.TrimSpace(comment)})
		}
	}
	program := build(t, "strangers")
	for _, c := range play(t, program, "--isolate=false", "--strategy", "sound-*,faulty-*,reported-*") {
		i := slices.IndexFunc(list, func(s *stranger) bool { return s.name == c.Strategy })
		if i < 0 {
			t.Errorf("strangers/expected.txt does not have %s", c.Strategy)
			continue
		}
		s := list[i]
		for _, f := range leases.Bugs(c.Findings) {
			if s.sound() && slices.Contains(strings.Fields(s.words), c.Scenario) {
				continue
			}
			s.bugs = append(s.bugs, fmt.Sprintf("%s under %s", f.Anomaly, c.Scenario))
		}
	}
	var sound, accused, accusedFirst, faulty, shown, shownFirst int
	table := "| lock | expected | bugs |\n|---|---|---|\n"
	for _, s := range list {
		if s.sound() {
			if !s.later() {
				sound++
				if strings.Contains(s.comment, "first: accused") {
					accusedFirst++
				}
			}
			if len(s.bugs) > 0 {
				accused++
				t.Errorf("%s is accused of %s", s.name, strings.Join(s.bugs, ", "))
			}
		} else {
			if !s.later() {
				faulty++
				if len(s.bugs) > 0 {
					shown++
				}
				if !s.missed() && !strings.Contains(s.comment, "first: missed") {
					shownFirst++
				}
			}
			if (len(s.bugs) > 0) == s.missed() {
				t.Errorf("%s: bugs %v, and expected.txt says %q", s.name, s.bugs, s.comment)
			}
		}
		bugs := strings.Join(s.bugs[:min(2, len(s.bugs))], ", ")
		if len(s.bugs) > 2 {
			bugs += fmt.Sprintf(" and %d more", len(s.bugs)-2)
		}
		table += fmt.Sprintf("| `%s` | %s | %s |\n", s.name, strings.Join([]string{s.words, s.comment}, " "), bugs)
	}
	page := fmt.Sprintf("# Locks of strangers\n\nThe locks of [examples/strangers](../../examples/strangers) were written from the documentation alone, before anything was played. Those marked \"later\" are exceptions, and do not count.\n"+
		"When they were first played, %d of %d sound locks were accused, and a bug was shown of %d of %d defective ones. Now\n"+
		"the library's scenarios accuse %d of %d sound locks, and show a bug of %d of %d defective ones (`go test ./examples -run TestStrangers`).\n\n%s", accusedFirst, sound, shownFirst, faulty, accused, sound, shown, faulty, table)
	if *update {
		if err := os.WriteFile(strangersPage, []byte(page), 0o644); err != nil {
			t.Fatal(err)
		}
	} else if is, err := os.ReadFile(strangersPage); err != nil || string(is) != page {
		t.Errorf("%s is not up to date (%v): -update writes it", strangersPage, err)
	}
}
