//go:build unix

package cli_test

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/lockfault/lockfault/internal/cli"
)

// A reader that closes standard output early, as head does, changes neither what a command does nor its
// exit status.
func TestClosedOutput(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		args   []string
		status int
		file   string // that the command must write
	}{
		{args: []string{"help"}},
		{args: []string{"version"}},
		{args: []string{"list", "strategies"}},
		{args: []string{"show", "flush"}},
		{args: []string{"trace", "fenced", "flush"}},
		{args: []string{"soak", "fenced", "--for", "1h"}},
		{args: []string{"run", "--strategy", "fenced", "--scenario", "flush", "--out", "report"}, file: "report/index.html"},
		{args: []string{"run", "--strategy", "fenced", "--scenario", "flush", "--out", "report", "--format", "json"}, file: "report/index.html"},
		{args: []string{"run", "--strategy", "set-nx-px-del", "--scenario", "gc-pause-holding", "--expect", "differs.expect", "--out", "report"}, status: cli.ExitDiffers, file: "report/index.html"},
	} {
		t.Run(c.args[0], func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			if err := os.WriteFile(filepath.Join(dir, "differs.expect"), []byte("set-nx-px-del:\n  gc-pause-holding: none\n"), 0o600); err != nil {
				t.Fatal(err)
			}
			r, w, err := os.Pipe()
			if err != nil {
				t.Fatal(err)
			}
			r.Close()
			defer w.Close()
			cmd := exec.Command(os.Args[0], c.args...)
			cmd.Args[0] = "lockfault"
			cmd.Dir = dir
			cmd.Env = append(os.Environ(), "GORACE=atexit_sleep_ms=0")
			var said bytes.Buffer
			cmd.Stdout, cmd.Stderr = w, &said
			_ = cmd.Run() // the status says it
			if got := cmd.ProcessState.ExitCode(); got != c.status {
				t.Errorf("%q: %v, want exit status %d: %s", c.args, cmd.ProcessState, c.status, &said)
			}
			if bytes.Contains(said.Bytes(), []byte("broken pipe")) {
				t.Errorf("%q says: %s", c.args, &said)
			}
			if c.file != "" {
				if _, err := os.Stat(filepath.Join(dir, c.file)); err != nil {
					t.Errorf("%q: %v", c.args, err)
				}
			}
		})
	}
}
