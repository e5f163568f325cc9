package reports_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/lockfault/lockfault/reports"
)

// markText is the text of the mark that a run makes in its working directory.
const markText = "lockfault keeps an unfinished run here, and removes this directory with all that is in it.\n"

// everything describes each entry below a directory, without following links.
func everything(t *testing.T, dir string) string {
	t.Helper()
	var b strings.Builder
	err := filepath.WalkDir(dir, func(file string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name, _ := filepath.Rel(dir, file)
		to, _ := os.Readlink(file)
		text := ""
		if entry.Type().IsRegular() {
			text = read(t, file)
		}
		fmt.Fprintf(&b, "%v %s %s %q\n", entry.Type(), name, to, text)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// lay makes entries below a directory. A text that begins with "-> " is the target of a symbolic
// link, and a text that ends in "/" makes a directory.
func lay(t *testing.T, dir string, entries map[string]string) {
	t.Helper()
	for name, text := range entries {
		file := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		var err error
		if to, link := strings.CutPrefix(text, "-> "); link {
			err = os.Symlink(filepath.FromSlash(to), file)
		} else if text == "/" {
			err = os.MkdirAll(file, 0o755)
		} else {
			err = os.WriteFile(file, []byte(text), 0o644)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

// home makes a directory with a user's files, and next to it a directory for a report.
func home(t *testing.T) (top, out string) {
	t.Helper()
	top = t.TempDir()
	lay(t, top, map[string]string{"home/docs/thesis.txt": "thesis", "home/results.json": `{"tool":"lockfault"}`, "home/1/x": "x", "repo/.git/HEAD": "ref", "repo/out": "/"})
	return top, filepath.Join(top, "repo", "out")
}

// TestWorkOfOthers checks that a foreign directory or link with the name of the working directory
// is refused, and that nothing changes.
func TestWorkOfOthers(t *testing.T) {
	for name, entries := range map[string]map[string]string{
		"a link to a directory":              {".lockfault": "-> ../../home"},
		"a link upwards":                     {".lockfault": "-> .."},
		"a link inside":                      {".lockfault": "-> mine", "mine/README": markText},
		"a link to nothing":                  {".lockfault": "-> ../../home/new"},
		"a file":                             {".lockfault": "mine"},
		"files":                              {".lockfault/notes": "mine", ".lockfault/1/notes": "mine"},
		"a directory":                        {".lockfault/1": "/"},
		"a journal without the mark":         {".lockfault/cells.jsonl": "mine"},
		"a link as the journal":              {".lockfault/cells.jsonl": "-> ../../../home/results.json"},
		"a link to nothing as the journal":   {".lockfault/cells.jsonl": "-> ../../../home/new"},
		"another mark":                       {".lockfault/README": "mine", ".lockfault/cells.jsonl": ""},
		"half a mark, and more":              {".lockfault/README": markText[:9], ".lockfault/1/notes": "mine"},
		"a link as the mark":                 {".lockfault/README": "-> ../README", "README": markText},
		"the mark, and a link as journal":    {".lockfault/README": markText, ".lockfault/cells.jsonl": "-> ../../../home/results.json"},
		"the mark, and a link to nothing":    {".lockfault/README": markText, ".lockfault/cells.jsonl": "-> ../../../home/new"},
		"a report before, and files of mine": {".lockfault/notes": "mine", "results.json": `{"tool":"lockfault"}`},
	} {
		t.Run(name, func(t *testing.T) {
			top, out := home(t)
			lay(t, out, entries)
			before := everything(t, top)
			for name, open := range map[string]func(string, reports.Head, reports.Plan) (*reports.Report, error){
				"Create": reports.Create, "Resume": reports.Resume,
			} {
				r, err := open(out, head(), plan())
				if err == nil {
					r.Leave()
				}
				if err == nil || strings.Contains(err.Error(), "\n") || name == "Create" && !strings.Contains(err.Error(), "name another directory") {
					t.Errorf("%s: error %v", name, err)
				}
				if after := everything(t, top); after != before {
					t.Fatalf("%s: there is\n%s\nwant\n%s", name, after, before)
				}
			}
		})
	}
}

// TestInTheWayOfDirectories checks that a run is refused before any cell runs if a file has the
// name of a directory for cells.
func TestInTheWayOfDirectories(t *testing.T) {
	for _, entries := range []map[string]string{
		{"histories/sim": "-> ../../../home"},
		{"histories/sim/a": "-> ../../../../home"},
		{"logs/process": "-> ../../../home"},
		{"histories/sim.new": "-> ../../../home"},
	} {
		for _, used := range []bool{false, true} {
			top, out := home(t)
			if used {
				lay(t, out, map[string]string{".lockfault/README": markText, ".lockfault/cells.jsonl": ""})
			}
			lay(t, out, entries)
			theirs := everything(t, filepath.Join(top, "home"))
			for range 2 {
				r, err := reports.Create(out, head(), plan())
				if err == nil {
					r.Leave()
				}
				if err == nil || !strings.Contains(err.Error(), "there is no directory") {
					t.Errorf("%v: error %v", entries, err)
				}
			}
			if after := everything(t, filepath.Join(top, "home")); after != theirs {
				t.Errorf("%v: there is\n%s\nwant\n%s", entries, after, theirs)
			}
		}
	}
}

// TestLinksInWork checks that links below the directory of a run are not followed. A link itself
// may be removed.
func TestLinksInWork(t *testing.T) {
	for name, entries := range map[string]map[string]string{
		"an attempt":               {".lockfault/1": "-> ../../../home", ".lockfault/2": "-> ../.."},
		"something else":           {".lockfault/x": "-> ../../../home"},
		"what a run was making":    {".lockfault/fresh": "-> ../../../home"},
		"what a run has replaced":  {".lockfault/former": "-> ../../../home"},
		"replaced histories":       {".lockfault/former/histories": "-> ../../../../home"},
		"what is replaced":         {".lockfault/now": "-> ../../../home", "results.json": "-> .lockfault/now/results.json"},
		"a replaced entry":         {".lockfault/now": "-> former", ".lockfault/former": "-> ../../../home", "results.json": "-> .lockfault/now/results.json"},
		"results":                  {"results.json": "-> ../../home/results.json"},
		"the page":                 {"index.html": "-> ../../home/docs/thesis.txt"},
		"the page to nothing":      {"index.html": "-> ../../home/new"},
		"histories":                {"histories": "-> ../../home"},
		"logs":                     {"logs": "-> ../../home"},
		"temporary files":          {"index.html.tmp": "-> ../../home/docs/thesis.txt", ".lockfault-0123456789abcdef.tmp": "-> ../../home/docs/thesis.txt"},
		"a foreign file's way":     {".lockfault/former/histories/docs/notes": "mine", "histories": "-> ../../home"},
		"another target of a name": {".lockfault/now": "-> fresh", ".lockfault/fresh": "/", "report.md": "-> ../../home/docs/thesis.txt"},
	} {
		t.Run(name, func(t *testing.T) {
			top, out := home(t)
			theirs := everything(t, filepath.Join(top, "home")) + everything(t, filepath.Join(top, "repo", ".git"))
			lay(t, out, map[string]string{".lockfault/README": markText, ".lockfault/cells.jsonl": ""})
			lay(t, out, entries)
			r, err := reports.Create(out, head(), plan())
			if err == nil {
				for i, c := range sample() {
					add(t, r, i, c)
				}
				err = r.Close()
			}
			if err != nil && (strings.Contains(err.Error(), "\n") || !strings.Contains(err.Error(), out)) {
				t.Errorf("error %v", err)
			}
			if after := everything(t, filepath.Join(top, "home")) + everything(t, filepath.Join(top, "repo", ".git")); after != theirs {
				t.Errorf("there is\n%s\nwant\n%s", after, theirs)
			}
			if err == nil {
				for _, name := range []string{"results.json", "index.html", "report.md", "histories"} {
					if info, err := os.Lstat(filepath.Join(out, name)); err != nil || info.Mode()&fs.ModeSymlink != 0 {
						t.Errorf("%s is %v, %v", name, info, err)
					}
				}
			}
		})
	}
}

// TestHalfMadeWork checks that the working directory of a run that was killed at its beginning or
// its end is accepted.
func TestHalfMadeWork(t *testing.T) {
	states := []map[string]string{{".lockfault": "/"}, {".lockfault/cells.jsonl": ""}, {".lockfault/README": markText}, {".lockfault/README": markText, ".lockfault/1/x": "x"}}
	for n := range len(markText) + 1 {
		states = append(states, map[string]string{".lockfault/README": markText[:n], ".lockfault/cells.jsonl": ""})
	}
	for _, entries := range states {
		_, out := home(t)
		lay(t, out, entries)
		r, err := reports.Create(out, head(), reports.Plan{Cells: 1})
		if err != nil {
			t.Errorf("with %v: %v", entries, err)
			continue
		}
		r.Leave() // like a kill at this point
		if r, err = reports.Resume(out, head(), reports.Plan{Cells: 1}); err != nil {
			t.Errorf("with %v, resumed: %v", entries, err)
			continue
		}
		add(t, r, 0, sample()[0])
		if err := r.Close(); err != nil {
			t.Errorf("with %v: %v", entries, err)
		}
		if _, err := os.Lstat(filepath.Join(out, reports.WorkDir)); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("with %v: %s is left: %v", entries, reports.WorkDir, err)
		}
	}
}

// TestHistoriesOfOthers checks that no path of a history in results.json or in the journal leads
// out of the report.
func TestHistoriesOfOthers(t *testing.T) {
	dir := write(t, sample(), []int{0, 1, 2, 3, 4, 5, 6, 7})
	history := sample()[0].History
	secret := filepath.Join(t.TempDir(), "secret.jsonl")
	if err := os.WriteFile(secret, []byte(read(t, filepath.Join(dir, history))), 0o644); err != nil {
		t.Fatal(err)
	}
	results, page := read(t, filepath.Join(dir, "results.json")), read(t, filepath.Join(dir, "index.html"))
	up, err := filepath.Rel(dir, secret)
	if err != nil {
		t.Fatal(err)
	}
	checks := func(when string) {
		t.Helper()
		for name, do := range map[string]func() error{
			"Rebuild":    func() error { return reports.Rebuild(t.Context(), dir) },
			"RecheckDir": func() error { _, err := reports.RecheckDir(t.Context(), dir); return err },
			"DrawCell": func() error {
				return reports.DrawCell(&strings.Builder{}, dir, sample()[0].Strategy, sample()[0].Scenario, "", "text")
			},
		} {
			err := do()
			if err == nil || !strings.Contains(err.Error(), "leads out of the") {
				t.Errorf("%s with %s: error %v", name, when, err)
			}
			if text := read(t, filepath.Join(dir, "index.html")); text != page {
				t.Errorf("%s with %s has written the page", name, when)
			}
		}
	}
	for _, path := range []string{"../..", filepath.ToSlash(up), filepath.ToSlash(secret), "histories/../../x.jsonl"} {
		text := strings.Replace(results, `"history":"`+history+`"`, `"history":"`+path+`"`, 1)
		if text == results {
			t.Fatal("results.json has no such history")
		}
		lay(t, dir, map[string]string{"results.json": text})
		checks(path)
	}
	lay(t, dir, map[string]string{"results.json": results})
	for _, target := range []string{secret, filepath.Join("..", "..", "..", up)} {
		if err := os.Remove(filepath.Join(dir, history)); err != nil {
			t.Fatal(err)
		}
		lay(t, dir, map[string]string{history: "-> " + filepath.ToSlash(target)})
		checks("a link to " + target)
	}

	// The results file itself may also be a link out of the directory.
	if err := errors.Join(os.Rename(filepath.Join(dir, "results.json"), filepath.Join(filepath.Dir(secret), "results.json")),
		os.Symlink(filepath.Join(filepath.Dir(secret), "results.json"), filepath.Join(dir, "results.json"))); err != nil {
		t.Fatal(err)
	}
	checks("results that are a link")
}

func TestResumeTakesNoHistoryFromOutside(t *testing.T) {
	_, out := home(t)
	r, err := reports.Create(out, head(), plan())
	if err != nil {
		t.Fatal(err)
	}
	add(t, r, 0, sample()[0])
	r.Leave()
	journal := filepath.Join(out, reports.WorkDir, "cells.jsonl")
	lines := strings.Split(read(t, journal), "\n")
	var kept map[string]any
	if err := json.Unmarshal([]byte(lines[1]), &kept); err != nil {
		t.Fatal(err)
	}
	kept["cell"].(map[string]any)["history"] = "../../../../home/docs/thesis.txt"
	text, err := json.Marshal(kept)
	if err != nil {
		t.Fatal(err)
	}
	lay(t, out, map[string]string{".lockfault/cells.jsonl": lines[0] + "\n" + string(text) + "\n"})
	if r, err := reports.Resume(out, head(), plan()); err == nil || !strings.Contains(err.Error(), "leads out of the report's directory") {
		t.Errorf("error %v", err)
		if err == nil {
			r.Leave()
		}
	}
}

// TestRebuildAmongLinks checks that a rebuild writes through no link, and removes the leftovers of
// a killed rebuild.
func TestRebuildAmongLinks(t *testing.T) {
	dir := write(t, sample(), []int{0, 1, 2, 3, 4, 5, 6, 7})
	page := read(t, filepath.Join(dir, "index.html"))
	victim := filepath.Join(t.TempDir(), "victim")
	left := ".lockfault-0123456789abcdef.tmp"
	theirs := map[string]string{"index.html.tmp": "-> " + victim, "report.md.tmp": "-> " + victim, ".lockfault-notes.tmp": "mine", ".lockfault-fedcba9876543210.tmp": "-> " + victim}
	if err := os.WriteFile(victim, []byte("theirs"), 0o644); err != nil {
		t.Fatal(err)
	}
	lay(t, dir, theirs)
	lay(t, dir, map[string]string{left: "half a page"})
	if err := reports.Rebuild(t.Context(), dir); err != nil {
		t.Fatal(err)
	}
	if text := read(t, victim); text != "theirs" {
		t.Errorf("the target has %.40q", text)
	}
	for name := range theirs {
		if _, err := os.Lstat(filepath.Join(dir, name)); err != nil {
			t.Error(err)
		}
	}
	if _, err := os.Lstat(filepath.Join(dir, left)); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("%s is left: %v", left, err)
	}
	if read(t, filepath.Join(dir, "index.html")) != page {
		t.Error("the page is another one")
	}
	lay(t, filepath.Dir(victim), map[string]string{"index.html": page})
	if err := os.Remove(filepath.Join(dir, "index.html")); err != nil {
		t.Fatal(err)
	}
	lay(t, dir, map[string]string{"index.html": "-> " + filepath.Join(filepath.Dir(victim), "index.html")})
	if err := reports.Rebuild(t.Context(), dir); err == nil || !strings.Contains(err.Error(), "index.html") {
		t.Errorf("the page is a link: %v", err)
	}
}
