package locktest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/lockfault/lockfault/checker"
	"github.com/lockfault/lockfault/internal/cellresult"
	"github.com/lockfault/lockfault/internal/harness/client"
	"github.com/lockfault/lockfault/internal/shell"
	"github.com/lockfault/lockfault/internal/stdio"
	"github.com/lockfault/lockfault/internal/version"
	"github.com/lockfault/lockfault/reports"
	"github.com/lockfault/lockfault/scenarios"
	"github.com/lockfault/lockfault/strategies"
)

// Settings of Real.
const (
	envReal    = "LOCKFAULT_REAL"
	envProgram = "LOCKFAULT_PROGRAM"
)

// envClient makes a process of this program a client of the test's lock.
const envClient = "LOCKFAULT_CLIENT"

// Real is like [Run], but on real servers, and each client is a process that is really stopped and
// killed. Real skips the test unless LOCKFAULT_REAL is a world: process, for redis-server
// processes, or docker. Real needs the program lockfault on PATH or in LOCKFAULT_PROGRAM:
//
//	go install github.com/lockfault/lockfault/cmd/lockfault@latest
//
// lockfault starts this test's program again for each client. The lease is 1 s (docker: 4 s) for a
// lock that takes its lease from Env; with [Subject.TTL] a scenario takes several such leases. A
// scenario without a verdict because the machine was too slow is skipped. A test calls Real once,
// and no other function of this package.
func Real(t *testing.T, s Subject, opts ...Option) {
	t.Helper()
	if os.Getenv(envClient) != "" {
		strategy, err := s.strategy(t)
		if err == nil {
			err = beClient(strategy)
		}
		if err != nil {
			fmt.Fprintln(os.Stderr, "locktest:", err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	world := os.Getenv(envReal)
	switch world {
	case "":
		t.Skipf("%s is not set: %s=process plays it on redis-server processes", envReal, envReal)
	case "process", "docker":
	default:
		t.Fatalf("locktest: %s=%s is no world of real servers: there are process and docker", envReal, world)
	}
	test, err := prepare(t, s, opts)
	if err != nil {
		t.Fatalf("locktest: %v", err)
	}
	if test == nil {
		return // this process was started for another process and has finished
	}
	dir := t.TempDir()
	if test.settings.out != "" {
		dir = filepath.Join(test.settings.out, filepath.FromSlash(packagePath()), fileOf(test.name), world)
	}
	cells, err := test.playReal(t, world, dir)
	if err != nil {
		t.Fatalf("locktest: %v", err)
	}
	for _, script := range test.options.scripts {
		t.Run(script.Key(), func(t *testing.T) {
			t.Helper()
			test.judgeReal(t, script, cells[script.Name], dir)
		})
	}
}

// beClient runs a client's process until it ends.
func beClient(strategy strategies.Strategy) error {
	redis.SetLogger(nothing{}) // go-redis logs each failed connection
	out, err := stdio.Output() // keeps the lock's own output out of the protocol
	if err != nil {
		return err
	}
	return client.Serve(os.Stdin, out, func(string) (strategies.Strategy, bool) { return strategy, true })
}

// nothing is a logger that discards its messages.
type nothing struct{}

// Printf discards its arguments.
func (nothing) Printf(context.Context, string, ...any) {}

// playReal runs all scenarios with lockfault, and returns the results by the scenarios' names.
func (test *test) playReal(t *testing.T, world, dir string) (map[string]reports.Cell, error) {
	program := os.Getenv(envProgram)
	if program == "" {
		var err error
		if program, err = exec.LookPath("lockfault"); err != nil {
			return nil, fmt.Errorf("there is no lockfault on PATH: go install %s/cmd/lockfault@%s gets it, or name its file in %s", version.Module, version.Of(), envProgram)
		}
	} else if _, err := exec.LookPath(program); err != nil {
		return nil, fmt.Errorf("%s=%s is no program that can be started: name lockfault's file", envProgram, program)
	}
	executable, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("find this test's program, to start it as a client: %w", err)
	}
	s := test.cell.Strategy
	var played []string
	for _, script := range test.options.scripts {
		if file, own := test.options.files[script.Key()]; own {
			played = append(played, "./"+file)
		} else {
			played = append(played, script.Name)
		}
	}
	args := []string{
		"run", "--world", world, "--out", dir, "--scenario", strings.Join(played, ","), "--seed", fmt.Sprint(test.settings.seed),
		"--subject", shell.Quote(executable) + " " + shell.Quote("-test.run="+pattern(test.name)) + " -test.count=1",
		"--subject-protocol", "full", "--subject-name", s.Name, "--subject-nodes", fmt.Sprint(max(1, s.Nodes)), "--subject-tags", strings.Join(s.Tags, ","),
	}
	if test.cell.TTL != 0 {
		args = append(args, "--ttl", test.cell.TTL.String())
	}
	cmd := exec.CommandContext(t.Context(), program, args...)
	cmd.Env = append(os.Environ(), envClient+"=1")
	var said bytes.Buffer
	cmd.Stderr = &said
	err = cmd.Run()
	cells := map[string]reports.Cell{}
	// The exit status depends on the verdicts and is ignored: only the report counts.
	_, missing := reports.Scan(filepath.Join(dir, reports.ResultsFile), func(c reports.Cell) error {
		cells[c.Scenario] = c
		return nil
	})
	var exit *exec.ExitError
	if missing != nil && err == nil {
		return nil, fmt.Errorf("%s wrote no report: is it lockfault?", program)
	}
	if missing != nil || err != nil && !errors.As(err, &exit) {
		return nil, fmt.Errorf("%s: %v\n%s", strings.Join(append([]string{program}, args...), " "), err, said.String())
	}
	return cells, nil
}

// judgeReal reports the result of a scenario on real servers to t.
func (test *test) judgeReal(t *testing.T, script *scenarios.Script, told reports.Cell, dir string) {
	t.Helper()
	cell := test.cell
	cell.Script = script
	promise, promised := test.options.promises[script.Key()]
	switch {
	case told.Verdict == "":
		t.Fatalf("%s was not played: the report in %s doesn't have it", script.Key(), dir)
	case told.Verdict == reports.NotApplicable && promised:
		t.Fatalf("%s can't be played with this lock, but the test speaks of it in %s: %s", script.Key(), promise.by, told.Reason)
	case told.Verdict == reports.NotApplicable, told.Verdict == reports.Unknown:
		t.Skip(told.Reason)
	}
	file := test.ratchet.said
	if promised {
		file = nil
	}
	cellresult.Expect(&told, cell, file)
	told.AtMost = true
	if told.Settle(); told.NotBetter != nil {
		told.Reference = test.reference(t, script)
		told.Settle()
	}
	again := fmt.Sprintf("\nagain: %s=%s %s\n", envReal, told.World, goTest(t.Name()))
	switch {
	case !told.Decided():
		t.Errorf("%s came to no verdict: %s%s", script.Key(), explain(told.Reason), again)
	case !told.AsExpected:
		var h checker.History
		if told.History != "" {
			var err error
			if h, err = reports.ReadHistory(dir, told.History); err != nil {
				t.Errorf("locktest: %v", err)
			}
		}
		t.Errorf("%s%s\n%s%s", test.failureText(told, script, promise), test.hints(told, script, h), test.around(told, h), again)
	default:
		t.Logf("%s: %s", script.Key(), passed(told))
	}
}
