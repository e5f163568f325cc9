//go:build unix

package cli_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/lockfault/lockfault/internal/cli"
)

// Who interrupts shrinking gets what there is.
func TestInterruptedShrinking(t *testing.T) {
	dir := t.TempDir()
	key, script, out := filepath.Join(dir, "key"), filepath.Join(dir, "mine.txt"), filepath.Join(dir, "small.txt")
	for file, text := range map[string]string{key: "", script: "clients A B\n\nA acquire\nn1 flush\nA write\nB acquire\n\nexpect overlap\n"} {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	r := startWith(t, []string{heldBy + "=" + key}, dir, "shrink", "--strategy", "held-later", "--scenario", script, "--anomaly", "overlap", "--out", out, "--jobs", "1")
	r.await("it is held", func() bool {
		info, err := os.Stat(key + ".count")
		return err == nil && info.Size() > 10
	})
	r.signal(os.Interrupt)
	if got := r.wait(); got != cli.ExitInterrupted {
		t.Errorf("exit status %d, want %d: %s%s", got, cli.ExitInterrupted, &r.stdout, &r.stderr)
	}
	const says = "lockfault: interrupted: the script may not be the smallest, and was not played again\n"
	if r.stderr.String() != says || !strings.HasPrefix(r.stdout.String(), "overlap: 3 steps of 4, of which not all may be needed; ") {
		t.Errorf("it says %q and %q", &r.stdout, &r.stderr)
	}
	text, err := os.ReadFile(out)
	const want = "clients A B\n\nA acquire\nA write\nB acquire\n\nexpect overlap\n"
	if _, got, _ := strings.Cut(string(text), "\n\n"); err != nil || got != want {
		t.Errorf("%v; it wrote\n%s", err, text)
	}
}
