package cli_test

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/lockfault/lockfault/internal/cli"
)

// TestFmtKeepsScriptsValid checks that fmt refuses a script that its blanks would make too long, and
// leaves the file unchanged.
func TestFmtKeepsScriptsValid(t *testing.T) {
	t.Parallel()
	const head, tail = "clients A\nA acquire\n", "\nexpect none\n"
	for want, script := range map[string]string{
		":4:1: the line is longer than 10000 bytes":     head + "wait 1s#" + strings.Repeat("x", 10_000-len("wait 1s#")) + tail,
		":1:1: the script is larger than 1048576 bytes": head + strings.Repeat("# "+strings.Repeat("x", 9_000)+"\n", 116) + strings.Repeat("wait 1s#x\n", 400) + tail,
	} {
		file := filepath.Join(t.TempDir(), "long.txt")
		if err := os.WriteFile(file, []byte(script), 0o644); err != nil {
			t.Fatal(err)
		}
		for _, flags := range [][]string{{"-w"}, {"-d"}, {}} {
			var stdout, stderr bytes.Buffer
			status := cli.Run(t.Context(), append([]string{"fmt", file}, flags...), strings.NewReader(""), &stdout, &stderr, registry())
			if got := stderr.String(); status != cli.ExitUsage || stdout.Len() > 0 || strings.Count(got, "\n") != 1 || !strings.Contains(got, "can't format the script") || !strings.Contains(got, want) {
				t.Errorf("%q: exit status %d, %.300s%.300s; want one line with %q", flags, status, &stdout, got, want)
			}
			if left, err := os.ReadFile(file); err != nil || string(left) != script {
				t.Errorf("%q: the file has changed (%v)", flags, err)
			}
		}
	}
}
