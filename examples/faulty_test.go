package examples

import (
	"bytes"
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/lockfault/lockfault/checker"
	"github.com/lockfault/lockfault/internal/leases"
	"github.com/lockfault/lockfault/internal/worlds"
	"github.com/lockfault/lockfault/reports"
)

var (
	playAll = flag.Bool("all", false, "all cells on real servers, instead of a random selection (default false)")
	seed    = flag.Uint64("seed", 0, "`seed` of random selections and random scripts (default 0: a random seed)")
)

// A promise is what a lock with a bug must show.
type promise struct {
	lock      string
	scenario  string // its name; of a script in examples/corpus/scripts its file's
	anomalies []checker.Anomaly
	simOnly   bool
}

// A table is examples/corpus/faulty.txt.
type table struct {
	locks    []string
	promises []promise
	missed   map[string]string // why no scenario of the library brings a lock's bug out
	errs     map[string]bool   // locks that can't be played with more than one client: an error says so
}

func readTable(t *testing.T) table {
	t.Helper()
	const name = "corpus/faulty.txt"
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	read := table{missed: map[string]string{}, errs: map[string]bool{}}
	for i, line := range strings.Split(string(text), "\n") {
		line, _, _ := strings.Cut(line, "#")
		first, rest, ok := strings.Cut(strings.TrimSpace(line), ":")
		rest = strings.TrimSpace(rest)
		switch lock := len(read.locks) - 1; {
		case first == "":
		case !ok, strings.HasPrefix(line, " ") == (rest == ""), rest != "" && lock < 0:
			t.Fatalf("%s:%d: %q is neither a lock nor what it shows", name, i+1, line)
		case rest == "":
			read.locks = append(read.locks, first)
		case first == "missed":
			read.missed[read.locks[lock]] = rest
		case first == "*" && rest == "error":
			read.errs[read.locks[lock]] = true
		default:
			p := promise{lock: read.locks[lock]}
			p.scenario, p.simOnly = strings.CutSuffix(first, " in sim")
			for _, word := range strings.Fields(rest) {
				if !slices.Contains(checker.Anomalies(), checker.Anomaly(word)) {
					t.Fatalf("%s:%d: there is no anomaly %q", name, i+1, word)
				}
				p.anomalies = append(p.anomalies, checker.Anomaly(word))
			}
			read.promises = append(read.promises, p)
		}
	}
	return read
}

// library reports whether a promise is about a scenario of the library.
func (p promise) library() bool { return !strings.HasSuffix(p.scenario, ".txt") }

// argument returns what names the promise's scenario on a command line.
func (p promise) argument() string {
	if p.library() {
		return p.scenario
	}
	return filepath.Join("corpus", "scripts", p.scenario)
}

// kept returns what is wrong with a cell that should keep the promise; nothing if it does.
func (p promise) kept(cell reports.Cell) string {
	for _, anomaly := range p.anomalies {
		if !slices.Contains(cell.Anomalies, anomaly) {
			return fmt.Sprintf("%s under %s in %s: %s %v lacks %s. %s", p.lock, p.scenario, cell.World, cell.Verdict, cell.Anomalies, anomaly, cell.Reason)
		}
	}
	return ""
}

// play plays cells and returns them. That they don't come out as their scripts expect
// is none of its business.
func play(t *testing.T, program string, args ...string) []reports.Cell {
	t.Helper()
	cells, _ := playAgain(t, program, args...)
	return cells
}

// The locks with a bug show it: all of them under the whole library in virtual time, and
// what the table names on real servers too, where both worlds agree.
func TestFaultyLocks(t *testing.T) {
	program, read := build(t, "corpus"), readTable(t)
	t.Run("table", func(t *testing.T) { checkTable(t, program, read) })
	t.Run("page", func(t *testing.T) { checkPage(t, program, read) })
	t.Run("sim", func(t *testing.T) { checkInVirtualTime(t, program, read) })
	t.Run("process", func(t *testing.T) { checkOnRealServers(t, program, read) })
}

