// Package examples holds programs that the documentation shows, each a module of
// its own: what they need is nothing that users of this one should have to
// download. Its tests build and play them, and follow the path of
// docs/adding-a-strategy.md.
package examples

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/lockfault/lockfault/internal/worlds"
	"github.com/lockfault/lockfault/reports"
)

var update = flag.Bool("update", false, "write what was printed, and the tables, into docs/adding-a-strategy.md and docs/specimens.md")

// programs are those that were built, for all tests of this package.
var programs = struct {
	dir string
	of  map[string]func() (string, error) // by the directory of the source
}{of: map[string]func() (string, error){}}

func TestMain(m *testing.M) {
	dir, err := os.MkdirTemp("", "lockfault-examples-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	programs.dir = dir
	for _, source := range []string{"clients", "services", "corpus", "strangers", "../cmd/lockfault"} {
		programs.of[source] = sync.OnceValues(func() (string, error) { return compile(source) })
	}
	status := m.Run()
	if err := os.RemoveAll(dir); err != nil {
		fmt.Fprintln(os.Stderr, err)
		status = max(status, 1)
	}
	os.Exit(status)
}

func compile(source string) (string, error) {
	program := filepath.Join(programs.dir, filepath.Base(source)+".exe")
	cmd := exec.Command("go", "build", "-ldflags=-s -w", "-o", program, ".")
	cmd.Dir = source
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("examples/%s can't be built: %v\n%s\nIf modules are missing, go mod tidy there gets them", source, err, out)
	}
	return program, nil
}

// build returns a program's path, which is compiled once.
func build(t *testing.T, source string) string {
	t.Helper()
	program, err := programs.of[source]()
	if err != nil {
		t.Fatal(err)
	}
	return program
}

// playAgain plays cells, and those for which the machine was too slow again, each with
// its like in other worlds. It returns the cells, and where the report of the first run is.
func playAgain(t *testing.T, program string, args ...string) (cells []reports.Cell, dir string) {
	t.Helper()
	const attempts = 10
	tooSlow := func(c reports.Cell) bool { return !c.Decided() && len(c.Late) > 0 } // whatever it was that came too late
	dir = filepath.Join(t.TempDir(), "report")
	cells = playOnce(t, program, dir, args)
	for again := 1; again < attempts; again++ {
		at := slices.IndexFunc(cells, tooSlow)
		if at < 0 {
			break
		}
		late := cells[at]
		cells = slices.DeleteFunc(cells, func(c reports.Cell) bool { return c.Strategy == late.Strategy && c.Scenario == late.Scenario })
		cells = append(cells, playOnce(t, program, filepath.Join(t.TempDir(), "report"), only(late, args))...)
	}
	return cells, dir
}

