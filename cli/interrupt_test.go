//go:build unix

package cli_test

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/lockfault/lockfault/cli"
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

// waitFor waits until something is so.
func waitFor(t *testing.T, so func() bool) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); !so(); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("it does not come")
		}
	}
}
