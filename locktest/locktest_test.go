package locktest_test

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"gotest.tools/v3/golden"

	"github.com/lockfault/lockfault/internal/racetest"
	"github.com/lockfault/lockfault/locktest"
	"github.com/lockfault/lockfault/reports"
)

// run runs a case in a process and a directory of its own, and returns what it prints, but
// for what is another thing each time.
func run(t *testing.T, dir, name string, settings ...string) (out string, failed bool) {
	t.Helper()
	executable, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), executable, "-test.run=^"+name+"$", "-test.v")
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "LOCKTEST_CASES=1", "LOCKFAULT_FOR=1h") // however slow the machine is
	cmd.Env = append(cmd.Env, settings...)
	text, err := cmd.CombinedOutput()
	return mask(string(text)), err != nil
}

// mask takes out of an output what is another thing each time.
func mask(text string) string {
	for _, m := range []struct{ pattern, by string }{
		{`\(\d+\.\d+s\)`, "(0.00s)"},
		{`(?m)^( *)goroutine \d+ \[(.|\n)*?\n(\n|\z)`, "${1}(stacks)\n"},
		{`(\(stacks\)\n *)+`, "(stacks)\n    "},
		{`(\w+_test\.go):\d+`, "$1:N"},
		{`(\w+\.go):\d+`, "$1:N"},
		{`in bubble \d+|synctest bubble \d+`, "bubble N"},
		{`/tmp/[^ \n:]*`, "/tmp/…"},
		{`(?m)^redis: .*\n`, ""}, // go-redis's own log
		{`(?m)^(FAIL|PASS|exit status \d)$\n`, ""},
	} {
		text = regexp.MustCompile(m.pattern).ReplaceAllString(text, m.by)
	}
	return strings.TrimSpace(text) + "\n"
}

// Cases print what their files say, and fail or not as these begin.
func TestCases(t *testing.T) {
	for _, c := range []struct {
		name     string
		settings []string
		fails    bool
		searches bool
	}{
		{name: "TestPromised", fails: true},
		{name: "TestNotExcused", fails: true},
		{name: "TestAcceptsLess", fails: true},
		{name: "TestSurvivesWhatDoesNotApply", fails: true},
		{name: "TestNoSuchScenario", fails: true},
		{name: "TestNoSuchAnomaly", fails: true},
		{name: "TestTwice", fails: true},
		{name: "TestNoNew", fails: true},
		{name: "TestNewFails", fails: true},
		{name: "TestRealDial", fails: true},
		{name: "TestInABubble", fails: true},
		{name: "TestSleepsUnderMutex", settings: []string{"LOCKFAULT_TIMEOUT=1s"}, fails: true},
		{name: "TestComputes", settings: []string{"LOCKFAULT_TIMEOUT=1s"}, fails: true},
		{name: "TestLeaks", fails: true},
		{name: "TestIgnoresContext", fails: true},
		{name: "TestDeaf", fails: true},
		{name: "TestTwoSearches", fails: true},
		{name: "TestPanics", fails: true},
		{name: "TestPoolsTimers", settings: []string{"LOCKFAULT_ISOLATE=1"}, fails: true},
		{name: "TestPackageState", settings: []string{"LOCKFAULT_ISOLATE=1"}, fails: true},
		{name: "TestTwiceInOne", fails: true},
		{name: "TestLeftOut", fails: true},
		{name: "TestNothing", fails: true},
		{name: "TestNoSuchTag", fails: true},
		{name: "TestOtherTag", fails: true},
		{name: "TestNoLease", fails: true},
		{name: "TestNewEndsItsGoroutine", fails: true},
		{name: "TestStandsStillLater", settings: []string{"LOCKFAULT_TIMEOUT=1s"}, fails: true},
		{name: "TestHints", fails: true},
		{name: "TestExploreSound"},
		{name: "TestExploreNoFault", fails: true},
		{name: "TestKinds"},
		{name: "TestShowsLess"},
		{name: "TestGrantsLess"},
		{name: "TestRefused", searches: true},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			if c.searches { // Run makes no search under the race detector
				racetest.Skip(t)
			}
			out, failed := run(t, t.TempDir(), c.name, c.settings...)
			if failed != c.fails {
				t.Errorf("failed: %v, want %v", failed, c.fails)
			}
			golden.Assert(t, out, filepath.Join("cases", c.name+".txt"))
		})
	}
}

// contains fails unless the output has all of these texts, in their order.
func contains(t *testing.T, out string, texts ...string) {
	t.Helper()
	left := out
	for _, text := range texts {
		_, behind, found := strings.Cut(left, text)
		if !found {
			t.Fatalf("there is no %q where it should be in\n%s", text, out)
		}
		left = behind
	}
}

