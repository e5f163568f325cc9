package replace

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"testing"
)

// alone checks that the directory holds these files and no others.
func alone(t *testing.T, dir string, want ...string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for i, entry := range entries {
		if i >= len(want) || entry.Name() != want[i] {
			t.Errorf("there is %s", entry.Name())
		}
	}
	if len(entries) < len(want) {
		t.Errorf("of %q only %d are there", want, len(entries))
	}
}

func TestFile(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "a")
	for _, contents := range []string{"new", "a second, longer one", ""} {
		if err := CheckFile(file); err != nil {
			t.Fatal(err)
		}
		if err := File(file, []byte(contents)); err != nil {
			t.Fatal(err)
		}
		if got, err := os.ReadFile(file); err != nil || string(got) != contents {
			t.Errorf("it holds %q, %v, want %q", got, err, contents)
		}
		alone(t, dir, "a")
	}
}

// Who has the old file open reads it to its end.
func TestFileIsReplacedAndNotOverwritten(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "a")
	tree(t, dir, map[string]string{"a": "old"})
	if err := os.Chmod(file, 0o640); err != nil {
		t.Fatal(err)
	}
	reader, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer reader.Close()
	if err := File(file, []byte("new")); err != nil {
		t.Fatal(err)
	}
	old := make([]byte, 3)
	if _, err := reader.Read(old); err != nil || string(old) != "old" {
		t.Errorf("a reader finds %q, %v", old, err)
	}
	info, err := os.Stat(file)
	if err != nil || runtime.GOOS != "windows" && info.Mode().Perm() != 0o640 {
		t.Errorf("mode %v, %v, want that of the old one", info.Mode(), err)
	}
}

func TestFileBehindALink(t *testing.T) {
	dir := t.TempDir()
	tree(t, dir, map[string]string{"below/a": "old"})
	link := filepath.Join(dir, "link")
	if err := os.Symlink(filepath.Join("below", "a"), link); err != nil {
		t.Skip(err)
	}
	if err := File(link, []byte("new")); err != nil {
		t.Fatal(err)
	}
	if leads, err := os.Readlink(link); err != nil || leads != filepath.Join("below", "a") {
		t.Errorf("the link leads to %q, %v", leads, err)
	}
	if got := seen(t, dir, map[string]string{"below/a": ""})["below/a"]; got != "new" {
		t.Errorf("the file holds %q", got)
	}
}

// What can't be replaced is said with its path, and nothing is left.
func TestFileThatCantBe(t *testing.T) {
	dir := t.TempDir()
	tree(t, dir, map[string]string{"dir/x": "old"})
	for _, path := range []string{filepath.Join(dir, "dir"), filepath.Join(dir, "nowhere", "a"), filepath.Join(dir, "dir", "x", "a")} {
		for name, err := range map[string]error{"File": File(path, []byte("new")), "CheckFile": CheckFile(path)} {
			var at *fs.PathError
			if !errors.As(err, &at) || at.Path == "" {
				t.Errorf("%s(%s): %v, want an error with a path", name, path, err)
			}
		}
	}
	alone(t, dir, "dir")
	alone(t, filepath.Join(dir, "dir"), "x")
}
