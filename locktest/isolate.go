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

// envTrial names a file in which a process of this program is asked to play scripts with
// the subject of a test, and nothing else: what the lock's package keeps in its variables
// is as it was when the program began. What came of it is in a directory beside it.
const envTrial = "LOCKFAULT_TRIAL"

// A request is in that file.
type request struct {
	// Scripts are played one after the other.
	Scripts []source
	// Tags are those of the strategy, as far as they are known.
	Tags []string
	// Trial asks for how the only script ended, as a search wants to know it.
	Trial *explore.Trial `json:",omitempty"`
}

// A source is a script's name and text.
type source struct{ Name, Text string }

// An answer is what came of one script; its history, if it has one, is in a file of its own.
type answer struct {
	Cell reports.Cell
	Outcome *explore.Outcome `json:",omitempty"`
}

// A resultDir is where answers lie: a file for each script, by its number.
type resultDir string

func (dir resultDir) file(i int) string { return filepath.Join(string(dir), fmt.Sprint(i, ".json")) }

// historyFile is the name of a script's history in such a directory.
func historyFile(i int) string { return fmt.Sprint(i, ".jsonl") }

// trialPrefix is how the names of directories begin in which such files are.
const trialPrefix = "lockfault-trial-"

// serve plays what another process asks for, as long as that is there.
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

// script parses the source: as the library's own, if it is that.
func (s source) script() (*scenarios.Script, error) {
	if s.Text == "" {
		return scenarios.Lookup(s.Name)
	}
	return scenarios.Parse(s.Name+".txt", []byte(s.Text))
}

// sourceOf returns a script's source.
func sourceOf(s *scenarios.Script) source {
	if s.Key() == s.Name { // of the library
		return source{Name: s.Name}
	}
	return source{s.Name, string(s.Format())}
}

// A trial is what a process of its own has played.
type trial struct {
	dir     resultDir
	failure string // how the process ended, if not well
	remove  func()
}

// playElsewhere has a process of its own play scripts. Whoever gets the trial removes it.
func playElsewhere(ctx context.Context, test string, r request) (*trial, error) {
	executable, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("find this test's program, to start it again: %w", err)
	}
	tempdir.Sweep("", trialPrefix) // what was left by those that were killed
	temp, err := tempdir.Make("", trialPrefix)
	if err != nil {
		return nil, fmt.Errorf("make a temporary directory: %w: name a directory that can be written to with TMPDIR", err)
	}
	remove := func() { _ = temp.Remove() } // or the next one does
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
	// Its end tells the process that this one has gone.
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

// answer returns what came of a script, by its number.
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
