package atomicdir

import (
	"bufio"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/lockfault/lockfault/internal/below"
	"github.com/lockfault/lockfault/internal/flock"
)

// File replaces the contents of a file that a user named, or makes the file. A reader, and a process
// killed at any moment, leave or find the old contents or the new ones and no mixture. A file that
// exists keeps its permissions. If the path is a symbolic link, the file that the link leads to is
// replaced and the link stays, as in an editor; a link that leads to no file is an error. So is
// anything else that is not a regular file. The error has the path that it is about.
func File(path string, contents []byte) error {
	return Stream(path, func(w io.Writer) error {
		_, err := w.Write(contents)
		return err
	})
}

// Stream is [File] for contents that a function writes.
func Stream(path string, write func(io.Writer) error) error {
	dir, name, err := locate(path)
	if err != nil {
		return err
	}
	defer dir.Close()
	return In(dir, name, write)
}

// CheckFile returns the error that [File] would most likely return, and changes nothing: for use
// before the contents are known.
func CheckFile(path string) error {
	dir, name, err := locate(path)
	if err != nil {
		return err
	}
	defer dir.Close()
	return CheckIn(dir, name)
}

// locate opens the directory of the file that a path leads to, and returns the file's name in it.
func locate(path string) (*below.Dir, string, error) {
	if info, err := os.Lstat(path); err == nil && info.Mode()&fs.ModeSymlink != 0 {
		// As the kernel does where it protects links: in a place like /tmp another user's link is a trap.
		place, err := os.Stat(filepath.Dir(path))
		if err == nil && place.Mode()&fs.ModeSticky != 0 && place.Mode().Perm()&0o002 != 0 && !below.Owned(info) {
			return nil, "", &fs.PathError{Op: "replace", Path: path, Err: errors.New("it is a symbolic link of another user in a directory for all users: name another file")}
		}
		to, err := filepath.EvalSymlinks(path)
		if err != nil {
			return nil, "", &fs.PathError{Op: "replace", Path: path, Err: errors.New("it is a symbolic link that leads to no file: remove it, or name another file")}
		}
		path = to
	}
	name := filepath.Base(path)
	if !filepath.IsLocal(name) || name == "." || os.IsPathSeparator(path[len(path)-1]) {
		return nil, "", &fs.PathError{Op: "replace", Path: path, Err: below.ErrNotRegular}
	}
	dir, err := below.Open(filepath.Dir(path))
	var at *fs.PathError
	if errors.As(err, &at) {
		err = &fs.PathError{Op: at.Op, Path: path, Err: at.Err} // the user named the file
	}
	return dir, name, err
}

// In replaces the contents of a file below a directory, or makes the file, as [File] does. No
// symbolic link is followed: one that has the name is an error. What killed processes left in the
// file's directory is removed.
func In(dir *below.Dir, name string, write func(io.Writer) error) error {
	sweep(dir, filepath.Dir(name))
	return replaceFile(dir, name, write, true)
}

// InUnsynced is [In] without waiting for the disk and without removing what killed processes left:
// for many files in a directory that another [Sweep] cleans or that is removed as a whole. A machine
// that stops may leave a file with less than its contents.
func InUnsynced(dir *below.Dir, name string, write func(io.Writer) error) error {
	return replaceFile(dir, name, write, false)
}

// CheckIn returns the error that [In] would most likely return, and changes nothing.
func CheckIn(dir *below.Dir, name string) error {
	sweep(dir, filepath.Dir(name))
	if _, err := replaced(dir, name); err != nil {
		return err
	}
	f, temp, err := create(dir, name, 0o600)
	if err != nil {
		return err
	}
	return errors.Join(f.Close(), dir.Remove(temp))
}

// replaced returns what would be replaced, nil if the name is free.
func replaced(dir *below.Dir, name string) (fs.FileInfo, error) {
	info, err := dir.Lstat(name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, nil
	case err == nil && info.Mode()&fs.ModeSymlink != 0:
		err = &fs.PathError{Op: "replace", Path: dir.Join(name), Err: below.ErrSymlink}
	case err == nil && !info.Mode().IsRegular():
		err = &fs.PathError{Op: "replace", Path: dir.Join(name), Err: below.ErrNotRegular}
	}
	return info, err
}

