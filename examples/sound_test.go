package examples

import (
	"cmp"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/lockfault/lockfault/checker"
	"github.com/lockfault/lockfault/internal/leases"
	"github.com/lockfault/lockfault/internal/worlds"
	"github.com/lockfault/lockfault/reports"
	"github.com/lockfault/lockfault/scenarios"
	"github.com/lockfault/lockfault/scenarios/racefree"
)

// A leaseTable is what docs/leases.md allows, by scenario and class of lock.
type leaseTable struct {
	classes []string
	rows    map[string]map[string]leaseCell
}

// A leaseCell is what a class may show under a scenario, and the reasons.
type leaseCell struct {
	written string
	applies bool
	allowed []checker.Anomaly
	reasons string
}

// readLeases reads the page, and returns the text, too.
func readLeases(t *testing.T) (leaseTable, string) {
	t.Helper()
	page, err := os.ReadFile("../docs/leases.md")
	if err != nil {
		t.Fatal(err)
	}
	text := string(page)
	letters := map[rune]checker.Anomaly{}
	for _, a := range checker.Anomalies() {
		if m := regexp.MustCompile(`(?m)(?:^| · )([A-Z]) ` + string(a) + `(?: · |$)`).FindStringSubmatch(text); m != nil {
			letters[rune(m[1][0])] = a
		}
	}
	table := leaseTable{rows: map[string]map[string]leaseCell{}}
	for line := range strings.Lines(text) {
		words := rowOf(line)
		switch {
		case len(words) > 0 && words[0] == "scenario":
			table.classes = words[1:]
		case len(words) != len(table.classes)+1 || table.classes == nil || strings.HasPrefix(words[0], "-"):
			// not of this table
		case table.rows[words[0]] != nil:
			t.Errorf("%s has two rows", words[0])
		default:
			row := map[string]leaseCell{}
			for i, class := range table.classes {
				row[class] = cellOf(t, words[0], class, words[i+1], letters)
			}
			table.rows[words[0]] = row
		}
	}
	if len(table.rows) == 0 {
		t.Fatal("docs/leases.md has no table")
	}
	return table, text
}

// rowOf returns the cells of a line of a Markdown table.
func rowOf(line string) []string {
	line = strings.TrimSpace(line)
	if !strings.HasPrefix(line, "|") {
		return nil
	}
	words := strings.Split(strings.Trim(line, "|"), "|")
	for i := range words {
		words[i] = strings.TrimSpace(words[i])
	}
	return words
}

func cellOf(t *testing.T, scenario, class, written string, letters map[rune]checker.Anomaly) leaseCell {
	t.Helper()
	cell := leaseCell{written: written, applies: written != "-"}
	if written == "-" || written == "·" {
		return cell
	}
	for _, letter := range written {
		switch a, known := letters[letter]; {
		case known:
			cell.allowed = append(cell.allowed, a)
		case letter >= 'a' && letter <= 'z':
			cell.reasons += string(letter)
		case letter != ' ':
			t.Errorf("%s × %s says %q, of which %q means nothing", scenario, class, written, letter)
		}
	}
	if cell.allowed == nil || cell.reasons == "" {
		t.Errorf("%s × %s says %q; want anomalies and a reason", scenario, class, written)
	}
	return cell
}

// The page has a row for each scenario, describes each class, and gives each of
// its reasons once.
func TestLeasesPage(t *testing.T) {
	table, text := readLeases(t)
	list, err := scenarios.Library()
	if err != nil {
		t.Fatal(err)
	}
	var library []string
	for _, s := range list {
		library = append(library, s.Name)
	}
	slices.Sort(library)
	if rows := slices.Sorted(maps.Keys(table.rows)); !slices.Equal(rows, library) {
		t.Errorf("the rows are %q; want the library's scenarios, %q", rows, library)
	}
	for _, class := range table.classes {
		if n := strings.Count(text, "\n| `"+class+"` |"); n != 1 {
			t.Errorf("the class %s is described %d times; want once", class, n)
		}
	}
	used := ""
	for _, row := range table.rows {
		for _, cell := range row {
			used += cell.reasons
		}
	}
	for reason := 'a'; reason <= 'z'; reason++ {
		given := strings.Count(text, "\n| "+string(reason)+" | **")
		if wants := strings.ContainsRune(used, reason); given > 1 || wants != (given == 1) {
			t.Errorf("reason %c: given %d times, and needed: %v", reason, given, wants)
		}
	}
}

// An innocent is a lock that comes with lockfault and has no bug for its class, but
// for those that are known and named with it.
type innocent struct {
	class string
	known map[string][]checker.Anomaly // by scenario
}

