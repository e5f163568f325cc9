package reports_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/lockfault/lockfault/reports"
)

// TestSlowLargeValues checks that a script in results.json has the size limit of a script, and that the
// memory for a value is bounded.
func TestSlowLargeValues(t *testing.T) {
	file := filepath.Join(t.TempDir(), reports.ResultsFile)
	for _, c := range []struct {
		size int
		want string
	}{
		{1<<20 + 1, "the script s has 1048577 bytes, more than the limit of 1 MiB"},
		{65 << 20, "a value has more than the limit of 64 MiB"},
	} {
		text := `{"tool":"lockfault","cells":[],"scripts":[{"name":"s","text":"` + strings.Repeat("x", c.size) + `"}]}`
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		_, err := reports.Scan(file, func(reports.Cell) error { return nil })
		if err == nil || !strings.HasSuffix(err.Error(), c.want) {
			t.Errorf("%d bytes: %.200v", c.size, err)
		}
	}
}
