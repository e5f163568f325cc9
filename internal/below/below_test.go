package below_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/lockfault/lockfault/internal/below"
)

// lay makes a directory of a user's, with a file, and beside it one with symbolic links to both.
func lay(t *testing.T) (d *below.Dir, theirs string) {
	t.Helper()
	top := t.TempDir()
	theirs = filepath.Join(top, "theirs")
	ours := filepath.Join(top, "ours")
	err := errors.Join(
		os.Mkdir(theirs, 0o755), os.Mkdir(ours, 0o755), os.WriteFile(filepath.Join(theirs, "file"), []byte("theirs"), 0o644),
		os.Mkdir(filepath.Join(ours, "dir"), 0o755), os.WriteFile(filepath.Join(ours, "dir", "file"), []byte("ours"), 0o644),
	)
	if err != nil {
		t.Fatal(err)
	}
	for name, target := range map[string]string{
		"up": filepath.Join("..", "theirs"), "up-file": filepath.Join("..", "theirs", "file"), "absolute": theirs,
		"in": "dir", "in-file": filepath.Join("dir", "file"), "nowhere": filepath.Join("..", "theirs", "new"),
	} {
		if err := os.Symlink(target, filepath.Join(ours, name)); err != nil {
			t.Skip(err)
		}
	}
	d, err = below.Open(ours)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { d.Close() })
	return d, theirs
}

// Every operation refuses names that lead out of the directory or through a symbolic link, and
// leaves what is there as it is.
func TestRefuses(t *testing.T) {
	operations := map[string]func(d *below.Dir, name string) error{
		"Lstat":    func(d *below.Dir, name string) error { _, err := d.Lstat(name); return err },
		"Readlink": func(d *below.Dir, name string) error { _, err := d.Readlink(name); return err },
		"Open":     func(d *below.Dir, name string) error { _, err := d.Open(name, os.O_RDWR|os.O_TRUNC); return err },
		"Create":   func(d *below.Dir, name string) error { _, err := d.Create(name, 0o644); return err },
		"OpenDir":  func(d *below.Dir, name string) error { _, err := d.OpenDir(name); return err },
		"ReadDir":  func(d *below.Dir, name string) error { _, err := d.ReadDir(name); return err },
		"Walk": func(d *below.Dir, name string) error {
			return d.Walk(name, func(_ string, _ fs.DirEntry, err error) error { return err })
		},
		"Mkdir":      func(d *below.Dir, name string) error { return d.Mkdir(name, 0o755) },
		"MkdirAll":   func(d *below.Dir, name string) error { return d.MkdirAll(name, 0o755) },
		"Sub":        func(d *below.Dir, name string) error { _, err := d.Sub(name); return err },
		"RenameFrom": func(d *below.Dir, name string) error { return d.Rename(name, "moved") },
		"RenameTo":   func(d *below.Dir, name string) error { return d.Rename(filepath.Join("dir", "file"), name) },
		"LinkFrom":   func(d *below.Dir, name string) error { return d.Link(name, "linked") },
		"LinkTo":     func(d *below.Dir, name string) error { return d.Link(filepath.Join("dir", "file"), name) },
		"Symlink":    func(d *below.Dir, name string) error { return d.Symlink("dir", name) },
		"Remove":     func(d *below.Dir, name string) error { return d.Remove(name) },
		"RemoveAll":  func(d *below.Dir, name string) error { return d.RemoveAll(name) },
	}
	for operation, do := range operations {
		for _, name := range []string{
			filepath.Join("..", "theirs", "file"), filepath.Join("dir", "..", "..", "theirs", "file"), "",
			filepath.Join("up", "file"), filepath.Join("absolute", "file"), filepath.Join("up", "new"), filepath.Join("in", "file"),
		} {
			d, theirs := lay(t)
			err := do(d, name)
			if !errors.Is(err, below.ErrOutside) && !errors.Is(err, below.ErrSymlink) {
				t.Errorf("%s of %q: error %v", operation, name, err)
			}
			unchanged(t, d, theirs)
		}
	}
	for _, operation := range []string{"Open", "OpenDir", "ReadDir", "Walk", "MkdirAll", "Sub"} {
		for _, name := range []string{"up", "up-file", "absolute", "in", "in-file", "nowhere"} {
			d, theirs := lay(t)
			if err := operations[operation](d, name); !errors.Is(err, below.ErrSymlink) {
				t.Errorf("%s of %q: error %v", operation, name, err)
			}
			unchanged(t, d, theirs)
		}
	}
}