func TestHostname(t *testing.T) {
	t.Parallel()
	out, failed := run(t, t.TempDir(), "TestHostname") // whatever the machine says of the name
	if !failed {
		t.Error("it passed")
	}
	contains(t, out, "the lock doesn't work", "take a client from Env.Nodes, or connections from Env.Dial")
}

// What a lock shows is accepted into a file, which is the most that it may show then.
func TestRatchet(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file := filepath.Join(dir, "testdata", "lockfault", "TestAccept.expect")
	if out, failed := run(t, dir, "TestAccept"); !failed {
		t.Fatalf("it passed before anything was accepted:\n%s", out)
	}
	if out, failed := run(t, dir, "TestAccept", "LOCKFAULT_ACCEPT=1"); failed {
		t.Fatalf("it fails while it is accepted:\n%s", out)
	}
	const accepted = "test-accept:\n  contention: none\n  pause-in-release: overlap foreign-release\n"
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	contains(t, string(text), accepted)
	if out, failed := run(t, dir, "TestAccept"); failed {
		t.Errorf("it fails after it was accepted:\n%s", out)
	}
	for _, c := range []struct{ says, why string }{
		{strings.ReplaceAll(accepted, "overlap foreign-release", "overlap"), "but testdata/lockfault/TestAccept.expect accepts overlap."},
		{strings.ReplaceAll(accepted, "contention", "contetion"), "TestAccept.expect:2:3: "},
		{strings.ReplaceAll(accepted, "test-accept", "test-acept"), "TestAccept.expect:1:1: "},
	} {
		if err := os.WriteFile(file, []byte(c.says), 0o644); err != nil {
			t.Fatal(err)
		}
		out, failed := run(t, dir, "TestAccept")
		if !failed {
			t.Errorf("it passes with\n%s", c.says)
		}
		contains(t, out, c.why)
	}
	// What is better tightens the file, and the other lines stay as they were.
	if err := os.WriteFile(file, []byte("test-accept:\n  contention: overlap  # once\n  flush: lost-lock\n  pause-in-release: none\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if out, failed := run(t, dir, "TestAccept", "LOCKFAULT_ACCEPT=1"); failed {
		t.Fatalf("it fails while it is accepted:\n%s", out)
	}
	text, _ = os.ReadFile(file)
	contains(t, string(text), "test-accept:\n  contention: none  # once\n  flush: lost-lock\n  pause-in-release: overlap foreign-release\n")
}

// The report is that of lockfault run, below the directory that the setting names.
func TestReport(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	out, _ := run(t, dir, "TestAccept", "LOCKFAULT_OUT="+filepath.Join(dir, "out"))
	contains(t, out, "report: ")
	report := filepath.Join(dir, "out", "github.com", "lockfault", "lockfault", "locktest", "TestAccept")
	var cells []reports.Cell
	head, err := reports.Scan(filepath.Join(report, reports.ResultsFile), func(c reports.Cell) error {
		cells = append(cells, c)
		_, err := reports.ReadHistory(report, c.History)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if head.World != "sim" || head.Seed != 1 || len(cells) != 2 {
		t.Errorf("the report's head is %+v, with %d cells", head, len(cells))
	}
	if _, err := os.Stat(filepath.Join(report, reports.MarkdownFile)); err != nil {
		t.Error(err)
	}
}

// A search keeps what it found, plays that first, and searches on when it is mended.
func TestSlowExploreKeepsWhatItFound(t *testing.T) {
	racetest.Skip(t)
	t.Parallel()
	dir := t.TempDir()
	out, failed := run(t, dir, "TestExplore")
	if !failed {
		t.Fatalf("it passed:\n%s", out)
	}
	contains(t, out, "bug: foreign-release: ", "a schedule of 8 moves", "testdata/lockfault/TestExplore/foreign-release.txt keeps it", "again: ")
	file := filepath.Join(dir, "testdata", "lockfault", "TestExplore", "foreign-release.txt")
	if out, failed = run(t, dir, "TestExplore"); !failed || strings.Contains(out, "states") {
		t.Fatalf("it searched again, or passed:\n%s", out)
	}
	contains(t, out, "foreign-release.txt, from a former search, shows foreign-release still.", "DEL lock", "again: ")
	// As if it had been mended.
	if err := os.WriteFile(file, []byte("clients A\nA acquire\nA release\nexpect none\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if out, failed = run(t, dir, "TestExplore"); !failed {
		t.Fatalf("it passed:\n%s", out)
	}
	contains(t, out, "shows nothing more: remove it", "bug: foreign-release: ")
	if err := os.WriteFile(file, []byte("clients A\nA aquire\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	out, _ = run(t, dir, "TestExplore")
	contains(t, out, "foreign-release.txt:2:3: ")
}

// What a test keeps, or accepts, goes through no symbolic link.
func TestSlowFilesAmongLinks(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ test, link, setting, says string }{
		{"TestExplore", filepath.Join("testdata", "lockfault", "TestExplore", "foreign-release.txt"), "", "it could not be kept: "},
		{"TestExplore", filepath.Join("testdata", "lockfault"), "", "it could not be kept: "},
		{"TestAccept", filepath.Join("testdata", "lockfault"), "LOCKFAULT_ACCEPT=1", "it is a symbolic link"},
	} {
		dir, elsewhere := t.TempDir(), t.TempDir()
		theirs := filepath.Join(elsewhere, "theirs.txt")
		script := "clients A\nA acquire\nA release\nexpect none\n"
		target := elsewhere
		if filepath.Ext(c.link) != "" {
			target = theirs
		}
		if err := errors.Join(os.MkdirAll(filepath.Dir(filepath.Join(dir, c.link)), 0o755), os.WriteFile(theirs, []byte(script), 0o644)); err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink(target, filepath.Join(dir, c.link)); err != nil {
			t.Skip(err)
		}
		out, failed := run(t, dir, c.test, c.setting)
		if !failed {
			t.Errorf("%s passed:\n%s", c.test, out)
		}
		contains(t, out, c.says)
		if text, err := os.ReadFile(theirs); err != nil || string(text) != script {
			t.Errorf("%s: the target has %q, %v", c.link, text, err)
		}
		if entries, err := os.ReadDir(elsewhere); err != nil || len(entries) != 1 {
			t.Errorf("%s: beside the target there is %v, %v", c.link, entries, err)
		}
	}
}

func TestSettingsThatAreWrong(t *testing.T) {
	t.Parallel()
	for setting, why := range map[string]string{
		"LOCKFAULT_SEED=x":      "LOCKFAULT_SEED=x is no seed",
		"LOCKFAULT_TIMEOUT=5":   "LOCKFAULT_TIMEOUT=5 is no time",
		"LOCKFAULT_FOR=-1s":     "LOCKFAULT_FOR=-1s is no time",
		"LOCKFAULT_STORY=maybe": "LOCKFAULT_STORY=maybe: it is switched on by 1",
	} {
		out, failed := run(t, t.TempDir(), "TestKinds", setting)
		if !failed {
			t.Errorf("%s is taken", setting)
		}
		contains(t, out, "locktest: "+why)
	}
}

// Flags are names for settings.
func TestFlags(t *testing.T) {
	t.Parallel()
	executable, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), executable, "-test.run=^TestAccept$", "-lockfault.accept", "-lockfault.seed=7", "-lockfault.story", "-test.v")
	cmd.Dir, cmd.Env = t.TempDir(), append(os.Environ(), "LOCKTEST_CASES=1")
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	contains(t, string(out), "seed 7", "TestAccept.expect says now")
}

// A lock is tested in processes of their own as it is in one.
func TestIsolated(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	here, failed := run(t, dir, "TestSome")
	if failed {
		t.Fatal(here)
	}
	alone, failed := run(t, dir, "TestSome", "LOCKFAULT_ISOLATE=1")
	if failed {
		t.Fatal(alone)
	}
	if here != alone {
		t.Errorf("in processes of their own:\n%s\nin one:\n%s", alone, here)
	}
}

// Nothing that is played in another process stays.
func TestSlowNothingStays(t *testing.T) {
	racetest.Skip(t)
	t.Parallel()
	temp := t.TempDir()
	run(t, t.TempDir(), "TestPoolsTimers", "LOCKFAULT_ISOLATE=1", "TMPDIR="+temp)
	run(t, t.TempDir(), "TestExplore", "TMPDIR="+temp)
	if left, err := os.ReadDir(temp); err != nil || len(left) > 0 {
		t.Errorf("%v is left, %v", left, err)
	}
}

// What is to be pasted goes through a shell.
func TestAgain(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	out, failed := run(t, dir, `Test\[odd\]'s`)
	if !failed {
		t.Fatal(out)
	}
	contains(t, out, `-run '^Test\[odd\]'\''s$/^pause-in-release$'`)
}

func FuzzSound(f *testing.F) {
	locktest.Fuzz(f, sound())
}
