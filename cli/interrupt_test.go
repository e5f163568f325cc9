//go:build unix

package cli_test

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/lockfault/lockfault/cli"
	"github.com/lockfault/lockfault/reports"
)

// Whoever interrupts a run keeps what was finished, is told so, and is left
// with no process.
func TestInterrupt(t *testing.T) {
	dir := t.TempDir()
	script := filepath.Join(dir, "mine.txt")
	if err := os.WriteFile(script, []byte("clients A\n\nA acquire\nA release\n\nexpect none\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	out := filepath.Join(dir, "report")
	cmd := exec.Command(os.Args[0], "run", "--strategy", "fenced,bad-spin", "--scenario", script, "--out", out,
		"--jobs", "2", "--cell-timeout", "1h")
	cmd.Args[0] = "lockfault"
	cmd.Env = append(os.Environ(), "GORACE=atexit_sleep_ms=0")
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	defer cmd.Process.Kill()

	// The one good cell is finished when its history is there. Its result
	// may still be on its way then; the answers to both are checked below.
	history := filepath.Join(out, reports.HistoryDir, "sim", "fenced", "mine.jsonl")
	waitFor(t, func() bool { _, err := os.Stat(history); return err == nil })
	workers := children(t, cmd.Process.Pid)
	if len(workers) == 0 {
		t.Error("there are no worker processes")
	}
	if err := cmd.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	select {
	case <-ended:
	case <-time.After(time.Minute):
		t.Fatal("the program does not end")
	}
	if got := cmd.ProcessState.ExitCode(); got != cli.ExitInterrupted {
		t.Errorf("exit status %d, want %d", got, cli.ExitInterrupted)
	}
	if !strings.Contains(stderr.String(), "interrupted: ") {
		t.Errorf("stderr does not say that it was interrupted: %s", &stderr)
	}
	var cells []string
	head, err := reports.Scan(filepath.Join(out, reports.ResultsFile), func(c reports.Cell) error {
		cells = append(cells, c.Strategy)
		return nil
	})
	if err != nil || !head.Interrupted {
		t.Errorf("results %+v, error %v, want them marked as interrupted", head, err)
	}
	for _, strategy := range cells {
		if strategy != "fenced" {
			t.Errorf("the results speak of %s, which was not finished", strategy)
		}
	}
	for _, pid := range workers {
		waitFor(t, func() bool { return errors.Is(syscall.Kill(pid, 0), syscall.ESRCH) })
	}
	leftovers, _ := filepath.Glob(filepath.Join(out, "*.tmp"))
	hidden, _ := filepath.Glob(filepath.Join(out, ".*"))
	if len(leftovers)+len(hidden) > 0 {
		t.Errorf("temporary files are left: %v %v", leftovers, hidden)
	}
}

// waitFor waits until something is so.
func waitFor(t *testing.T, so func() bool) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); !so(); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("it does not come")
		}
	}
}

// children returns the processes that a process has started.
func children(t *testing.T, pid int) []int {
	t.Helper()
	tasks, err := filepath.Glob(filepath.Join("/proc", strconv.Itoa(pid), "task", "*", "children"))
	if err != nil || len(tasks) == 0 {
		t.Skip("this system does not list a process's children")
	}
	var pids []int
	for _, task := range tasks {
		text, err := os.ReadFile(task)
		if err != nil {
			continue // a thread that has just ended
		}
		for _, field := range strings.Fields(string(text)) {
			child, err := strconv.Atoi(field)
			if err != nil {
				t.Fatal(err)
			}
			pids = append(pids, child)
		}
	}
	return pids
}
