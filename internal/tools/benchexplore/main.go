// Command benchexplore measures the cost of searches and the time that several methods take to find
// one failure. The command prints both as Markdown tables.
//
//	go run ./internal/tools/benchexplore -lockfault bin/lockfault
//
// The exit status is 0, or 3 if a measurement failed. Temporary files are removed.
package main

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/lockfault/lockfault/reports"
)

// searches are the measured searches: small and large, on one server and on three.
var searches = []string{
	"set-nx-px-lua --clients 3 --rounds 2",
	"set-nx-px-lua --clients 3 --advance 1 --crash 1",
	"getset-timestamp --clients 3 --advance 1",
	"redlock --nodes 3 --restart-empty 1",
}

// clobber is the anomaly that all methods look for. A loser of getset-timestamp restores an old
// value over that of the winner, who then cannot release. Three clients contend for an expired
// lock.
const clobber = "unreleasable"

// way is a method of looking for the failure: its name and its command line.
type way struct {
	name string
	args string
}

var variants = []way{
	{"random walk", "explore getset-timestamp --clients 3 --advance 1 --random walk --shrink=false"},
	{"PCT, depth 3", "explore getset-timestamp --clients 3 --advance 1 --random pct --shrink=false"},
	{"every order, each played", "explore getset-timestamp --clients 3 --advance 1 --without-tables"},
	{"every order, with tables", "explore getset-timestamp --clients 3 --advance 1"},
}

// stress is the script of the comparison without control: three clients on a redis-server, each
// working longer than its lease. No request is held back.
const stress = `ttl 1s
clients A B C
patience 20ttl
begin A B C rounds 5 work 1.05ttl
await A B C done within 60ttl
expect %s
`

// result holds the fields that are read from findings.json.
type result struct {
	States, Moves, Runs, Schedules int
	Cut, Untabled                  string
	Exhausted                      bool
	Findings                       []struct{ Anomaly string }
}

func (r result) found() bool {
	return slices.ContainsFunc(r.Findings, func(f struct{ Anomaly string }) bool { return f.Anomaly == clobber })
}

func main() {
	program := flag.String("lockfault", "bin/lockfault", "the program, built")
	patience := flag.Duration("patience", 3*time.Minute, "how long to look for the failure, each way")
	flag.Parse()
	if err := run(*program, *patience); err != nil {
		fmt.Fprintln(os.Stderr, "benchexplore:", err)
		os.Exit(3)
	}
}

func run(program string, patience time.Duration) error {
	dir, err := os.MkdirTemp("", "lockfault-benchexplore-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	b := bench{program, dir, patience}
	fmt.Print("| search | states | moves | runs | runs of moves | time | states/s | moves/s |\n|---|---|---|---|---|---|---|---|\n")
	for _, search := range searches {
		for _, tables := range []string{"", " --without-tables"} {
			r, took, err := b.search("explore " + search + tables)
			if err != nil {
				return err
			}
			mark := ""
			if !r.Exhausted {
				mark = ", " + r.Cut
			}
			fmt.Printf("| `%s%s` | %d | %d | %d | %.0f %% | %.1f s%s | %.0f | %.0f |\n", search, tables, r.States, r.Moves, r.Runs,
				100*float64(r.Runs)/float64(r.Moves), took.Seconds(), mark, float64(r.States)/took.Seconds(), float64(r.Moves)/took.Seconds())
		}
	}
	fmt.Print("\n| way | until it was found | in comparison | looked at |\n|---|---|---|---|\n")
	var last time.Duration
	var rows []func() string
	for _, w := range variants {
		r, took, err := b.search(w.args + " --until " + clobber)
		if err != nil {
			return err
		}
		last = took
		looked := fmt.Sprintf("%d states, %d runs", r.States, r.Runs)
		if r.Schedules > 0 {
			looked = fmt.Sprintf("%d schedules, %d runs", r.Schedules, r.Runs)
		}
		rows = append(rows, row(w.name, r.found(), took, &last, looked))
	}
	took, plays, found, err := b.stress()
	if err != nil {
		return err
	}
	rows = append([]func() string{row("three clients on redis-server, no control", found, took, &last, fmt.Sprintf("%d plays of 15 rounds", plays))}, rows...)
	for _, row := range rows {
		fmt.Println(row())
	}
	return nil
}

// row returns a function that formats a row. The time of the last method, which *last holds when
// the function is called, is the unit of the comparison.
func row(name string, found bool, took time.Duration, last *time.Duration, looked string) func() string {
	return func() string {
		than := ""
		if !found {
			than = "not in "
		}
		return fmt.Sprintf("| %s | %s%.1f s | %s%.1f | %s |", name, than, took.Seconds(), strings.Repeat("> ", len(than)/7), took.Seconds()/last.Seconds(), looked)
	}
}

type bench struct {
	program  string
	dir      string
	patience time.Duration
}

// search runs the program and returns the result and the duration of a search.
func (b bench) search(args string) (r result, took time.Duration, err error) {
	out := filepath.Join(b.dir, "out")
	cmd := exec.Command(b.program, append(strings.Fields(args), "--for", b.patience.String(), "--out", out)...)
	began := time.Now()
	text, err := cmd.CombinedOutput()
	took = time.Since(began)
	var exit *exec.ExitError
	if err != nil && (!errors.As(err, &exit) || exit.ExitCode() != 1) {
		return r, took, fmt.Errorf("%s: %w\n%s", args, err, text)
	}
	file, err := os.ReadFile(filepath.Join(out, "findings.json"))
	if err != nil {
		return r, took, err
	}
	return r, took, json.Unmarshal(file, &r)
}

// stress plays the script until the failure shows or patience is over.
func (b bench) stress() (took time.Duration, plays int, found bool, err error) {
	script, out := filepath.Join(b.dir, "stress.txt"), filepath.Join(b.dir, "stress")
	if err := os.WriteFile(script, fmt.Appendf(nil, stress, clobber), 0o600); err != nil {
		return 0, 0, false, err
	}
	began := time.Now()
	for ; !found && time.Since(began) < b.patience; plays++ {
		text, err := exec.Command(b.program, "run", "--world", "process", "--strategy", "getset-timestamp", "--scenario", script,
			"--seed", fmt.Sprint(plays+1), "--out", out).CombinedOutput()
		var exit *exec.ExitError
		if err != nil && !errors.As(err, &exit) {
			return 0, plays, false, fmt.Errorf("%w\n%s", err, text)
		}
		_, err = reports.Scan(filepath.Join(out, reports.ResultsFile), func(c reports.Cell) error {
			found = slices.Contains(c.Anomalies, clobber)
			return nil
		})
		if err != nil {
			return 0, plays, false, fmt.Errorf("%w\n%s", err, text)
		}
	}
	return time.Since(began), plays, found, nil
}