// unchanged checks that all is as it was laid.
func unchanged(t *testing.T, d *below.Dir, theirs string) {
	t.Helper()
	for file, want := range map[string]string{filepath.Join(theirs, "file"): "theirs", d.Join(filepath.Join("dir", "file")): "ours"} {
		if text, err := os.ReadFile(file); err != nil || string(text) != want {
			t.Errorf("%s has %q, %v", file, text, err)
		}
	}
	if entries, err := os.ReadDir(theirs); err != nil || len(entries) != 1 {
		t.Errorf("in %s there is %v, %v", theirs, entries, err)
	}
}

// An operation on a symbolic link itself is one on the link, not on its target.
func TestLinksThemselves(t *testing.T) {
	d, theirs := lay(t)
	for _, name := range []string{"up", "up-file", "absolute", "nowhere"} {
		if _, err := d.Create(name, 0o644); !errors.Is(err, fs.ErrExist) {
			t.Errorf("Create of %s: error %v", name, err)
		}
		if err := d.Link(name, "linked"); !errors.Is(err, below.ErrNotRegular) {
			t.Errorf("Link of %s: error %v", name, err)
		}
		if err := d.RemoveAll(name); err != nil {
			t.Errorf("RemoveAll of %s: error %v", name, err)
		}
		if _, err := d.Lstat(name); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s is still there: %v", name, err)
		}
	}
	unchanged(t, d, theirs)
}

// Read follows symbolic links inside the directory and no others.
func TestRead(t *testing.T) {
	d, _ := lay(t)
	for name, opens := range map[string]bool{
		filepath.Join("dir", "file"): true, filepath.Join("in", "file"): true, "in-file": true,
		"up-file": false, filepath.Join("up", "file"): false, filepath.Join("absolute", "file"): false, "nowhere": false, "dir": false,
		filepath.Join("..", "theirs", "file"): false,
	} {
		f, err := d.Read(name, 1<<20)
		if (err == nil) != opens {
			t.Errorf("Read of %s: error %v", name, err)
		}
		if err == nil {
			f.Close()
		}
		var at *fs.PathError
		if err != nil && (!errors.As(err, &at) || at.Path != d.Join(name)) {
			t.Errorf("Read of %s: error %v does not have the path", name, err)
		}
	}
}

// The path of the directory itself may be a symbolic link.
func TestOpenFollows(t *testing.T) {
	d, _ := lay(t)
	through, err := below.Make(d.Join("in"), 0o755)
	if err != nil {
		t.Fatal(err)
	}
	defer through.Close()
	if _, err := through.Lstat("file"); err != nil {
		t.Error(err)
	}
	if _, err := below.Open(d.Join(filepath.Join("dir", "file"))); err == nil {
		t.Error("a file was opened as a directory")
	}
}

func TestHardLinks(t *testing.T) {
	top := t.TempDir()
	file := filepath.Join(top, "file")
	if err := os.WriteFile(file, []byte("mine"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(filepath.Join(top, "out"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Link(file, filepath.Join(top, "out", "linked")); err != nil {
		t.Skip(err)
	}
	dir, err := below.Open(filepath.Join(top, "out"))
	if err != nil {
		t.Fatal(err)
	}
	defer dir.Close()
	if f, err := dir.Open("linked", os.O_RDONLY); err != nil {
		t.Error("to read:", err)
	} else {
		f.Close()
	}
	if _, err := dir.Open("linked", os.O_RDWR); !errors.Is(err, below.ErrLinked) {
		t.Errorf("to write: %v", err)
	}
}
