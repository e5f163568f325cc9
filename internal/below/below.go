// Package below opens, makes, moves and removes files below a directory and nowhere else.
//
// Output directories may hold what somebody else put there: a repository can have symbolic links
// in its tree, and a name in a results file can lead upwards. A [Dir] takes names relative to its
// directory, refuses names that lead out of the directory, and follows no symbolic link below it.
// The path with which the directory itself is opened may contain symbolic links: the user typed it.
//
// The package builds on [os.Root], which holds the directory open. A second process that changes
// entries between a check and its use can therefore not lead an operation out of the directory.
package below

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/lockfault/lockfault/internal/input"
)

// ErrSymlink says that a symbolic link stands where a file or a directory was expected.
var ErrSymlink = errors.New("it is a symbolic link, which lockfault does not follow: remove it, or name another directory")

// ErrOutside says that a name leads out of the directory.
var ErrOutside = errors.New("the name leads out of the directory")

// ErrNotRegular says that a directory, a pipe or a device stands where a file was expected.
var ErrNotRegular = errors.New("it is not a regular file")

// ErrLinked says that a file that was to be written has a second name, which may be outside of the
// directory.
var ErrLinked = errors.New("the file has a second name (a hard link): remove it, or name another directory")

// A Dir is an open directory. Names are relative to it and have the system's separators; "." is
// the directory itself. Errors are of type [*fs.PathError] or [*os.LinkError] and have the path
// with the directory's own. A Dir may be used by several goroutines.
type Dir struct{ root *os.Root }

// Open opens a directory. It must be closed.
func Open(path string) (*Dir, error) {
	root, err := os.OpenRoot(path)
	if err != nil {
		return nil, named(path, err)
	}
	return &Dir{root}, nil
}

// Make opens a directory, and makes it and its parents if they are missing. It must be closed.
func Make(path string, mode fs.FileMode) (*Dir, error) {
	if err := os.MkdirAll(path, mode); err != nil {
		return nil, err
	}
	return Open(path)
}

// Close closes the directory. It may be called more than once.
func (d *Dir) Close() error { return d.root.Close() }

// Path returns the path with which the directory was opened.
func (d *Dir) Path() string { return d.root.Name() }

// Join returns the path of a name.
func (d *Dir) Join(name string) string { return filepath.Join(d.Path(), name) }

// named gives an error that path.
func named(path string, err error) error {
	var at *fs.PathError
	if !errors.As(err, &at) {
		return err
	}
	if strings.Contains(at.Err.Error(), "escapes from parent") { // os has no variable for it
		return &fs.PathError{Op: "open", Path: path, Err: ErrOutside}
	}
	return &fs.PathError{Op: strings.TrimSuffix(at.Op, "at"), Path: path, Err: at.Err}
}

// plain returns an error if the name leads out of the directory, or a symbolic link is among the
// directories of the name. With whole, the last element must not be a symbolic link either.
func (d *Dir) plain(op, name string, whole bool) error {
	if !filepath.IsLocal(name) {
		return &fs.PathError{Op: op, Path: d.Join(name), Err: ErrOutside}
	}
	name = filepath.Clean(name)
	for i := range len(name) + 1 {
		if i < len(name) && !os.IsPathSeparator(name[i]) || i == len(name) && !whole {
			continue
		}
		info, err := d.root.Lstat(name[:i])
		if errors.Is(err, fs.ErrNotExist) {
			return nil // the operation says so, or makes it
		}
		if err != nil {
			return named(d.Join(name[:i]), err)
		}
		if info.Mode()&fs.ModeSymlink != 0 {
			return &fs.PathError{Op: op, Path: d.Join(name[:i]), Err: ErrSymlink}
		}
	}
	return nil
}

// Lstat returns what the name is, and does not follow it.
func (d *Dir) Lstat(name string) (fs.FileInfo, error) {
	if err := d.plain("stat", name, false); err != nil {
		return nil, err
	}
	info, err := d.root.Lstat(name)
	return info, named(d.Join(name), err)
}

// Readlink returns the target of a symbolic link.
func (d *Dir) Readlink(name string) (string, error) {
	if err := d.plain("readlink", name, false); err != nil {
		return "", err
	}
	to, err := d.root.Readlink(name)
	return to, named(d.Join(name), err)
}

// Open opens a regular file with flags such as [os.O_RDWR]. It makes none: see [Dir.Create]. A file
// with several hard links is not opened for writing.
func (d *Dir) Open(name string, flag int) (*os.File, error) {
	if err := d.plain("open", name, true); err != nil {
		return nil, err
	}
	return d.open(name, d.root.Lstat, flag)
}

