package main

import (
	"flag"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/lockfault/lockfault/internal/worlds"
	"github.com/lockfault/lockfault/reports"
)

var playAll = flag.Bool("all", false, "all scripts of the table on real servers, instead of a random selection (default false)")

// build compiles the program that the page is about, and goes to the repository's root.
func build(t *testing.T) string {
	t.Helper()
	t.Chdir("../../..")
	program := filepath.Join(t.TempDir(), "trackrecord.exe")
	cmd := exec.Command("go", "build", "-o", program, ".")
	cmd.Dir = module
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%s can't be built: %v\n%s\nIf modules are missing, go mod tidy there gets them", module, err, out)
	}
	return program
}

// playedRows returns the rows that come out, and the cells.
func playedRows(t *testing.T, program, worlds string, scripts []string) ([]row, map[cellKey]outcome) {
	t.Helper()
	versions, err := readVersions(module)
	if err != nil {
		t.Fatal(err)
	}
	played, err := play(program, module, worlds, scripts)
	if err != nil {
		t.Fatal(err)
	}
	all, err := rows(records(), versions, played)
	if err != nil {
		t.Fatal(err)
	}
	return all, played
}

// The page says what the libraries do, at the versions that are built.
func TestThePageIsTrue(t *testing.T) {
	program := build(t)
	text, err := os.ReadFile("docs/track-record.md")
	if err != nil {
		t.Fatal(err)
	}
	committed := parseRows(string(text))
	t.Run("search", func(t *testing.T) { searches(t, program) })
	t.Run("sim", func(t *testing.T) {
		got, played := playedRows(t, program, "sim", names())
		if len(got) != len(committed) {
			t.Fatalf("the page has %d lines, want %d: make track-record", len(committed), len(got))
		}
		for i, want := range committed {
			got[i].real = want.real
			if got[i] != want {
				t.Errorf("the page has\n%s\nwant\n%s\nmake track-record writes it", want.line(), got[i].line())
			}
		}
		for key, o := range played {
			if wrong := o.cell.Difference(); wrong != "" || !o.cell.Decided() {
				t.Errorf("%s under %s: %s %s %s", key.strategy, key.script, o.cell.Verdict, wrong, o.cell.Reason)
			}
		}
	})
	t.Run("process", func(t *testing.T) {
		switch err := (worlds.Place{World: worlds.Process}).Check(t.Context(), nil); {
		case err == nil:
		case os.Getenv("CI") != "":
			t.Fatal(err)
		default:
			t.Skip(err)
		}
		scripts := names()
		if !*playAll {
			const some = 4
			rand.Shuffle(len(scripts), func(i, j int) { scripts[i], scripts[j] = scripts[j], scripts[i] })
			scripts = scripts[:some]
		}
		t.Logf("these scripts are played: %s", strings.Join(scripts, ", "))
		got, _ := playedRows(t, program, "sim,process", scripts)
		for i, want := range committed {
			switch verdict := got[i].real; {
			case verdict == "not played":
			case verdict == string(reports.Unknown):
				t.Logf("the machine was too slow for %s", want.line())
			case verdict != want.real:
				t.Errorf("%s came out as %q", want.line(), verdict)
			}
		}
	})
}

// The page shows defects, each cure does better, and both worlds agree.
func TestThePageSaysSomething(t *testing.T) {
	t.Chdir("../../..")
	text, err := os.ReadFile("docs/track-record.md")
	if err != nil {
		t.Fatal(err)
	}
	committed, at := parseRows(string(text)), 0
	lines := 0
	for _, r := range records() {
		lines += 1 + len(r.cures)
	}
	if len(committed) != lines {
		t.Fatalf("the page has %d lines, want %d: make track-record", len(committed), lines)
	}
	for _, r := range records() {
		shows := committed[at]
		if shows.sim == "nothing" {
			t.Errorf("nothing is wrong with %s", shows.line())
		}
		for _, cure := range committed[at+1 : at+1+len(r.cures)] {
			if cure.sim == shows.sim {
				t.Errorf("%s shows the same as without it", cure.line())
			}
		}
		at += 1 + len(r.cures)
	}
	for _, r := range committed {
		if r.sim != r.real {
			t.Errorf("the worlds don't agree: %s", r.line())
		}
	}
}

// Every script is in a record, and names its source.
func TestScripts(t *testing.T) {
	files, err := filepath.Glob(filepath.Join("..", "..", "..", module, "scripts", "*.txt"))
	if err != nil {
		t.Fatal(err)
	}
	if len(files) == 0 {
		t.Fatal("there are no scripts")
	}
	for _, file := range files {
		name := strings.TrimSuffix(filepath.Base(file), ".txt")
		if !slices.Contains(names(), name) {
			t.Errorf("%s is in no record", file)
		}
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(string(text), "\n# source: ") {
			t.Errorf("%s names no source", file)
		}
	}
}

// parseRows parses the rows of a page.
func parseRows(page string) (all []row) {
	_, table, _ := strings.Cut(page, "\n|---")
	for _, line := range strings.Split(table, "\n")[1:] {
		cells := strings.Split(line, " | ")
		if len(cells) != 7 {
			break
		}
		first, last := strings.TrimPrefix(strings.TrimPrefix(cells[0], "|"), " "), strings.TrimSuffix(cells[6], " |")
		all = append(all, row{first, cells[1], cells[2], cells[3], strings.Trim(cells[4], "`"), cells[5], last})
	}
	return all
}
