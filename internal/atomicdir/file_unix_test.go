//go:build unix

package atomicdir

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/lockfault/lockfault/internal/below"
)

// Pipes and devices are no files to be replaced.
func TestFileInThePlaceOfADevice(t *testing.T) {
	dir := t.TempDir()
	pipe, link := filepath.Join(dir, "pipe"), filepath.Join(dir, "link")
	if err := errors.Join(syscall.Mkfifo(pipe, 0o600), os.Symlink(os.DevNull, link)); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{pipe, link, os.DevNull} {
		for name, err := range map[string]error{"File": File(path, []byte("new")), "CheckFile": CheckFile(path)} {
			if !errors.Is(err, below.ErrNotRegular) {
				t.Errorf("%s(%s): error %v", name, path, err)
			}
		}
	}
	alone(t, dir, "link", "pipe")
	if info, err := os.Stat(os.DevNull); err != nil || info.Mode().IsRegular() {
		t.Errorf("%s is %v, %v", os.DevNull, info, err)
	}
}

// The name of the temporary file can't be known before, so no link can lie in wait there.
func TestTemporaryNames(t *testing.T) {
	dir := t.TempDir()
	victim := filepath.Join(dir, "victim")
	tree(t, dir, map[string]string{"victim": "theirs"})
	for _, name := range []string{"a.tmp", ".a.tmp", fmt.Sprintf(".a.%d.tmp", os.Getpid())} {
		if err := os.Symlink(victim, filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(CheckFile(filepath.Join(dir, "a")), File(filepath.Join(dir, "a"), []byte("new"))); err != nil {
		t.Fatal(err)
	}
	if got := seen(t, dir, map[string]string{"victim": "", "a": ""}); got["victim"] != "theirs" || got["a"] != "new" {
		t.Errorf("there is %v", got)
	}
	seen := map[string]bool{}
	for range 100 {
		name := tempName()
		if seen[name] || !isTemp(name) {
			t.Errorf("the name %s", name)
		}
		seen[name] = true
	}
}
