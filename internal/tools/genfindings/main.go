// Command genfindings searches every strategy with the same budgets, plays the findings on
// redis-server processes too, and prints the page docs/findings.md.
//
//	go run ./internal/tools/genfindings -lockfault bin/lockfault > docs/findings.md
//
// The exit status is 0, or 3 if a search failed. Temporary files are removed.
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

	"github.com/lockfault/lockfault/checker"
	"github.com/lockfault/lockfault/scenarios"
	"github.com/lockfault/lockfault/strategies/all"
)

// budgets are applied to every strategy; none is tailored to a strategy.
var budgets = []string{
	"--rounds 2",
	"--advance 1 --crash 1 --reenter",
	"--failover 1 --lose-reply 1 --retries 1",
	"--restart-empty 1 --client-clock 1",
	"--node-clock 1 --pause 1",
	"--node-clock-back 1 --crash 1 --hang 1",
	"--one-thread --advance 1",
	"--lose-reply 1 --retries 1",
}

// majority is the number of nodes of locks that run on any number of them.
const majority = 3

// result holds the fields that are read from findings.json.
type result struct {
	States, Moves, Runs int
	Exhausted           bool
	Cut, Untabled       string
	Findings            []struct {
		Anomaly         string
		Moves, Requests int
		Worlds          map[string]string
	}
	Failures []struct{ Error string }
}

func main() {
	program := flag.String("lockfault", "bin/lockfault", "the program, built")
	span := flag.String("for", "30s", "real time that one search may take")
	flag.Parse()
	if err := run(*program, *span); err != nil {
		fmt.Fprintln(os.Stderr, "genfindings:", err)
		os.Exit(3)
	}
}

func run(program, span string) error {
	dir, err := os.MkdirTemp("", "lockfault-findings-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	fmt.Printf(`# What searches find

Made by `+"`make findings`"+`: two clients, one round unless the budget says two, %s a search. Each script was
played on a redis-server process too. Locks that take any number of nodes are on %d. [explore.md](explore.md)
says what a budget is and what is left out; where there are as many runs as moves, or more, tables were not used.

| strategy | budget | finds, after moves / requests | states | moves | runs | exhausted |
|---|---|---|---|---|---|---|
`, span, majority)
	var found [][]string // the anomalies found, by strategy
	for _, s := range all.Registry().All() {
		var shows []string
		for i, budget := range budgets {
			out := filepath.Join(dir, s.Name, fmt.Sprint(i))
			args := append([]string{"explore", s.Name, "--for", span, "--world", "sim,process", "--out", out}, strings.Fields(budget)...)
			if s.AnyNodes {
				args = append(args, "--nodes", fmt.Sprint(majority))
			}
			text, err := exec.Command(program, args...).CombinedOutput()
			var exit *exec.ExitError
			if err != nil && !errors.As(err, &exit) {
				return err
			}
			r, err := read(filepath.Join(out, "findings.json"))
			if err != nil {
				return fmt.Errorf("%s %s: %w\n%s", s.Name, budget, err, text)
			}
			name := s.Name
			if i > 0 {
				name = ""
			}
			for _, f := range r.Findings {
				shows = append(shows, f.Anomaly)
			}
			fmt.Printf("| %s | `%s` | %s | %d | %d | %d | %s |\n", name, budget, r.found(), r.States, r.Moves, r.Runs, r.exhausted())
		}
		found = append(found, shows)
	}
	return compare(found)
}

// compare prints which anomalies of the library's scenarios the searches found without these
// scenarios, and a table of the anomalies that they missed. found holds the anomalies of each
// strategy.
func compare(found [][]string) error {
	library, err := scenarios.Library()
	if err != nil {
		return err
	}
	all := all.Registry().All()
	required, hits := 0, 0
	var rows []string
	for i, s := range all {
		for _, anomaly := range checker.Anomalies() {
			var in []string
			for _, script := range library {
				applies, _ := script.AppliesTo(s.Name, s.Tags, s.Nodes)
				if applies && slices.Contains(script.Expected(s.Name, s.Tags), anomaly) {
					in = append(in, script.Name)
				}
			}
			switch {
			case len(in) == 0:
				continue
			case slices.Contains(found[i], string(anomaly)):
				hits++
			default:
				rows = append(rows, fmt.Sprintf("| %s | %s | %s |", s.Name, anomaly, strings.Join(in, ", ")))
			}
			required++
		}
	}
	fmt.Printf(`
## Beside the library

The scenarios of the library were written by people who knew what they were after. They show %d pairs of a strategy and an
anomaly; the searches above found %d of them. Not these:

| strategy | anomaly | shown by |
|---|---|---|
%s
`, required, hits, strings.Join(rows, "\n"))
	return nil
}

func read(file string) (r result, err error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return r, err
	}
	return r, json.Unmarshal(text, &r)
}

// found returns the findings as text, with a remark on findings that redis-server does not confirm.
func (r result) found() string {
	var list []string
	for _, f := range r.Findings {
		text := fmt.Sprintf("%s %d / %d", f.Anomaly, f.Moves, f.Requests)
		if said := f.Worlds["process"]; said != "confirmed" {
			said, _, _ = strings.Cut(said, ":")
			text += " (" + said + " on redis-server)"
		}
		list = append(list, text)
	}
	if len(r.Failures) > 0 {
		first, _, _ := strings.Cut(r.Failures[0].Error, "\n")
		list = append(list, fmt.Sprintf("%d scripts had no verdict, one of them: %s", len(r.Failures), first))
	}
	if len(list) == 0 {
		return "nothing"
	}
	return strings.Join(list, ", ")
}

func (r result) exhausted() string {
	switch {
	case r.Exhausted:
		return "yes"
	case r.Cut != "":
		return "no, " + r.Cut
	}
	return "no"
}
