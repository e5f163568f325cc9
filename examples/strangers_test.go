package examples

import (
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/lockfault/lockfault/internal/leases"
)

const (
	strangersPage = "../docs/results/strangers.md"
	testedFile    = "strangers/tested.txt"
)

// A stranger is a line of examples/strangers/expected.txt.
type stranger struct {
	name, words, comment string
	bugs                 []string // findings that are bugs, with their scenarios
	tested               bool     // has a line in strangers/tested.txt
	found                string   // the anomalies that lockfault test calls bugs, if tested
}

// strangers returns the lines of expected.txt, with those of tested.txt.
func strangers(t *testing.T) (list []*stranger) {
	t.Helper()
	list = strangersIn(t, "strangers/expected.txt")
	for _, tested := range strangersIn(t, testedFile) {
		if i := slices.IndexFunc(list, func(s *stranger) bool { return s.name == tested.name }); i >= 0 {
			list[i].tested, list[i].found = true, tested.words
		}
	}
	return list
}

// strangersIn returns the lines NAME: WORDS # COMMENT of a file; the words and the comment may be missing.
func strangersIn(t *testing.T, file string) (list []*stranger) {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		line, comment, _ := strings.Cut(strings.TrimSpace(line), "#")
		name, words, _ := strings.Cut(strings.TrimSpace(line), ":")
		if name != "" {
			list = append(list, &stranger{name: name, words: strings.TrimSpace(words), comment: strings.TrimSpace(comment)})
		}
	}
	return list
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
	list := strangers(t)
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
	var sound, accused, accusedFirst, accusedTested, soundTested, faulty, shown, shownFirst, shownTested, faultyTested int
	table := "| lock | expected | bugs |\n|---|---|---|\n"
	for _, s := range list {
		if s.sound() {
			if !s.later() {
				sound++
				if strings.Contains(s.comment, "first: accused") {
					accusedFirst++
				}
				if s.tested {
					soundTested++
				}
				if s.found != "" && s.words == "" {
					accusedTested++
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
				if s.tested {
					faultyTested++
				}
				if s.found != "" {
					shownTested++
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
		"the library's scenarios accuse %d of %d sound locks, and show a bug of %d of %d defective ones (`go test ./examples -run TestStrangers`);\n"+
		"`lockfault test`, which also searches, accuses %d of %d, and shows a bug of %d of %d (those of `examples/strangers/tested.txt`; `go test ./examples -run TestTestedStrangers -all`).\n\n%s",
		accusedFirst, sound, shownFirst, faulty, accused, sound, shown, faulty, accusedTested, soundTested, shownTested, faultyTested, table)
	if *update {
		if err := os.WriteFile(strangersPage, []byte(page), 0o644); err != nil {
			t.Fatal(err)
		}
	} else if is, err := os.ReadFile(strangersPage); err != nil || string(is) != page {
		t.Errorf("%s is not up to date (%v): -update writes it", strangersPage, err)
	}
}

// TestTestedStrangers checks what lockfault test finds in the locks: in a sound one and a defective one, others
// each time, or with -all in every lock, which takes an hour. With -all, -update writes strangers/tested.txt.
func TestTestedStrangers(t *testing.T) {
	program, list := build(t, "strangers"), strangers(t)
	if !*playAll {
		list = slices.DeleteFunc(list, func(s *stranger) bool { return !s.tested })
		rand.New(rand.NewPCG(seedOf(t), 0)).Shuffle(len(list), func(i, j int) { list[i], list[j] = list[j], list[i] })
		list = []*stranger{
			list[slices.IndexFunc(list, (*stranger).sound)],
			list[slices.IndexFunc(list, func(s *stranger) bool { return !s.sound() })],
		}
	}
	text := "# What lockfault test calls bugs in these locks: TestTestedStrangers -all -update writes this.\n"
	for _, s := range list {
		out, err := exec.CommandContext(t.Context(), program, "test", s.name, "--for", "1h", "--findings", t.TempDir()).CombinedOutput()
		var found []string
		for line := range strings.Lines(string(out)) {
			if rest, ok := strings.CutPrefix(line, "bug: "); ok {
				anomalies, _, _ := strings.Cut(rest, ": ")
				found = append(found, strings.Split(anomalies, ", ")...)
			}
		}
		slices.Sort(found)
		got := strings.Join(slices.Compact(found), " ")
		if (err != nil) != (got != "") {
			t.Errorf("%s: %v\n%s", s.name, err, out)
		}
		if s.tested && got != s.found && !(*update && *playAll) {
			t.Errorf("lockfault test calls %q bugs of %s, and %s has %q:\n%s", got, s.name, testedFile, s.found, out)
		}
		text += strings.TrimSpace(s.name+": "+got) + "\n"
	}
	if *update && *playAll {
		if err := os.WriteFile(testedFile, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}