func innocents() map[string]innocent {
	// A client library that repeats SET NX PX is told no because of itself.
	asksTwice := map[string][]checker.Anomaly{"ghost-retry": {checker.Ghost}}
	return map[string]innocent{
		"set-nx-px-lua": {"lease", asksTwice},
		"fenced":        {"fencing", asksTwice},
		"set-wait":      {"replicas", asksTwice},
		// What is asked twice is counted twice.
		"redisson":  {"watchdog", map[string][]checker.Anomaly{"ghost-retry": {checker.StuckLock}}},
		"redislock": {"lease", nil},
		"redsync":   {"validity", nil},
		"redsync-5": {"majority", nil},
		"redlock":   {"majority", nil},
	}
}

// soundClasses returns the class of each sound lock of the program, which is the
// one class among its tags.
func soundClasses(t *testing.T, program string, table leaseTable) map[string]string {
	t.Helper()
	classes := map[string]string{}
	for _, class := range table.classes {
		for _, c := range play(t, program, "--isolate=false", "--strategy", "@"+class, "--scenario", "contention") {
			if !strings.HasPrefix(c.Strategy, "sound-") {
				continue
			}
			if other := classes[c.Strategy]; other != "" {
				t.Errorf("%s is of two classes, %s and %s", c.Strategy, other, class)
			}
			classes[c.Strategy] = class
		}
	}
	list, err := exec.Command(program, "list", "strategies").Output()
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(list)) {
		if name := strings.Fields(line)[0]; strings.HasPrefix(name, "sound-") && classes[name] == "" {
			t.Errorf("%s is of no class that the table has", name)
		}
	}
	return classes
}

// hold compares what a lock showed with what the table allows its class.
func (table leaseTable) hold(t *testing.T, c reports.Cell, class string, known []checker.Anomaly) {
	t.Helper()
	cell, has := table.rows[c.Scenario][class]
	switch {
	case c.Verdict == reports.NotApplicable:
		return
	case !has || !cell.applies:
		t.Errorf("%s under %s (%s): the table has nothing for the class %q there", c.Strategy, c.Scenario, c.World, class)
		return
	case !c.Decided():
		t.Errorf("%s under %s (%s): %s: %s", c.Strategy, c.Scenario, c.World, c.Verdict, c.Reason)
		return
	case c.Unjudged != nil:
		t.Errorf("%s under %s (%s): not judged in full: %s", c.Strategy, c.Scenario, c.World, c.Unjudged.Message)
	}
	for _, f := range leases.Bugs(c.Findings) {
		if !slices.Contains(known, f.Anomaly) {
			t.Errorf("%s under %s (%s), class %s: %s", c.Strategy, c.Scenario, c.World, class, f)
		}
	}
	for _, a := range c.Anomalies {
		if !slices.Contains(cell.allowed, a) && !slices.Contains(known, a) {
			t.Errorf("%s under %s (%s): shows %s; a lock of the class %s may show %q at most", c.Strategy, c.Scenario, c.World, a, class, cell.written)
		}
	}
}

// No lock without a bug is accused of one: what it shows is what leases allow.
func TestSoundLocks(t *testing.T) {
	table, _ := readLeases(t)
	program := build(t, "corpus")
	classes := soundClasses(t, program, table)
	const least = 20
	if len(classes) < least {
		t.Errorf("%d sound locks; want %d at least", len(classes), least)
	}
	// One after the other in the same processes: these locks keep nothing in variables.
	cells := play(t, program, "--isolate=false", "--strategy", "sound-*")
	known := map[string]map[string][]checker.Anomaly{}
	for name, i := range innocents() {
		classes[name], known[name] = i.class, i.known
	}
	cells = append(cells, play(t, build(t, "../cmd/lockfault"), "--strategy", strings.Join(slices.Sorted(maps.Keys(innocents())), ","))...)

	shown := map[string]map[string][]checker.Anomaly{} // by scenario and class
	for _, c := range cells {
		class := classes[c.Strategy]
		table.hold(t, c, class, known[c.Strategy][c.Scenario])
		if shown[c.Scenario] == nil {
			shown[c.Scenario] = map[string][]checker.Anomaly{}
		}
		shown[c.Scenario][class] = append(shown[c.Scenario][class], c.Anomalies...)
	}
	if want := (len(classes)) * len(table.rows); len(cells) != want {
		t.Errorf("%d cells were played; want %d", len(cells), want)
	}
	// A table that allows what no lock shows may be too generous.
	for _, scenario := range slices.Sorted(maps.Keys(table.rows)) {
		for _, class := range table.classes {
			for _, a := range table.rows[scenario][class].allowed {
				if !slices.Contains(shown[scenario][class], a) {
					t.Logf("%s × %s allows %s, which no lock of the class shows", scenario, class, a)
				}
			}
		}
	}
}