// playOnce plays cells, whatever comes of them, and returns them.
func playOnce(t *testing.T, program, dir string, args []string) (cells []reports.Cell) {
	const otherwise, undecided = 1, 3
	t.Helper()
	cmd := exec.Command(program, append([]string{"run", "--out", dir}, args...)...)
	out, err := cmd.CombinedOutput()
	var exit *exec.ExitError
	if err != nil && (!errors.As(err, &exit) || exit.ExitCode() != otherwise && exit.ExitCode() != undecided) {
		t.Fatalf("%s: %v\n%s", cmd, err, out)
	}
	_, err = reports.Scan(filepath.Join(dir, reports.ResultsFile), func(c reports.Cell) error {
		cells = append(cells, c)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return cells
}

// only returns the arguments that play a cell and nothing else of what they named: given
// twice a flag names all of both.
func only(cell reports.Cell, args []string) []string {
	list := []string{"--strategy", cell.Strategy, "--scenario", scenarioOf(cell, args)}
	for i := 0; i < len(args); i++ {
		if args[i] == "--strategy" || args[i] == "--scenario" {
			i++
			continue
		}
		list = append(list, args[i])
	}
	return list
}

func TestOnly(t *testing.T) {
	args := []string{"--world", "sim,process", "--strategy", "a,b", "--jobs", "2", "--scenario", "x,in/y.txt"}
	want := []string{"--strategy", "b", "--scenario", "in/y.txt", "--world", "sim,process", "--jobs", "2"}
	if got := only(reports.Cell{Strategy: "b", Scenario: "y"}, args); !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

// scenarioOf returns what names a cell's scenario on a command line: for a script the
// file among the arguments.
func scenarioOf(cell reports.Cell, args []string) string {
	for _, arg := range args {
		for file := range strings.SplitSeq(arg, ",") {
			if name, ok := strings.CutSuffix(filepath.Base(file), ".txt"); ok && name == cell.Scenario {
				return file
			}
		}
	}
	return cell.Scenario
}

// run plays cells, and returns where the report is. Cells must come out as their
// scripts expect, the same in every world.
func run(t *testing.T, program string, args ...string) string {
	t.Helper()
	cells, dir := playAgain(t, program, args...)
	for _, c := range cells {
		if !c.Decided() || c.Difference() != "" || c.AgreesWithSim != nil && !*c.AgreesWithSim {
			t.Errorf("%s under %s (%s): %s %q, %s; %s", c.Strategy, c.Scenario, c.World, c.Verdict, c.Anomalies, c.Difference(), c.Reason)
		}
	}
	return dir
}

// histories returns the histories of a report by their names.
func histories(t *testing.T, report string) map[string]string {
	t.Helper()
	found := map[string]string{}
	root := filepath.Join(report, "histories") // which is a link
	root, err := filepath.EvalSymlinks(root)
	if err != nil {
		t.Fatal(err)
	}
	err = filepath.WalkDir(root, func(file string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		text, err := os.ReadFile(file)
		found[strings.TrimPrefix(file, root)] = string(text)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// Locks on other client libraries do under every scenario what others of their
// kind do, and the same seed gives the same history.
func TestClientsInVirtualTime(t *testing.T) {
	program := build(t, "clients")
	first := histories(t, run(t, program, "--strategy", "my-*"))
	if len(first) < 3*20 {
		t.Errorf("%d histories only", len(first))
	}
	second := histories(t, run(t, program, "--strategy", "my-*"))
	for name, text := range first {
		if text != second[name] {
			t.Errorf("the same seed gave two histories in %s, which differ from line %s", name, difference(text, second[name]))
		}
	}
}

// A library that is woken by CLIENT TRACKING comes out as its scripts expect, whatever
// the seed. Only verdicts are compared: it releases its keys in any order.
func TestRueidislock(t *testing.T) {
	program := build(t, "../cmd/lockfault")
	first := ""
	for range 3 {
		got := verdicts(t, run(t, program, "--strategy", "rueidislock"))
		if first == "" {
			first = got
		}
		if got != first {
			t.Errorf("the same seed gave\n%s\nand\n%s", first, got)
		}
	}
	for _, want := range []string{"missed-wakeup violated unavailable", "holder-crash held", "split-brain violated overlap", "flush violated lost-lock"} {
		if !strings.Contains(first, want+"\n") {
			t.Errorf("no line says %q:\n%s", want, first)
		}
	}
	for _, seed := range []string{"2", "3", "4"} {
		run(t, program, "--strategy", "rueidislock", "--seed", seed)
	}
}

// verdicts returns a line for each cell of a report: its scenario, its verdict, and
// what it shows.
func verdicts(t *testing.T, report string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(report, "results.json"))
	if err != nil {
		t.Fatal(err)
	}
	var results struct {
		Cells []struct {
			Scenario, Verdict string
			Anomalies         []string
		}
	}
	if err := json.Unmarshal(text, &results); err != nil {
		t.Fatal(err)
	}
	var lines strings.Builder
	for _, c := range results.Cells {
		fmt.Fprintln(&lines, strings.Join(append([]string{c.Scenario, c.Verdict}, c.Anomalies...), " "))
	}
	return lines.String()
}

// difference returns the first line in which two texts differ, of each.
func difference(a, b string) string {
	linesA, linesB := strings.Split(a, "\n"), strings.Split(b, "\n")
	for i := range min(len(linesA), len(linesB)) {
		if linesA[i] != linesB[i] {
			return linesA[i] + "\nand\n" + linesB[i]
		}
	}
	return "the end of one"
}

// They do the same on real servers.
func TestClientsOnRealServers(t *testing.T) {
	t.Parallel()
	switch err := (worlds.Place{World: worlds.Process}).Check(t.Context(), nil); {
	case err == nil:
	case os.Getenv("CI") != "":
		t.Fatal(err)
	default:
		t.Skip(err)
	}
	program := build(t, "clients")
	for name, args := range map[string][]string{
		"mine": {"--strategy", "my-*", "--scenario", "contention,gc-pause-holding,holder-crash"},
		// Sentinels say where to connect to.
		"sentinels": {"--strategy", "my-redigo", "--promote-by", "sentinel", "--scenario", "failover-lost-write"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel() // they mostly wait
			run(t, program, append(args, "--world", "sim,process", "--jobs", "4")...)
		})
	}
}

// The code that docs/other-clients.md shows is that of the program.
func TestDocumentedClients(t *testing.T) {
	page, err := os.ReadFile("../docs/other-clients.md")
	if err != nil {
		t.Fatal(err)
	}
	shown := map[string]bool{}
	blocks := regexp.MustCompile("(?s)```go\n(.*?)```").FindAllStringSubmatch(string(page), -1)
	for _, block := range blocks {
		from := ""
		for _, file := range []string{"clients/redigo.go", "clients/rueidis.go", "clients/goredis.go", "../strategies/thirdparty/rueidislock.go"} {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if strings.Contains(string(text), block[1]) {
				from = file
			}
		}
		if from == "" {
			t.Errorf("no file of examples/clients, nor rueidislock.go, has what the page shows:\n%s", block[1])
		}
		shown[from] = true
	}
	if len(shown) < 4 {
		t.Errorf("the page shows parts of %v only", shown)
	}
}

// Only what the machine was too slow for is played again.
func TestPlayedAgain(t *testing.T) {
	sh, err := exec.LookPath("sh")
	if err != nil {
		t.Skip(err)
	}
	dir := t.TempDir()
	slow := filepath.Join(dir, "slow")
	// It is too slow for one cell of its first run.
	script := `#!` + sh + `
echo "$@" >>` + dir + `/runs
"` + build(t, "clients") + `" "$@" || exit $?
[ -e ` + dir + `/again ] && exit 0
touch ` + dir + `/again
sed '0,/"held"/s//"unknown","reason":"the machine was 1s late","late":["so it was before"]/' "$3/results.json" >` + dir + `/results && cp ` + dir + `/results "$3/results.json"
exit 3
`
	if err := os.WriteFile(slow, []byte(script), 0o755); err != nil {
		t.Fatal(err)
	}
	run(t, slow, "--strategy", "my-*", "--scenario", "contention")
	runs, err := os.ReadFile(filepath.Join(dir, "runs"))
	if err != nil {
		t.Fatal(err)
	}
	if lines := strings.Split(strings.TrimSpace(string(runs)), "\n"); len(lines) != 2 || strings.Contains(lines[1], "resume") || !regexp.MustCompile(`--strategy my-[a-z]+ --scenario contention$`).MatchString(lines[1]) {
		t.Errorf("it was run\n%s", runs)
	}
}
