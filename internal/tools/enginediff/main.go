// Command enginediff checks that a change of names or layout has not changed the behaviour of the
// engine. The command records the behaviour of a built lockfault, and compares the records of two
// versions:
//
//	go run ./internal/tools/enginediff -record before -lockfault bin/lockfault
//	(change names, build again)
//	go run ./internal/tools/enginediff -record after -lockfault bin/lockfault
//	go run ./internal/tools/enginediff -renames docs/renames.txt before after
//
// A record holds the verdicts and histories of the selection @classic (17 strategies under 44
// scenarios) and of 200 settled random scripts, both in virtual time with seed 1, and the golden
// files and histories of the module's tests. A file of renames has lines "OLD NEW": where OLD is a
// word in the first record, in file names or contents, the second record must have NEW.
//
// The exit status is 0 if the records are equal, 1 if they differ, and 3 if a record could not be
// made or read.
package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/lockfault/lockfault/reports"
	"github.com/lockfault/lockfault/scenarios/racefree"
)

func main() {
	record := flag.String("record", "", "`directory` to make a record in")
	lockfault := flag.String("lockfault", "bin/lockfault", "built `program` to record")
	renames := flag.String("renames", "", "`file` of renames between the two records")
	flag.Parse()
	var differences []string
	var err error
	switch {
	case *record != "" && flag.NArg() == 0:
		err = makeRecord(*record, *lockfault)
	case *record == "" && flag.NArg() == 2:
		differences, err = compare(flag.Arg(0), flag.Arg(1), *renames)
	default:
		err = errors.New("give -record DIR, or two records to compare")
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "enginediff:", err)
		os.Exit(3)
	}
	for _, line := range differences {
		fmt.Println(line)
	}
	if len(differences) > 0 {
		os.Exit(1)
	}
}

// scripts is the number of settled scripts.
const scripts = 200

// makeRecord writes a record into a new directory.
func makeRecord(dir, lockfault string) error {
	if err := os.Mkdir(dir, 0o755); err != nil {
		return err
	}
	if err := play(dir, "classic", lockfault, "--strategy", "@classic", "--scenario", "@classic"); err != nil {
		return err
	}
	texts := filepath.Join(dir, "scripts")
	if err := os.Mkdir(texts, 0o755); err != nil {
		return err
	}
	subjects := []racefree.Subject{
		{Name: "set-nx-px-lua", Nodes: 1, Replicas: 2},
		{Name: "redisson", Nodes: 1, Replicas: 2, Watchdog: true},
		{Name: "set-wait", Nodes: 1, Replicas: 2},
		{Name: "fenced", Nodes: 1, Replicas: 1},
		{Name: "redlock", Nodes: 5},
	}
	var names []string
	for _, s := range subjects {
		names = append(names, s.Name)
	}
	for i := range scripts {
		of := subjects[i%len(subjects)]
		name := fmt.Sprintf("%s-%d", of.Name, i+1)
		if err := os.WriteFile(filepath.Join(texts, name+".txt"), []byte(racefree.Script(name, uint64(i+1), of)), 0o644); err != nil {
			return err
		}
	}
	if err := play(dir, "settled", lockfault, "--strategy", strings.Join(names, ","), "--scenario", texts); err != nil {
		return err
	}
	return copyGolden(dir)
}

// play runs cells with the program and writes their verdicts and histories into dir/name. play
// drops everything that varies between runs.
func play(dir, name, lockfault string, args ...string) error {
	out := filepath.Join(dir, name)
	cmd := exec.Command(lockfault, append([]string{"run", "--seed", "1", "--quiet", "--out", out}, args...)...)
	text, failed := cmd.CombinedOutput() // random scripts have no expectations, so the exit status means nothing
	var cells bytes.Buffer
	encoder := json.NewEncoder(&cells)
	_, err := reports.Scan(filepath.Join(out, reports.ResultsFile), func(c reports.Cell) error {
		c.Elapsed = 0
		if c.Varies != "" && c.History != "" { // the seed decides the verdict only
			if err := os.Remove(filepath.Join(out, filepath.FromSlash(c.History))); err != nil {
				return err
			}
			c = reports.Cell{World: c.World, Strategy: c.Strategy, Scenario: c.Scenario, Verdict: c.Verdict, Anomalies: c.Anomalies}
		}
		return encoder.Encode(c)
	})
	if err != nil {
		return fmt.Errorf("%w (%v: %s)", err, failed, text)
	}
	for _, entry := range []string{reports.ResultsFile, reports.MarkdownFile, reports.HTMLFile, reports.WorkDir} {
		if err := os.RemoveAll(filepath.Join(out, entry)); err != nil {
			return err
		}
	}
	return os.WriteFile(filepath.Join(out, "cells.jsonl"), cells.Bytes(), 0o644)
}

