//go:build unix

package natsserver_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/lockfault/lockfault/internal/queue"
	"github.com/lockfault/lockfault/internal/queue/natsserver"
)

// TestUnsafeDirectories checks that a directory that another user could redirect is refused before
// anything is written.
func TestUnsafeDirectories(t *testing.T) {
	top := t.TempDir()
	elsewhere := filepath.Join(top, "elsewhere")
	for name, c := range map[string]struct {
		lay  func(dir string) error
		want string
	}{
		"a link as the lock": {func(dir string) error {
			return os.Symlink(elsewhere, filepath.Join(dir, "lockfault.lock"))
		}, "is a symbolic link"},
		"others may write": {func(dir string) error { return os.Chmod(dir, 0o777) }, "other users may"},
		"others may write above": {func(dir string) error { return os.Chmod(filepath.Dir(dir), 0o777) },
			"other users may change what is in"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "above", "dir")
			if err := os.MkdirAll(dir, 0o755); err != nil {
				t.Fatal(err)
			}
			if err := c.lay(dir); err != nil {
				t.Fatal(err)
			}
			err := natsserver.Engine{}.Serve(t.Context(), queue.ServerOptions{Listen: "127.0.0.1:0", Dir: dir}, func(string, string) { t.Error("it serves") })
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("error %v, want %q", err, c.want)
			}
			entries, err := os.ReadDir(dir)
			if err != nil || len(entries) > 1 {
				t.Errorf("there is %v, %v", entries, err)
			}
			if _, err := os.Lstat(elsewhere); err == nil {
				t.Error("a file was made elsewhere")
			}
		})
	}
}