// bugs returns the locks of the program that have one, with what it is.
func bugs(t *testing.T, program string) (locks []string, bug map[string]string) {
	t.Helper()
	out, err := exec.Command(program, "list", "strategies").Output()
	if err != nil {
		t.Fatal(err)
	}
	bug = map[string]string{}
	for line := range strings.Lines(string(out)) {
		if fields := strings.Fields(line); strings.HasPrefix(line, "faulty-") && len(fields) > 2 {
			locks = append(locks, fields[0])
			bug[fields[0]] = strings.Join(fields[2:], " ") // behind the number of nodes
		}
	}
	return locks, bug
}

func checkTable(t *testing.T, program string, read table) {
	locks, _ := bugs(t, program)
	if !slices.Equal(slices.Sorted(slices.Values(locks)), slices.Sorted(slices.Values(read.locks))) {
		t.Errorf("the program has the locks\n%q\nand the table has\n%q", locks, read.locks)
	}
	if len(locks) < 40 {
		t.Errorf("%d locks only", len(locks))
	}
	shown := map[string]bool{}
	scripts := map[string]bool{}
	for _, p := range read.promises {
		if p.library() {
			shown[p.lock] = true
		} else {
			scripts[p.scenario] = true
		}
	}
	for _, lock := range read.locks {
		if reason := read.missed[lock]; shown[lock] == (reason != "") {
			t.Errorf("%s shows its bug under a scenario of the library: %t; why none brings it out: %q", lock, shown[lock], reason)
		}
	}
	files, err := filepath.Glob("corpus/scripts/*.txt")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		if !scripts[filepath.Base(file)] {
			t.Errorf("%s is named by no lock", file)
		}
	}
}

// decided reports whether a cell came to a verdict, or is none that could.
func decided(cell reports.Cell) bool {
	return cell.Verdict != reports.Error && cell.Verdict != reports.Unknown
}

func checkInVirtualTime(t *testing.T, program string, read table) {
	type key struct{ lock, scenario string }
	played, failed := map[key]reports.Cell{}, map[string]bool{}
	// One after the other in the same processes: these locks keep nothing in variables.
	cells := play(t, program, "--isolate=false", "--cell-timeout", "5m", "--strategy", "faulty-*", "--scenario", "*,corpus/scripts/")
	for _, cell := range cells {
		played[key{cell.Strategy, cell.Scenario}] = cell
		failed[cell.Strategy] = failed[cell.Strategy] || cell.Verdict == reports.Error
		if !decided(cell) && !read.errs[cell.Strategy] {
			t.Errorf("%s under %s: %s: %s", cell.Strategy, cell.Scenario, cell.Verdict, cell.Reason)
		}
	}
	for lock := range read.errs {
		if !failed[lock] {
			t.Errorf("%s is no error anywhere", lock)
		}
	}
	called := map[string]bool{} // locks of which a promised anomaly is called a bug
	for _, p := range read.promises {
		cell, ok := played[key{p.lock, strings.TrimSuffix(p.scenario, ".txt")}]
		for _, f := range leases.Bugs(cell.Findings) {
			called[p.lock] = called[p.lock] || slices.Contains(p.anomalies, f.Anomaly)
		}
		if !ok {
			t.Errorf("%s was not played under %s", p.lock, p.scenario)
		} else if wrong := p.kept(cell); wrong != "" {
			t.Error(wrong)
		}
	}
	for _, p := range read.promises {
		if !called[p.lock] {
			t.Errorf("%s: no anomaly that the table promises is called a bug", p.lock)
			called[p.lock] = true // once is enough
		}
	}
}

