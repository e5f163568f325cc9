package cli_test

import (
	"bytes"
	"strings"
	"testing"

	"github.com/lockfault/lockfault/internal/cli"
)

// An argument of several lines is refused: its second line would pass for an annotation of a CI system.
func TestArgumentsHaveOneLine(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{
		{"check", "y\n::error::pwn.jsonl"}, {"compare", "a", "b\r::error::"}, {"report", "--format", "x\ny", "dir"}, {"run", "--out", "a\n::error::b"},
	} {
		var stdout, stderr bytes.Buffer
		status := cli.Run(t.Context(), args, strings.NewReader(""), &stdout, &stderr, registry())
		if status != cli.ExitUsage || stdout.Len() > 0 || strings.Count(stderr.String(), "\n") != 1 || !strings.Contains(stderr.String(), "must be a single line") {
			t.Errorf("%q: exit status %d: %s%s", args, status, &stdout, &stderr)
		}
	}
}
