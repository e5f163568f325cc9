//go:build unix

package input

import (
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// TestPipe checks that a pipe without a writer is an error at once.
func TestPipe(t *testing.T) {
	for _, path := range []string{filepath.Join(t.TempDir(), "pipe"), "/dev/zero"} {
		if path != "/dev/zero" {
			if err := syscall.Mkfifo(path, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := Read(path, 4); err == nil || !strings.HasSuffix(err.Error(), "not a regular file") {
			t.Errorf("%s: %v", path, err)
		}
	}
}
