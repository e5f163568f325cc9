// Package below opens, makes, moves and removes files below a directory and nowhere else.
//
// Output directories may contain entries from other sources: a repository can have symbolic links
// in its tree, and a name in a results file can lead upwards. A [Dir] accepts names relative to its
// directory, refuses names that lead out of the directory, and follows no symbolic link below it;
// [Dir.Read] is the only exception. The path of the directory itself may contain symbolic links,
// because the user typed it.
//
// The package uses [os.Root], which holds the directory open. Therefore a second process that
// changes entries between a check and its use cannot lead an operation out of the directory.
package below

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/lockfault/lockfault/internal/input"
)

// ErrSymlink reports a symbolic link in place of a file or a directory.
var ErrSymlink = errors.New("it is a symbolic link, which lockfault does not follow: remove it, or name another directory")

// ErrOutside reports a name that leads out of the directory.
var ErrOutside = errors.New("the name leads out of the directory")

// ErrNotRegular reports a directory, a pipe or a device in place of a file.
var ErrNotRegular = errors.New("it is not a regular file")

// ErrLinked reports that a file to write has a second name, which may be outside the directory.
var ErrLinked = errors.New("the file has a second name (a hard link): remove it, or name another directory")

// Dir is an open directory. Names are relative to it and use the system's separators; "." is the
// directory itself. Errors have the type [*fs.PathError] or [*os.LinkError], with a path that
// includes the directory's. Several goroutines may use a Dir.
type Dir struct{ root *os.Root }

// Open opens a directory. The caller must close it.
func Open(path string) (*Dir, error) {
	root, err := os.OpenRoot(path)
	if err != nil {
		return nil, named(path, err)
	}
	return &Dir{root}, nil
}

// Make opens a directory, and makes it and its parents if they are missing. The caller must close
// it.
func Make(path string, mode fs.FileMode) (*Dir, error) {
	if err := os.MkdirAll(path, mode); err != nil {
		return nil, err
	}
	return Open(path)
}

// Close closes the directory. Further calls are allowed.
func (d *Dir) Close() error { return d.root.Close() }

// Path returns the path with which the directory was opened.
func (d *Dir) Path() string { return d.root.Name() }

// Join returns the path of a name.
func (d *Dir) Join(name string) string { return filepath.Join(d.Path(), name) }

// named sets the path of an error.
func named(path string, err error) error {
	var at *fs.PathError
	if !errors.As(err, &at) {
		return err
	}
	if strings.Contains(at.Err.Error(), "escapes from parent") { // os exports no variable for this error
		return &fs.PathError{Op: "open", Path: path, Err: ErrOutside}
	}
	return &fs.PathError{Op: strings.TrimSuffix(at.Op, "at"), Path: path, Err: at.Err}
}

// plain returns an error if the name leads out of the directory, or if one of its directories is a
// symbolic link. If whole is true, the last element must not be a symbolic link either.
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
			return nil // the operation reports the missing entry, or makes it
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

// Lstat returns information about the entry itself, without following a symbolic link.
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

// Open opens a regular file with flags such as [os.O_RDWR]. Open does not create files: see
// [Dir.Create]. A file with several hard links cannot be opened for writing.
func (d *Dir) Open(name string, flag int) (*os.File, error) {
	if err := d.plain("open", name, true); err != nil {
		return nil, err
	}
	return d.open(name, d.root.Lstat, flag)
}

// Read opens a regular file of at most the given number of bytes for reading. Unlike all other
// methods, Read follows symbolic links whose targets are below the directory, because a report
// contains such links while a run replaces it.
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

// open opens a file after stat has shown that it is regular, because opening a pipe may block.
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

// Create makes a file and opens it for reading and writing. The error is [fs.ErrExist] if an entry
// with that name exists, including a symbolic link without a target.
func (d *Dir) Create(name string, mode fs.FileMode) (*os.File, error) {
	if err := d.plain("open", name, false); err != nil {
		return nil, err
	}
	f, err := d.root.OpenFile(name, os.O_CREATE|os.O_EXCL|os.O_RDWR, mode)
	return f, named(d.Join(name), err)
}

// ReadDir returns the entries of a directory, sorted by name.
func (d *Dir) ReadDir(name string) ([]fs.DirEntry, error) {
	if err := d.plain("open", name, true); err != nil {
		return nil, err
	}
	list, err := fs.ReadDir(d.root.FS(), filepath.ToSlash(filepath.Clean(name)))
	return list, named(d.Join(name), err)
}

// Walk walks a directory like [fs.WalkDir], without following symbolic links. The names that visit
// receives are relative to d.
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

// MkdirAll makes a directory and its missing parents.
func (d *Dir) MkdirAll(name string, mode fs.FileMode) error {
	if err := d.plain("mkdir", name, true); err != nil {
		return err
	}
	return named(d.Join(name), d.root.MkdirAll(name, mode))
}

// Sub opens a directory. The caller must close it.
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

// both checks the names of an operation with two names.
func (d *Dir) both(op, from, to string) error {
	if err := d.plain(op, from, false); err != nil {
		return err
	}
	return d.plain(op, to, false)
}

// Rename moves an entry, and replaces a file that has the new name. A symbolic link is moved or
// replaced itself.
func (d *Dir) Rename(from, to string) error {
	if err := d.both("rename", from, to); err != nil {
		return err
	}
	return d.root.Rename(from, to)
}

// Link makes a hard link to a regular file.
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

// Symlink makes a symbolic link with the given target.
func (d *Dir) Symlink(target, name string) error {
	if err := d.plain("symlink", name, false); err != nil {
		return err
	}
	return d.root.Symlink(target, name)
}

// OpenDir opens a directory for system calls that take an open directory and the name of an entry.
// The caller must close it.
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

// RemoveAll removes an entry and everything below it. Symbolic links are removed themselves. A
// missing entry is not an error.
func (d *Dir) RemoveAll(name string) error {
	if err := d.plain("remove", name, false); err != nil {
		return err
	}
	return named(d.Join(name), d.root.RemoveAll(name))
}
