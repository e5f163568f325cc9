package locktest

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/lockfault/lockfault/checker"
	"github.com/lockfault/lockfault/internal/cellresult"
	"github.com/lockfault/lockfault/internal/explore"
	"github.com/lockfault/lockfault/internal/harness"
	"github.com/lockfault/lockfault/internal/input"
	"github.com/lockfault/lockfault/internal/tempdir"
	"github.com/lockfault/lockfault/reports"
	"github.com/lockfault/lockfault/scenarios"
)

// envTrial names a file with a [request]. A process of this program with this variable runs the
// request's scripts with the subject of a test, and nothing else: the package variables of the lock
// have their initial values. The results are in a directory next to the file.
const envTrial = "LOCKFAULT_TRIAL"

// request is the content of that file.
type request struct {
	// Scripts run one after the other.
	Scripts []source
	// Tags are the known tags of the strategy.
	Tags []string
	// Trial requests the outcome of the only script in the form that a search needs.
	Trial *explore.Trial `json:",omitempty"`
}

// source holds a script's name and text.
type source struct{ Name, Text string }

// answer holds the result of one script. The history, if any, is in a separate file.
type answer struct {
	Cell    reports.Cell
	Outcome *explore.Outcome `json:",omitempty"`
}

// resultDir is a directory with one answer file per script; the file's name is the script's number.
type resultDir string

func (dir resultDir) file(i int) string { return filepath.Join(string(dir), fmt.Sprint(i, ".json")) }

// historyFile returns the name of a script's history file in such a directory.
func historyFile(i int) string { return fmt.Sprint(i, ".jsonl") }

// trialPrefix is the prefix of the names of these directories.
const trialPrefix = "lockfault-trial-"

// serve runs the scripts of another process's request, and ends when that process ends.
func serve(t *testing.T, cell harness.Cell, file string) error {
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		os.Exit(1)
	}()
	var r request
	text, err := input.Read(file, input.Document)
	if err == nil {
		err = json.Unmarshal(text, &r)
	}
	if err != nil {
		return fmt.Errorf("read %s=%s: %w", envTrial, file, err)
	}
	dir := resultDir(file + ".answers")
	if err := os.Mkdir(string(dir), 0o700); err != nil {
		return err
	}
	cell.Strategy.Tags = r.Tags
	for i, s := range r.Scripts {
		if cell.Script, err = s.script(); err != nil {
			return err
		}
		var a answer
		if r.Trial != nil {
			look := explore.Play(t, cell, *r.Trial)
			a.Outcome = &look
		} else {
			o := harness.Play(t, cell)
			a.Cell = cellresult.Cell(harness.Sim, cell, o)
			if len(o.History.Events) > 0 {
				a.Cell.History = historyFile(i)
				if err := reports.WriteHistory(string(dir), a.Cell.History, o.History); err != nil {
					return err
				}
			}
		}
		a.Cell.Settle()
		if text, err = json.Marshal(a); err == nil {
			err = os.WriteFile(dir.file(i), text, 0o600)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// script parses the source. If the text is empty, the script is the library's script with that
// name.
func (s source) script() (*scenarios.Script, error) {
	if s.Text == "" {
		return scenarios.Lookup(s.Name)
	}
	return scenarios.Parse(s.Name+".txt", []byte(s.Text))
}

// sourceOf returns a script's source.
func sourceOf(s *scenarios.Script) source {
	if s.Key() == s.Name { // a script of the library
		return source{Name: s.Name}
	}
	return source{s.Name, string(s.Format())}
}

// trial holds the results of a separate process.
type trial struct {
	dir     resultDir
	failure string // error and output of the process; empty if the process succeeded
	remove  func()
}

// playElsewhere runs scripts in a separate process. The caller must call remove of the trial.
func playElsewhere(ctx context.Context, test string, r request) (*trial, error) {
	executable, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("find this test's program, to start it again: %w", err)
	}
	tempdir.Sweep("", trialPrefix) // removes the directories of killed processes
	temp, err := tempdir.Make("", trialPrefix)
	if err != nil {
		return nil, fmt.Errorf("make a temporary directory: %w: name a directory that can be written to with TMPDIR", err)
	}
	remove := func() { _ = temp.Remove() } // if Remove fails, the next Sweep removes the directory
	file := filepath.Join(temp.Path(), "trial.json")
	text, err := json.Marshal(r)
	if err == nil {
		err = os.WriteFile(file, text, 0o600)
	}
	if err != nil {
		remove()
		return nil, err
	}
	cmd := exec.CommandContext(ctx, executable, "-test.run="+pattern(test), "-test.count=1")
	cmd.Env = append(os.Environ(), envTrial+"="+file)
	// The end of standard input tells the process that this process has ended.
	if _, err := cmd.StdinPipe(); err != nil {
		remove()
		return nil, err
	}
	out, err := cmd.CombinedOutput()
	t := &trial{dir: resultDir(file + ".answers"), remove: remove}
	if err != nil {
		t.failure = strings.TrimSpace(fmt.Sprintf("in a process of its own: %v\n%s", err, out))
	}
	return t, ctx.Err()
}

// answer returns the result of a script, by the script's number.
func (t *trial) answer(i int) (a answer, h checker.History, err error) {
	text, err := input.Read(t.dir.file(i), input.Document)
	if err != nil {
		if t.failure != "" {
			return a, h, fmt.Errorf("%s", t.failure)
		}
		return a, h, fmt.Errorf("a process of its own played nothing: does the test come to the same call in every process?")
	}
	if err = json.Unmarshal(text, &a); err == nil && a.Cell.History != "" {
		h, err = reports.ReadHistory(string(t.dir), historyFile(i))
		a.Cell.History = ""
	}
	return a, h, err
}
