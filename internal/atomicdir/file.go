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

// File replaces the contents of a file that the user named, or makes the file. A reader, and a
// process killed at any moment, find or leave either the old contents or the new contents, and no
// mixture. An existing file keeps its permissions. If the path is a symbolic link, File replaces
// the link's target and keeps the link, as an editor does. A link without a target, and any other
// entry that is not a regular file, is an error. The error has the path.
func File(path string, contents []byte) error {
	return Stream(path, func(w io.Writer) error {
		_, err := w.Write(contents)
		return err
	})
}

// Stream is like [File], for contents that a function writes.
func Stream(path string, write func(io.Writer) error) error {
	dir, name, err := locate(path)
	if err != nil {
		return err
	}
	defer dir.Close()
	return In(dir, name, write)
}

// CheckFile returns the error that [File] would most likely return, without changing the file. Use
// CheckFile before the contents are known.
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
		// Like a kernel that protects links: in a directory like /tmp, another user's link may be
		// an attack.
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
		err = &fs.PathError{Op: at.Op, Path: path, Err: at.Err} // the error names the file that the user named
	}
	return dir, name, err
}

// In replaces the contents of a file below a directory, or makes the file, as [File] does. In
// follows no symbolic link: a link with the file's name is an error. In also removes temporary
// files of killed processes from the file's directory.
func In(dir *below.Dir, name string, write func(io.Writer) error) error {
	sweep(dir, filepath.Dir(name))
	return replaceFile(dir, name, write, true)
}

// InUnsynced is like [In], but does not wait for the disk and does not remove temporary files of
// killed processes. InUnsynced is for many files in a directory that another [Sweep] cleans or that
// is removed as a whole. If the machine stops, a file may be incomplete.
func InUnsynced(dir *below.Dir, name string, write func(io.Writer) error) error {
	return replaceFile(dir, name, write, false)
}

// CheckIn returns the error that [In] would most likely return, without changing the file.
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

// replaced returns the file to replace, or nil if the name is free.
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
		mode = 0o600 // until it gets the permissions of the old file
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
		err = f.Sync() // otherwise a machine that stops may keep the name and lose the contents
	}
	if !sync || !flock.Excludes { // a network file system may report an error only on close
		err = errors.Join(err, f.Close())
	}
	if err == nil {
		err = dir.Rename(temp, name)
	}
	_ = f.Close() // releases the lock after the file has its name
	if err != nil {
		_ = dir.Remove(temp) // if this fails, the next Sweep removes it
	}
	return err
}

// Names of temporary files consist of a prefix, random digits and a suffix.
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

// create makes a temporary file next to a file. This process holds a lock on the temporary file
// while it is open, so that a [Sweep] does not remove it.
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
				err = &fs.PathError{Op: at.Op, Path: dir.Join(name), Err: at.Err} // the temporary name does not help the user
			}
			return nil, "", err
		}
		err = flock.Take(f)
		if err != nil && !errors.Is(err, flock.ErrTaken) && !errors.Is(err, errors.ErrUnsupported) {
			return nil, "", errors.Join(err, f.Close(), dir.Remove(temp))
		}
		// A Sweep may have removed the file before this process locked it.
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
	_, _ = rand.Read(random) // never fails
	return tempPrefix + hex.EncodeToString(random) + tempSuffix
}

// Sweep removes the temporary files of killed processes from a directory. Files with other names,
// and files of running processes, remain. On systems without file locks all files remain.
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
			_ = dir.Remove(temp) // if this fails, the next Sweep removes it
		}
		_ = f.Close()
	}
}
