package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/lockfault/lockfault/checker"
	"github.com/lockfault/lockfault/internal/tempdir"
	"github.com/lockfault/lockfault/reports"
)

// cellKey identifies a cell.
type cellKey struct{ world, strategy, script string }

// outcome is the result of a cell.
type outcome struct {
	cell   reports.Cell
	events []checker.Event // empty if the cell has no history
}

// verdict returns the anomalies, or the verdict if the cell is undecided, as text. If the argument
// is not nil, the text includes the result of that operation.
func (o outcome) verdict(tells *shownResult) string {
	switch o.cell.Verdict {
	case reports.Held, reports.Violated:
	default:
		return string(o.cell.Verdict)
	}
	var words []string
	for _, a := range o.cell.Anomalies {
		words = append(words, string(a))
	}
	if len(words) == 0 {
		words = []string{"nothing"}
	}
	text := strings.Join(words, ", ")
	for _, m := range o.cell.MetNothing {
		text += fmt.Sprintf(" (line %d met nothing)", m.Line)
	}
	if tells != nil {
		text += fmt.Sprintf("; %s's %s: %s", tells.client, tells.op, o.result(*tells))
	}
	return text
}

// result returns the result of the client's first operation of that kind, or "none".
func (o outcome) result(t shownResult) string {
	for _, e := range o.events {
		if e.Kind == checker.Return && e.Client == t.client && string(e.Op) == t.op {
			return string(e.Result)
		}
	}
	return "none"
}

// play runs the program in the worlds, with the given scripts of the module.
func play(program, module, worlds string, scripts []string) (map[cellKey]outcome, error) {
	dir, err := tempdir.Make("", "lockfault-trackrecord-")
	if err != nil {
		return nil, err
	}
	defer dir.Remove()
	played := map[cellKey]outcome{}
	for _, script := range scripts {
		out := filepath.Join(dir.Path(), script)
		args := []string{"run", "--world", worlds, "--out", out, "--strategy", strings.Join(subjects(script), ","),
			"--scenario", "." + string(filepath.Separator) + filepath.Join("scripts", script+".txt")}
		if lease := leaseOf(script); lease != "" {
			args = append(args, "--ttl", lease)
		}
		cmd := exec.Command(program, args...)
		cmd.Dir = module
		if cmd.Path, err = filepath.Abs(program); err != nil {
			return nil, err
		}
		text, err := cmd.CombinedOutput()
		var exit *exec.ExitError
		if err != nil && !errors.As(err, &exit) {
			return nil, err
		}
		if err := read(out, script, played); err != nil {
			return nil, fmt.Errorf("%s: %w\n%s", script, err, text)
		}
	}
	return played, nil
}

// undecided returns the scripts with a cell that has no verdict.
func undecided(played map[cellKey]outcome) (list []string) {
	for key, o := range played {
		if !o.cell.Decided() {
			list = append(list, key.script)
		}
	}
	slices.Sort(list)
	return slices.Compact(list)
}

// names returns the names of the records' scripts, without duplicates.
func names() (list []string) {
	for _, r := range records() {
		if !slices.Contains(list, r.name) {
			list = append(list, r.name)
		}
	}
	return list
}

// leaseOf returns the lease for a script; "" selects the default of the world.
func leaseOf(script string) string {
	for _, r := range records() {
		if r.name == script && r.lease != "" {
			return r.lease
		}
	}
	return ""
}

// subjects returns the strategies of all records of a script.
func subjects(script string) (list []string) {
	for _, r := range records() {
		if r.name != script {
			continue
		}
		list = append(list, r.shows)
		for _, c := range r.cures {
			list = append(list, c.strategy)
		}
	}
	slices.Sort(list)
	return slices.Compact(list)
}

// read adds the cells of a report to played.
func read(dir, script string, played map[cellKey]outcome) error {
	_, err := reports.Scan(filepath.Join(dir, reports.ResultsFile), func(c reports.Cell) error {
		o := outcome{cell: c}
		if c.History != "" {
			text, err := os.ReadFile(filepath.Join(dir, c.History))
			if err != nil {
				return err
			}
			history, err := checker.Decode(strings.NewReader(string(text)))
			if err != nil {
				return err
			}
			o.events = history.Events
		}
		played[cellKey{c.World, c.Strategy, script}] = o
		return nil
	})
	return err
}