// checkOnRealServers checks a random selection of the cells of the table on real servers, or with
// -all every cell. The flag -seed repeats a selection.
func checkOnRealServers(t *testing.T, program string, read table) {
	switch err := (worlds.Place{World: worlds.Process}).Check(t.Context(), nil); {
	case err == nil:
	case os.Getenv("CI") != "":
		t.Fatal(err)
	default:
		t.Skip(err)
	}
	real := slices.DeleteFunc(slices.Clone(read.promises), func(p promise) bool { return p.simOnly })
	if !*playAll {
		const some = 12
		rand.New(rand.NewPCG(seedOf(t), 0)).Shuffle(len(real), func(i, j int) { real[i], real[j] = real[j], real[i] })
		real = real[:some]
	}
	// A run plays all that it names with each other: a run for each scenario.
	of := map[string][]promise{}
	for _, p := range real {
		of[p.argument()] = append(of[p.argument()], p)
	}
	var late atomic.Int64
	t.Cleanup(func() { // when those that are parallel have ended
		if late.Load() > int64(len(real)/3) {
			t.Errorf("the machine was too slow for %d of %d cells", late.Load(), len(real))
		}
	})
	some := make(chan bool, 4)
	for _, scenario := range slices.Sorted(maps.Keys(of)) {
		promises := of[scenario]
		t.Run(filepath.Base(scenario), func(t *testing.T) {
			t.Parallel() // they mostly wait
			some <- true
			defer func() { <-some }()
			var locks []string
			for _, p := range promises {
				locks = append(locks, p.lock)
			}
			cells := play(t, program, "--world", "sim,process", "--jobs", "2", "--strategy", strings.Join(locks, ","), "--scenario", scenario)
			if len(cells) != 2*len(promises) {
				t.Errorf("%s was played in %d cells, want %d", scenario, len(cells), 2*len(promises))
			}
			for _, cell := range cells {
				if cell.Verdict == reports.Unknown {
					late.Add(1)
					t.Logf("%s under %s in %s: %s", cell.Strategy, cell.Scenario, cell.World, cell.Reason)
					continue
				}
				i := slices.IndexFunc(promises, func(p promise) bool { return p.lock == cell.Strategy })
				if wrong := promises[i].kept(cell); wrong != "" {
					t.Error(wrong)
				}
				if cell.AgreesWithSim != nil && !*cell.AgreesWithSim {
					t.Errorf("%s under %s: %s doesn't agree with sim: %v", cell.Strategy, cell.Scenario, cell.World, cell.Anomalies)
				}
			}
		})
	}
}

// page shows the table; what the test writes stands between these lines of it.
const (
	page       = "../docs/specimens.md"
	pageBegins = "<!-- from examples/corpus: go test ./examples -run TestFaultyLocks/page -update -->\n"
	pageEnds   = "<!-- end -->\n"
)

// checkPage sees to it that docs/specimens.md says of the locks with a bug what the
// program and the table say.
func checkPage(t *testing.T, program string, read table) {
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, ok := strings.Cut(string(text), pageBegins)
	_, after, ends := strings.Cut(rest, pageEnds)
	if !ok || !ends {
		t.Fatalf("%s has not both\n%s%s", page, pageBegins, pageEnds)
	}
	_, bug := bugs(t, program)
	want := before + pageBegins + pageTables(read, bug) + pageEnds + after
	if *update {
		if err := os.WriteFile(page, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	} else if want != string(text) {
		t.Errorf("%s is not up to date: -update writes it. They differ from line %s", page, difference(string(text), want))
	}
}

func pageTables(read table, bug map[string]string) string {
	var out bytes.Buffer
	fmt.Fprintf(&out, "%d locks; %d of them show their bug under a scenario of the library.\n\n", len(read.locks), len(read.locks)-len(read.missed))
	out.WriteString("| lock | bug | must show, at least |\n|---|---|---|\n")
	for _, lock := range read.locks {
		var shows []string
		for _, p := range read.promises {
			if p.lock == lock {
				where := fmt.Sprintf("`%s`", p.scenario)
				if p.simOnly {
					where += " (in `sim`)"
				}
				shows = append(shows, fmt.Sprintf("%s: %s", where, words(p.anomalies)))
			}
		}
		if read.errs[lock] {
			shows = append(shows, "with more than one client: error")
		}
		fmt.Fprintf(&out, "| `%s` | %s | %s |\n", lock, bug[lock], strings.Join(shows, "; "))
	}
	out.WriteString("\n## Missed\n\nUnder no scenario of the library these show their bug:\n\n| lock | why |\n|---|---|\n")
	for _, lock := range read.locks {
		if why := read.missed[lock]; why != "" {
			fmt.Fprintf(&out, "| `%s` | %s |\n", lock, why)
		}
	}
	out.WriteString("\n")
	return out.String()
}

func words(anomalies []checker.Anomaly) string {
	var list []string
	for _, a := range anomalies {
		list = append(list, string(a))
	}
	return strings.Join(list, ", ")
}
