package atomicdir

import (
	"errors"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/lockfault/lockfault/internal/below"
	"github.com/lockfault/lockfault/internal/flock"
	"github.com/lockfault/lockfault/internal/racetest"
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

// A link that leads to no file would be replaced itself, or a file made somewhere else.
func TestFileBehindADeadLink(t *testing.T) {
	dir := t.TempDir()
	link, target := filepath.Join(dir, "link"), filepath.Join(dir, "nowhere")
	if err := os.Symlink(target, link); err != nil {
		t.Skip(err)
	}
	for name, err := range map[string]error{"File": File(link, []byte("new")), "CheckFile": CheckFile(link)} {
		if err == nil || !strings.Contains(err.Error(), "leads to no file") {
			t.Errorf("%s: error %v", name, err)
		}
	}
	alone(t, dir, "link")
}

// Below a directory no link is followed.
func TestIn(t *testing.T) {
	dir := t.TempDir()
	tree(t, dir, map[string]string{"theirs/a": "theirs", "out/a": "old"})
	d := open(t, filepath.Join(dir, "out"))
	for name, target := range map[string]string{"file": "../theirs/a", "dir": "../theirs", "dead": "../theirs/new", "inside": "a"} {
		if err := os.Symlink(filepath.FromSlash(target), d.Join(name)); err != nil {
			t.Skip(err)
		}
	}
	write := func(w io.Writer) error { _, err := io.WriteString(w, "new"); return err }
	for _, name := range []string{"file", filepath.Join("dir", "a"), filepath.Join("dir", "new"), "dead", "inside", filepath.Join("..", "theirs", "a")} {
		for operation, err := range map[string]error{"In": In(d, name, write), "CheckIn": CheckIn(d, name)} {
			if !errors.Is(err, below.ErrSymlink) && !errors.Is(err, below.ErrOutside) {
				t.Errorf("%s of %s: error %v", operation, name, err)
			}
		}
	}
	if err := errors.Join(CheckIn(d, "a"), In(d, "a", write), CheckIn(d, "b"), In(d, "b", write)); err != nil {
		t.Error(err)
	}
	alone(t, filepath.Join(dir, "theirs"), "a")
	alone(t, d.Path(), "a", "b", "dead", "dir", "file", "inside")
	want := map[string]string{"theirs/a": "theirs", "out/a": "new", "out/b": "new"}
	if got := seen(t, dir, want); !maps.Equal(got, want) {
		t.Errorf("there is %v", got)
	}
}

// A half-written file leaves the old one, and nothing beside it.
func TestStreamThatFails(t *testing.T) {
	dir := t.TempDir()
	tree(t, dir, map[string]string{"a": "old"})
	failed := errors.New("failed")
	for _, file := range []string{"a", "b"} {
		err := Stream(filepath.Join(dir, file), func(w io.Writer) error {
			_, err := io.WriteString(w, strings.Repeat("new", 1<<16))
			return errors.Join(err, failed)
		})
		if !errors.Is(err, failed) {
			t.Errorf("error %v", err)
		}
	}
	alone(t, dir, "a")
	if got := seen(t, dir, map[string]string{"a": ""})["a"]; got != "old" {
		t.Errorf("it has %.20q", got)
	}
}

// What a killed process left goes; files of a user's, links, and what is being written stay.
func TestSweep(t *testing.T) {
	racetest.Skip(t)
	if !flock.Excludes {
		t.Skip("no locks on files")
	}
	dir := t.TempDir()
	tree(t, dir, map[string]string{
		".lockfault-0123456789abcdef.tmp": "half a file", ".lockfault-0123456789abcdef.tm": "theirs", ".lockfault-notes.tmp": "theirs",
		".lockfault-01.tmp": "theirs", "lockfault-0123456789abcdef.tmp": "theirs", "a.tmp": "theirs", ".lockfault-00000000000000ff.tmp/a": "theirs",
	})
	if err := os.Symlink(filepath.Join(dir, "a.tmp"), filepath.Join(dir, ".lockfault-00000000000000fe.tmp")); err != nil {
		t.Fatal(err)
	}
	want := []string{".lockfault-00000000000000fe.tmp", ".lockfault-00000000000000ff.tmp", ".lockfault-01.tmp", ".lockfault-0123456789abcdef.tm", ".lockfault-notes.tmp"}
	err := Stream(filepath.Join(dir, "b"), func(w io.Writer) error {
		if err := CheckFile(filepath.Join(dir, "c")); err != nil { // another process sweeps meanwhile
			return err
		}
		entries, err := os.ReadDir(dir)
		if len(entries) != len(want)+3 { // with b's temporary file, a.tmp and lockfault-
			t.Errorf("while b is written there is %v", entries)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	alone(t, dir, append(want, "a.tmp", "b", "lockfault-0123456789abcdef.tmp")...)
	if got := seen(t, dir, map[string]string{"a.tmp": ""})["a.tmp"]; got != "theirs" {
		t.Errorf("a.tmp has %q", got)
	}
}

// In a directory for all users, another user's link is not followed.
func TestLinkOfAnotherUser(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs root, to make a link of another user")
	}
	place, target := t.TempDir(), filepath.Join(t.TempDir(), "theirs")
	if err := os.Chmod(place, 0o777|os.ModeSticky); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(target, []byte("theirs"), 0o600); err != nil {
		t.Fatal(err)
	}
	link := filepath.Join(place, "report.json")
	if err := os.Symlink(target, link); err != nil {
		t.Fatal(err)
	}
	if err := CheckFile(link); err != nil {
		t.Errorf("a link of this user: %v", err)
	}
	if err := os.Lchown(link, 65534, 65534); err != nil {
		t.Fatal(err)
	}
	if err := File(link, []byte("ours")); err == nil || !strings.Contains(err.Error(), "a symbolic link of another user") {
		t.Error(err)
	}
	if text, err := os.ReadFile(target); err != nil || string(text) != "theirs" {
		t.Errorf("%q, %v", text, err)
	}
}
