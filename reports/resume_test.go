package reports_test

import (
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/lockfault/lockfault/reports"
)

// plan returns the plan of a run of the sample.
func plan() reports.Plan {
	return reports.Plan{Cells: len(sample()), Traits: []reports.Trait{
		{Name: "seed", Value: "7"}, {Name: "text of flush", Value: "abcd", Digest: true},
	}}
}

// files returns the contents of a directory by name, without the working directory.
func files(t *testing.T, dir string) map[string]string {
	t.Helper()
	all := map[string]string{}
	err := filepath.WalkDir(dir, func(file string, entry fs.DirEntry, err error) error {
		if err == nil && entry.Name() == reports.WorkDir {
			return fs.SkipDir
		}
		if err == nil && !entry.IsDir() {
			name, _ := filepath.Rel(dir, file)
			all[filepath.ToSlash(name)] = read(t, file)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// expectFiles checks the contents of a directory.
func expectFiles(t *testing.T, when, dir string, want map[string]string) {
	t.Helper()
	got := files(t, dir)
	for _, name := range slices.Sorted(maps.Keys(got)) {
		if text, ok := want[name]; !ok {
			t.Errorf("%s: there is %s", when, name)
		} else if text != got[name] {
			t.Errorf("%s: %s is\n%s\nwant\n%s", when, name, got[name], text)
		}
	}
	for name := range want {
		if _, ok := got[name]; !ok {
			t.Errorf("%s: %s is missing", when, name)
		}
	}
}

// oldReport returns a directory with a report of the first cells only and another seed, and its
// contents.
func oldReport(t *testing.T) (dir string, content map[string]string) {
	t.Helper()
	dir = t.TempDir()
	h := head()
	h.Seed = 99
	r, err := reports.Create(dir, h, reports.Plan{Cells: 2})
	if err != nil {
		t.Fatal(err)
	}
	for i, c := range sample()[:2] {
		c.Scenario += "-of-old"
		c.History = "histories/" + c.World + "/" + c.Strategy + "/" + c.Scenario + ".jsonl"
		add(t, r, i, c)
	}
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	return dir, files(t, dir)
}

// TestTheReportBefore checks that the old report stays until the new one replaces it completely.
func TestTheReportBefore(t *testing.T) {
	dir, before := oldReport(t)
	r, err := reports.Create(dir, head(), plan())
	if err != nil {
		t.Fatal(err)
	}
	expectFiles(t, "at the beginning", dir, before)
	for i, c := range sample() {
		add(t, r, i, c)
	}
	expectFiles(t, "with all cells", dir, before)
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	expectFiles(t, "at the end", dir, files(t, write(t, sample(), []int{0, 1, 2, 3, 4, 5, 6, 7})))
	if _, err := os.Stat(filepath.Join(dir, reports.WorkDir)); err == nil {
		t.Errorf("%s is left", reports.WorkDir)
	}
}

// TestResume checks that a run that ended early at any point can be resumed, and gives the same
// report as an uninterrupted run.
func TestResume(t *testing.T) {
	whole := files(t, write(t, sample(), []int{0, 1, 2, 3, 4, 5, 6, 7}))
	for _, c := range []struct {
		name string
		end  func(r *reports.Report) error
	}{
		{"left", func(r *reports.Report) error { r.Leave(); return nil }},
		{"interrupted", (*reports.Report).Close},
	} {
		for finished := range len(sample()) + 1 {
			dir, before := oldReport(t)
			r, err := reports.Create(dir, head(), plan())
			if err != nil {
				t.Fatal(err)
			}
			for i := range finished {
				add(t, r, i, sample()[i])
			}
			if err := c.end(r); err != nil {
				t.Fatal(err)
			}
			if c.name == "left" {
				expectFiles(t, "when it was left", dir, before)
			}
			r, err = reports.Resume(dir, head(), plan())
			if c.name == "interrupted" && finished == len(sample()) {
				if err == nil || !strings.Contains(err.Error(), "nothing to go on with in "+dir) {
					t.Errorf("a complete one was resumed: %v", err)
				}
				continue
			}
			if err != nil {
				t.Fatal(err)
			}
			for i, cell := range sample() {
				if r.Has(i) != (i < finished && cell.Decided()) {
					t.Errorf("%s after %d cells: it has cell %d: %v", c.name, finished, i, r.Has(i))
				}
				if !r.Has(i) {
					add(t, r, i, cell)
				}
			}
			if r.Missing() != 0 {
				t.Errorf("%d cells are missing", r.Missing())
			}
			if err := r.Close(); err != nil {
				t.Fatal(err)
			}
			expectFiles(t, c.name, dir, whole)
		}
	}
}

// TestResumeWithHalfAJournal checks that any prefix of a journal, as a kill may leave, can be
// resumed.
func TestResumeWithHalfAJournal(t *testing.T) {
	dir := t.TempDir()
	r, err := reports.Create(dir, head(), plan())
	if err != nil {
		t.Fatal(err)
	}
	journal := filepath.Join(dir, reports.WorkDir, "cells.jsonl")
	var ends []int // ends of its lines
	for i, c := range sample()[:3] {
		ends = append(ends, len(read(t, journal)))
		add(t, r, i, c)
	}
	r.Leave()
	text := read(t, journal)
	near := func(n int) bool {
		return slices.ContainsFunc(ends, func(end int) bool { return n >= end-2 && n <= end+2 })
	}
	for n := range len(text) {
		if n%50 != 0 && !near(n) {
			continue
		}
		if err := os.WriteFile(journal, []byte(text[:n]), 0o644); err != nil {
			t.Fatal(err)
		}
		r, err := reports.Resume(dir, head(), plan())
		if n < ends[0] {
			if err == nil || !strings.Contains(err.Error(), "ended before it had begun") && (n > 0 || !strings.Contains(err.Error(), "nothing to go on with")) {
				t.Fatalf("with %d bytes: %v", n, err)
			}
			continue
		}
		if err != nil {
			t.Fatalf("with %d bytes: %v", n, err)
		}
		for i := range sample() {
			if has := i+1 < len(ends) && n >= ends[i+1]; r.Has(i) != has {
				t.Errorf("with %d of %v bytes: it has cell %d: %v", n, ends, i, r.Has(i))
			}
		}
		// The next cell replaces the partial line.
		const place = 3
		add(t, r, place, sample()[place])
		r.Leave()
		r, err = reports.Resume(dir, head(), plan())
		if err != nil || !r.Has(place) {
			t.Fatalf("with %d bytes and another cell: %v", n, err)
		}
		r.Leave()
	}
}

// TestResumeRefuses checks that only a run with the same plan can be resumed.
func TestResumeRefuses(t *testing.T) {
	dir := t.TempDir()
	fresh := func() {
		r, err := reports.Create(dir, head(), plan())
		if err != nil {
			t.Fatal(err)
		}
		r.Leave()
	}
	for _, c := range []struct {
		change func(p *reports.Plan)
		says   string
	}{
		{func(p *reports.Plan) { p.Traits[0].Value = "8" }, `its seed was "7" and is "8" now`},
		{func(p *reports.Plan) { p.Traits[1].Value = "bcde" }, `it had another text of flush`},
		{func(p *reports.Plan) { p.Traits[1].Name = "text of contention" }, `it had another text of contention`},
		{func(p *reports.Plan) { p.Traits = p.Traits[:1] }, `it had 8 cells, and there are 8 now`},
		{func(p *reports.Plan) { p.Cells = 9 }, `it had 8 cells, and there are 9 now`},
	} {
		fresh()
		p := plan()
		c.change(&p)
		if _, err := reports.Resume(dir, head(), p); err == nil || !strings.Contains(err.Error(), dir) || !strings.HasSuffix(err.Error(), c.says) {
			t.Errorf("error %v, want it to end in %q", err, c.says)
		}
	}
	if _, err := reports.Resume(t.TempDir(), head(), plan()); err == nil || !strings.Contains(err.Error(), "nothing to go on with") {
		t.Errorf("in an empty directory: %v", err)
	}
}

func TestOneRunAtATime(t *testing.T) {
	dir := t.TempDir()
	r, err := reports.Create(dir, head(), plan())
	if err != nil {
		t.Fatal(err)
	}
	for name, open := range map[string]func(string, reports.Head, reports.Plan) (*reports.Report, error){
		"Create": reports.Create, "Resume": reports.Resume,
	} {
		if _, err := open(dir, head(), plan()); err == nil || !strings.Contains(err.Error(), "another run is writing to "+dir) {
			t.Errorf("%s beside another run: %v", name, err)
		}
	}
	r.Leave()
	former := r.Dir()
	if r, err = reports.Create(dir, head(), plan()); err != nil {
		t.Fatal(err)
	}
	r.Leave()
	if r.Dir() == former {
		t.Error("it shares its directory with workers of the one before")
	}
}

// TestForeignFiles checks that foreign files stay in place, or cause an error if they are in the
// way.
func TestForeignFiles(t *testing.T) {
	theirs := map[string]string{
		"notes.txt":                            "mine",
		"histories/notes.txt":                  "mine",
		"histories/sim/redlock/half.jsonl.bak": "mine",
		"histories/deep/er/and/deeper.jsonl":   "mine",
		"logs/server.log":                      "mine",
		"logs/process/redlock/flush/a.log":     "mine", // without a log of a link in the same directory
	}
	dir, _ := oldReport(t)
	put := func(files map[string]string) {
		for name, text := range files {
			file := filepath.Join(dir, name)
			if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
				t.Fatal(err)
			}
		}
	}
	put(theirs)
	put(map[string]string{"logs/process/redlock/old/n1.log": "ours", "logs/process/redlock/old/toxiproxy.log": "ours"})
	r, err := reports.Create(dir, head(), reports.Plan{Cells: 1})
	if err != nil {
		t.Fatal(err)
	}
	failed := sample()[0]
	failed.World, failed.Verdict = "process", reports.Error
	failed.Settle()
	failed.History = "histories/process/" + failed.Strategy + "/" + failed.Scenario + ".jsonl"
	log := filepath.Join("logs", "process", failed.Strategy, failed.Scenario, "toxiproxy.log")
	if err := os.MkdirAll(filepath.Dir(filepath.Join(r.Dir(), log)), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(r.Dir(), log), []byte("log"), 0o644); err != nil {
		t.Fatal(err)
	}
	add(t, r, 0, failed)
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	got := files(t, dir)
	for name, text := range theirs {
		if got[name] != text {
			t.Errorf("%s is %q", name, got[name])
		}
		delete(got, name)
	}
	want := []string{failed.History, reports.HTMLFile, filepath.ToSlash(log), reports.MarkdownFile, reports.ResultsFile}
	if names := slices.Sorted(maps.Keys(got)); !slices.Equal(names, want) {
		t.Errorf("there is %v, want %v", names, want)
	}

	for name, text := range map[string]string{
		"results.json":                      `{"tool":"other"}`,
		"report.md":                         "# My report\n",
		"histories":                         "no directory",
		"histories/sim/redlock/flush.jsonl": "no history",
	} {
		dir := t.TempDir()
		file := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		if _, err := reports.Create(dir, head(), plan()); err == nil || !strings.Contains(err.Error(), name) || !strings.Contains(err.Error(), "lockfault's making") {
			t.Errorf("%s is in the way: %v", name, err)
		}
		if got := read(t, file); got != text {
			t.Errorf("%s is %q now", name, got)
		}
		if entries, _ := os.ReadDir(dir); len(entries) != 1 {
			t.Errorf("it has made something: %v", entries)
		}
	}
}

// TestResumeComparesHistories checks that a cell of the journal that differs from its history runs
// again.
func TestResumeComparesHistories(t *testing.T) {
	dir := t.TempDir()
	r, err := reports.Create(dir, head(), plan())
	if err != nil {
		t.Fatal(err)
	}
	for i, c := range sample()[:3] {
		add(t, r, i, c)
	}
	r.Leave()
	wrong := sample()[1]
	p := plan()
	p.Differs = func(c reports.Cell, below string) string {
		if c.Strategy == wrong.Strategy && c.Scenario == wrong.Scenario {
			return "it says held"
		}
		if _, err := os.Stat(filepath.Join(below, c.History)); err != nil {
			t.Error(err)
		}
		return ""
	}
	if r, err = reports.Resume(dir, head(), p); err != nil {
		t.Fatal(err)
	}
	defer r.Leave()
	if !r.Has(0) || r.Has(1) || !r.Has(2) {
		t.Errorf("it has %v, %v, %v; want all but the second", r.Has(0), r.Has(1), r.Has(2))
	}
}