func replaceFile(dir *below.Dir, name string, write func(io.Writer) error, sync bool) error {
	info, err := replaced(dir, name)
	if err != nil {
		return err
	}
	mode := fs.FileMode(0o666)
	if info != nil {
		mode = 0o600 // until it has the permissions of the other one
	}
	f, temp, err := create(dir, name, mode)
	if err != nil {
		return err
	}
	b := bufio.NewWriterSize(f, 64<<10)
	err = write(b)
	if err == nil {
		err = b.Flush()
	}
	if err == nil && info != nil {
		err = f.Chmod(info.Mode().Perm())
	}
	if err == nil && sync {
		err = f.Sync() // or a machine that stops may keep the name and lose the contents
	}
	if !sync || !flock.Excludes { // a network file system may fail as late as now
		err = errors.Join(err, f.Close())
	}
	if err == nil {
		err = dir.Rename(temp, name)
	}
	_ = f.Close() // by which the lock ends: the file has its name
	if err != nil {
		_ = dir.Remove(temp) // or the next Sweep does
	}
	return err
}

// Names of temporary files are a prefix, random digits and a suffix.
const (
	tempPrefix = ".lockfault-"
	tempSuffix = ".tmp"
	tempRandom = 8 // bytes
)

// isTemp reports whether a name is that of a temporary file.
func isTemp(name string) bool {
	digits, prefixed := strings.CutPrefix(name, tempPrefix)
	digits, suffixed := strings.CutSuffix(digits, tempSuffix)
	random, err := hex.DecodeString(digits)
	return prefixed && suffixed && err == nil && len(random) == tempRandom
}

// create makes a temporary file beside a file. This process holds a lock on the temporary file as
// long as it is open, which keeps a [Sweep] off.
func create(dir *below.Dir, name string, mode fs.FileMode) (*os.File, string, error) {
	for range 100 {
		temp := filepath.Join(filepath.Dir(name), tempName())
		f, err := dir.Create(temp, mode)
		if errors.Is(err, fs.ErrExist) {
			continue
		}
		if err != nil {
			var at *fs.PathError
			if errors.As(err, &at) && at.Path == dir.Join(temp) {
				err = &fs.PathError{Op: at.Op, Path: dir.Join(name), Err: at.Err} // the user has no use for the other name
			}
			return nil, "", err
		}
		err = flock.Take(f)
		if err != nil && !errors.Is(err, flock.ErrTaken) && !errors.Is(err, errors.ErrUnsupported) {
			return nil, "", errors.Join(err, f.Close(), dir.Remove(temp))
		}
		// A Sweep may have taken the file before this process did.
		mine, err := f.Stat()
		if there, gone := dir.Lstat(temp); err == nil && gone == nil && os.SameFile(mine, there) {
			return f, temp, nil
		}
		_ = f.Close()
	}
	return nil, "", fmt.Errorf("replace %s: other processes remove each temporary file", dir.Join(name))
}

func tempName() string {
	random := make([]byte, tempRandom)
	_, _ = rand.Read(random) // it never fails
	return tempPrefix + hex.EncodeToString(random) + tempSuffix
}

// Sweep removes temporary files from a directory whose processes were killed. Files of other names,
// and files of processes that still run, stay. Where the system has no locks on files all stay.
func Sweep(dir *below.Dir) { sweep(dir, ".") }

func sweep(dir *below.Dir, name string) {
	if !flock.Excludes {
		return
	}
	entries, _ := dir.ReadDir(name)
	for _, entry := range entries {
		temp := filepath.Join(name, entry.Name())
		if !isTemp(entry.Name()) || !entry.Type().IsRegular() {
			continue
		}
		f, err := dir.Open(temp, os.O_RDONLY)
		if err != nil {
			continue
		}
		if flock.Take(f) == nil {
			_ = dir.Remove(temp) // or the next one does
		}
		_ = f.Close()
	}
}