// TestSoundLocksOnRealServers checks a random selection of cells on real servers, or with -all every
// cell. The flag -seed repeats a selection.
func TestSoundLocksOnRealServers(t *testing.T) {
	t.Parallel()
	switch err := (worlds.Place{World: worlds.Process}).Check(t.Context(), nil); {
	case err == nil:
	case os.Getenv("CI") != "":
		t.Fatal(err)
	default:
		t.Skip(err)
	}
	table, _ := readLeases(t)
	program := build(t, "corpus")
	classes := soundClasses(t, program, table)
	args := []string{"--world", "sim,process", "--strategy", "sound-*"}
	if !*playAll {
		seed := seedOf(t)
		const locks, scripts = 4, 3
		args[3] = drawn(seed, classes, locks)
		args = append(args, "--jobs", "4", "--scenario", drawn(seed, table.rows, scripts))
	}
	for _, c := range play(t, program, args...) {
		table.hold(t, c, classes[c.Strategy], nil)
		if c.AgreesWithSim != nil && !*c.AgreesWithSim {
			t.Logf("%s under %s shows %v in %s, and not the same in sim", c.Strategy, c.Scenario, c.Anomalies, c.World)
		}
	}
}

// never are the anomalies that no class may show under any script.
func never() []checker.Anomaly {
	return []checker.Anomaly{checker.ForeignRelease, checker.ForeignExtend, checker.Unreleasable, checker.Ghost}
}

// The table has none of them anywhere.
func TestLeasesNeverAllow(t *testing.T) {
	table, _ := readLeases(t)
	for scenario, row := range table.rows {
		for class, cell := range row {
			for _, a := range never() {
				if slices.Contains(cell.allowed, a) {
					t.Errorf("%s × %s allows %s", scenario, class, a)
				}
			}
		}
	}
}

// What the network kept of a call that nobody waits for any more is not held
// against the next one, whatever the scripts are: some that did so once, and others
// drawn anew each time. The flag -seed repeats the random scripts.
func TestSoundLocksUnderOtherScripts(t *testing.T) {
	const head = "clients A B\nread-timeout 0.1ttl\n\n"
	scripts := map[string]string{
		"late-acquire": "hold A before writing times 1\nbegin A try\nawait A done\nA acquire\nwait 1.1ttl\npass A\n",
		"late-attempt": "B acquire\nhold A before writing times 1\nbegin A try\nawait A done\nA try\nB release\npass A\nwait 0.1ttl\n",
		"extended":     "drop A after taking times 1\nA try\nwait 0.8ttl\nA extend\nwait 0.75ttl\nB try\n",
	}
	for name, steps := range scripts {
		scripts[name] = head + steps + "\nexpect none\n"
	}
	seed := seedOf(t)
	for _, of := range []racefree.Subject{{Name: "one", Nodes: 1, Replicas: 2}, {Name: "five", Nodes: 5}, {Name: "renewed", Nodes: 1, Replicas: 1, Watchdog: true}} {
		for i := range uint64(2) {
			text := racefree.Script(of.Name, seed+i, of)
			scripts[fmt.Sprintf("%s-%d", of.Name, i)] = strings.Replace(text, "for "+of.Name+"\n", "for sound-*\n", 1)
		}
	}
	dir := t.TempDir()
	for name, text := range scripts {
		if err := os.WriteFile(filepath.Join(dir, name+".txt"), []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range play(t, build(t, "corpus"), "--isolate=false", "--strategy", "sound-*", "--scenario", dir) {
		// A script that doesn't know whom a failover promotes may ask for the impossible.
		if !c.Decided() && !strings.Contains(c.Reason, "is impossible") {
			t.Errorf("%s under %s: %s: %s", c.Strategy, c.Scenario, c.Verdict, c.Reason)
		}
		// What is written in a key of when the lease ends nobody reads but the lock: one
		// whose key has no time to live looks as if it had no lease, and as if who
		// takes it over had replaced a lock that was still another's.
		forever := c.Strategy == "sound-forever" || c.Strategy == "sound-written"
		for _, a := range c.Anomalies {
			switch {
			case forever && (a == checker.StuckLock || a == checker.Unreleasable):
			case slices.Contains(never(), a) || a == checker.StuckLock && strings.HasSuffix(c.Scenario, "extended.txt"):
				t.Errorf("%s under %s: shows %s:\n%s", c.Strategy, c.Scenario, a, scripts[strings.TrimSuffix(filepath.Base(c.Scenario), ".txt")])
			}
		}
	}
}

// seedOf returns the value of -seed, or a random seed if the value is 0, and logs the flag that
// repeats the test.
func seedOf(t *testing.T) uint64 {
	t.Helper()
	seed := cmp.Or(*seed, 1+rand.Uint64N(1e9))
	t.Logf("-seed %d", seed)
	return seed
}

// drawn returns n of the names in a map, with commas between them.
func drawn[V any](seed uint64, from map[string]V, n int) string {
	names := slices.Sorted(maps.Keys(from))
	rand.New(rand.NewPCG(seed, 0)).Shuffle(len(names), func(i, j int) { names[i], names[j] = names[j], names[i] })
	return strings.Join(names[:n], ",")
}
