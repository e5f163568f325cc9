//go:build unix

package cli_test

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/lockfault/lockfault/internal/cli"
	"github.com/lockfault/lockfault/reports"
)

// Whoever interrupts a run keeps what was finished, is told so, and is left
// with no process.
func TestInterrupt(t *testing.T) {
	h := newHeldRun(t)
	r := h.start()
	r.await("the good cell is finished", func() bool { return h.finished() == 1 })
	r.signal(os.Interrupt)
	if got := r.wait(); got != cli.ExitInterrupted {
		t.Errorf("exit status %d, want %d", got, cli.ExitInterrupted)
	}
	const says = "lockfault: interrupted: 1 of 2 cells are finished; --resume goes on\n"
	if r.stderr.String() != says {
		t.Errorf("stderr %q, want %q", &r.stderr, says)
	}
	var cells []string
	head, err := reports.Scan(filepath.Join(h.out, reports.ResultsFile), func(c reports.Cell) error {
		cells = append(cells, c.Strategy)
		return nil
	})
	if err != nil || !head.Interrupted || !slices.Equal(cells, []string{"fenced"}) {
		t.Errorf("results %+v of %v, error %v, want them marked as interrupted", head, cells, err)
	}
	r.nothingLeft(nil)
}

// Who is interrupted before anything was finished leaves the report before.
func TestInterruptedAtOnce(t *testing.T) {
	h := newHeldRun(t)
	before := h.whole()
	r := h.start("--strategy", "held", "--seed", "2")
	r.await("the workers are there", func() bool { return len(r.processes()) > 1 })
	r.signal(os.Interrupt)
	if got := r.wait(); got != cli.ExitInterrupted {
		t.Errorf("exit status %d, want %d: %s", got, cli.ExitInterrupted, &r.stderr)
	}
	if !maps.Equal(content(t, h.out), before) {
		t.Error("the report before has changed")
	}
}

// Who is interrupted leaves a complete report of the run before.
func TestInterruptedBesideACompleteReport(t *testing.T) {
	h := newHeldRun(t)
	before := h.whole()
	r := h.start("--seed", "2")
	r.await("the good cell is finished", func() bool { return h.finished() == 1 })
	r.signal(os.Interrupt)
	if got := r.wait(); got != cli.ExitInterrupted {
		t.Errorf("exit status %d, want %d: %s", got, cli.ExitInterrupted, &r.stderr)
	}
	const says = "lockfault: interrupted: 1 of 2 cells are finished; --resume goes on; the report is still the one before\n"
	if r.stderr.String() != says {
		t.Errorf("stderr %q, want %q", &r.stderr, says)
	}
	if !maps.Equal(content(t, h.out), before) {
		t.Error("the report before has changed")
	}
	if r := h.finish("--seed", "2", "--resume"); r.cmd.ProcessState.ExitCode() != cli.ExitOK {
		t.Errorf("resumed: %s", &r.stderr)
	}
}

// What a command waits to read doesn't keep it from ending.
func TestInterruptedWhileItReads(t *testing.T) {
	good := filepath.Join(t.TempDir(), "good.csv")
	const history = "time,client,event,result\n1,A,acquire,call\n2,A,acquire,ok\n"
	if err := os.WriteFile(good, []byte(history), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name string
		args []string
		says string // on standard output
	}{
		{"a script", []string{"run", "--scenario", "/dev/fd/3", "--strategy", "fenced"}, ""},
		{"a script to print", []string{"show", "/dev/fd/3"}, ""},
		{"a script to format", []string{"fmt", "/dev/fd/3"}, ""},
		{"a history", []string{"check", "/dev/fd/3"}, ""},
		{"the second history", []string{"check", good, "/dev/fd/3"}, "valid"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			in, out, err := os.Pipe()
			if err != nil {
				t.Fatal(err)
			}
			defer out.Close()
			defer in.Close()
			if _, err := out.WriteString("clients A\n"); err != nil {
				t.Fatal(err)
			}
			r := startWithFiles(t, []*os.File{in}, nil, t.TempDir(), c.args...)
			r.await("it reads", func() bool {
				left, err := unix.Poll([]unix.PollFd{{Fd: int32(in.Fd()), Events: unix.POLLIN}}, 0)
				return err == nil && left == 0
			})
			r.signal(syscall.SIGTERM)
			if got := r.wait(); got != cli.ExitInterrupted {
				t.Errorf("exit status %d, want %d: %s", got, cli.ExitInterrupted, &r.stderr)
			}
			if !strings.Contains(r.stdout.String(), c.says) || c.says == "" && r.stdout.Len() > 0 {
				t.Errorf("it said %q, want %q", &r.stdout, c.says)
			}
		})
	}
}

// waitFor waits until something is so.
func waitFor(t *testing.T, so func() bool) {
	t.Helper()
	for deadline := time.Now().Add(5 * time.Minute); !so(); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("it does not come")
		}
	}
}