// isGolden matches the names of golden files and histories.
var isGolden = regexp.MustCompile(`(^|/)testdata/.*(\.golden|\.jsonl|\.edn|\.csv|\.svg|\.mmd)$`)

// copyGolden copies the golden files of the module in the working directory.
func copyGolden(dir string) error {
	list, err := exec.Command("git", "ls-files").Output()
	if err != nil {
		return fmt.Errorf("list the files of the module: %w", err)
	}
	for _, name := range strings.Fields(string(list)) {
		if !isGolden.MatchString(name) {
			continue
		}
		text, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		to := filepath.Join(dir, "golden", name)
		if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(to, text, 0o644); err != nil {
			return err
		}
	}
	return nil
}

// compare returns a line for each file that differs between two records.
func compare(before, after, renames string) (differences []string, err error) {
	rename, err := readRenames(renames)
	if err != nil {
		return nil, err
	}
	was, err := readAll(before, rename)
	if err != nil {
		return nil, err
	}
	is, err := readAll(after, func(text string) string { return text })
	if err != nil {
		return nil, err
	}
	if len(was) == 0 {
		return nil, fmt.Errorf("%s holds no record", before)
	}
	for _, name := range slices.Sorted(maps.Keys(was)) {
		switch text, found := is[name]; {
		case !found:
			differences = append(differences, name+": only in "+before)
		case text != was[name]:
			differences = append(differences, name+": "+firstDifference(was[name], text))
		}
	}
	for _, name := range slices.Sorted(maps.Keys(is)) {
		if _, found := was[name]; !found {
			differences = append(differences, name+": only in "+after)
		}
	}
	if len(differences) == 0 {
		fmt.Printf("%d files are equal\n", len(was))
	}
	return differences, nil
}

// readRenames returns the function that the file of renames describes.
func readRenames(name string) (func(string) string, error) {
	if name == "" {
		return func(text string) string { return text }, nil
	}
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	type rule struct {
		old *regexp.Regexp
		new string
	}
	var rules []rule
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		line, _, _ := strings.Cut(lines.Text(), "#")
		words := strings.Fields(line)
		if len(words) == 0 {
			continue
		}
		if len(words) != 2 {
			return nil, fmt.Errorf("%s: %q: want OLD NEW", name, lines.Text())
		}
		rules = append(rules, rule{regexp.MustCompile(`\b` + regexp.QuoteMeta(words[0]) + `\b`), words[1]})
	}
	return func(text string) string {
		for _, r := range rules {
			text = r.old.ReplaceAllLiteralString(text, r.new)
		}
		return text
	}, lines.Err()
}

// readAll returns the renamed contents of all files below dir, by their renamed paths.
func readAll(dir string, rename func(string) string) (map[string]string, error) {
	files := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		name, err := filepath.Rel(dir, path)
		if err != nil {
			return err
		}
		text, err := os.ReadFile(path)
		files[rename(filepath.ToSlash(name))] = rename(string(text))
		return err
	})
	return files, err
}

// firstDifference returns the first line that differs.
func firstDifference(was, is string) string {
	before, after := strings.Split(was, "\n"), strings.Split(is, "\n")
	for i := range before {
		if i == len(after) {
			break
		}
		if before[i] != after[i] {
			return fmt.Sprintf("line %d: %.200q became %.200q", i+1, before[i], after[i])
		}
	}
	return fmt.Sprintf("%d lines became %d", len(before), len(after))
}