// Read opens a regular file of at most so many bytes for reading. In contrast to all other methods it follows symbolic
// links whose targets are below the directory, as a report has them while a run replaces it.
func (d *Dir) Read(name string, most int64) (*os.File, error) {
	if !filepath.IsLocal(name) {
		return nil, &fs.PathError{Op: "open", Path: d.Join(name), Err: ErrOutside}
	}
	f, err := d.open(name, d.root.Stat, os.O_RDONLY)
	if err != nil {
		return nil, err
	}
	if err := input.Check(f, d.Join(name), most); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// open opens a file after stat has seen that it is regular: to open a pipe may block.
func (d *Dir) open(name string, stat func(string) (fs.FileInfo, error), flag int) (*os.File, error) {
	info, err := stat(name)
	switch {
	case err == nil && !info.Mode().IsRegular():
		err = &fs.PathError{Op: "open", Err: ErrNotRegular}
	case err == nil && flag&(os.O_WRONLY|os.O_RDWR) != 0 && linked(info):
		err = &fs.PathError{Op: "open", Err: ErrLinked}
	}
	if err != nil {
		return nil, named(d.Join(name), err)
	}
	f, err := d.root.OpenFile(name, flag, 0)
	return f, named(d.Join(name), err)
}

// Create makes a file and opens it for reading and writing. The error is [fs.ErrExist] if anything
// has that name, a symbolic link that leads nowhere too.
func (d *Dir) Create(name string, mode fs.FileMode) (*os.File, error) {
	if err := d.plain("open", name, false); err != nil {
		return nil, err
	}
	f, err := d.root.OpenFile(name, os.O_CREATE|os.O_EXCL|os.O_RDWR, mode)
	return f, named(d.Join(name), err)
}

// ReadDir returns the entries of a directory by their names.
func (d *Dir) ReadDir(name string) ([]fs.DirEntry, error) {
	if err := d.plain("open", name, true); err != nil {
		return nil, err
	}
	list, err := fs.ReadDir(d.root.FS(), filepath.ToSlash(filepath.Clean(name)))
	return list, named(d.Join(name), err)
}

// Walk walks a directory as [fs.WalkDir] does, and follows no symbolic link. The names that visit
// gets are relative to d.
func (d *Dir) Walk(name string, visit func(name string, entry fs.DirEntry, err error) error) error {
	if err := d.plain("open", name, true); err != nil {
		return err
	}
	return fs.WalkDir(d.root.FS(), filepath.ToSlash(filepath.Clean(name)), func(at string, entry fs.DirEntry, err error) error {
		return visit(filepath.FromSlash(at), entry, named(d.Join(at), err))
	})
}

// Mkdir makes a directory.
func (d *Dir) Mkdir(name string, mode fs.FileMode) error {
	if err := d.plain("mkdir", name, false); err != nil {
		return err
	}
	return named(d.Join(name), d.root.Mkdir(name, mode))
}

// MkdirAll makes a directory and its parents as far as they are missing.
func (d *Dir) MkdirAll(name string, mode fs.FileMode) error {
	if err := d.plain("mkdir", name, true); err != nil {
		return err
	}
	return named(d.Join(name), d.root.MkdirAll(name, mode))
}

// Sub opens a directory. It must be closed.
func (d *Dir) Sub(name string) (*Dir, error) {
	if err := d.plain("open", name, true); err != nil {
		return nil, err
	}
	info, err := d.root.Lstat(name)
	if err == nil && !info.IsDir() {
		err = &fs.PathError{Op: "open", Err: errors.New("it is not a directory")}
	}
	if err != nil {
		return nil, named(d.Join(name), err)
	}
	root, err := d.root.OpenRoot(name)
	if err != nil {
		return nil, named(d.Join(name), err)
	}
	return &Dir{root}, nil
}

// both checks the names of an operation on two.
func (d *Dir) both(op, from, to string) error {
	if err := d.plain(op, from, false); err != nil {
		return err
	}
	return d.plain(op, to, false)
}

// Rename moves an entry, in the place of a file that has the new name. A symbolic link moves, or is
// replaced, itself.
func (d *Dir) Rename(from, to string) error {
	if err := d.both("rename", from, to); err != nil {
		return err
	}
	return d.root.Rename(from, to)
}

// Link gives a regular file another name.
func (d *Dir) Link(from, to string) error {
	if err := d.both("link", from, to); err != nil {
		return err
	}
	info, err := d.root.Lstat(from)
	if err == nil && !info.Mode().IsRegular() {
		err = &fs.PathError{Op: "link", Err: ErrNotRegular}
	}
	if err != nil {
		return named(d.Join(from), err)
	}
	return d.root.Link(from, to)
}

// Symlink makes a symbolic link with that target.
func (d *Dir) Symlink(target, name string) error {
	if err := d.plain("symlink", name, false); err != nil {
		return err
	}
	return d.root.Symlink(target, name)
}

// OpenDir opens a directory, for calls of the system that take an open directory and the name of an
// entry. It must be closed.
func (d *Dir) OpenDir(name string) (*os.File, error) {
	if err := d.plain("open", name, true); err != nil {
		return nil, err
	}
	f, err := d.root.OpenFile(name, os.O_RDONLY, 0)
	return f, named(d.Join(name), err)
}

// Remove removes a file, a symbolic link itself, or an empty directory.
func (d *Dir) Remove(name string) error {
	if err := d.plain("remove", name, false); err != nil {
		return err
	}
	return named(d.Join(name), d.root.Remove(name))
}

// RemoveAll removes an entry and all that is below it: of symbolic links the links themselves. A
// missing entry is no error.
func (d *Dir) RemoveAll(name string) error {
	if err := d.plain("remove", name, false); err != nil {
		return err
	}
	return named(d.Join(name), d.root.RemoveAll(name))
}
