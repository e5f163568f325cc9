package replace

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// File puts contents in the place of those of a file, which keeps its permissions, or
// makes the file: whoever looks, and whoever kills this process at any moment, finds
// all the old ones or all the new ones. Of a link the file is replaced that it leads
// to. The error is that of the system, with the path that it is about.
func File(path string, contents []byte) error {
	f, path, err := beside(path)
	if err != nil {
		return err
	}
	_, err = f.Write(contents)
	if err == nil {
		err = f.Sync() // or a machine that stops may keep the name and not the contents
	}
	err = errors.Join(err, f.Close())
	if err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		_ = os.Remove(f.Name()) // the next one takes its place
	}
	return err
}

// CheckFile returns the error that File would most likely end with, and leaves
// everything as it was: it is for finding out before the contents are there.
func CheckFile(path string) error {
	f, _, err := beside(path)
	if err != nil {
		return err
	}
	return errors.Join(f.Close(), os.Remove(f.Name()))
}

// beside makes a file beside the one of that path, to take its place, and returns
// where that really is.
func beside(path string) (*os.File, string, error) {
	if leads, err := filepath.EvalSymlinks(path); err == nil {
		path = leads
	}
	mode := fs.FileMode(0o666)
	info, err := os.Stat(path)
	switch {
	case err == nil && !info.Mode().IsRegular():
		return nil, "", &fs.PathError{Op: "replace", Path: path, Err: errors.New("not a regular file")}
	case err == nil:
		mode = info.Mode().Perm()
	case !errors.Is(err, fs.ErrNotExist):
		return nil, "", err
	}
	// No other process has this name, and what a killed one left is overwritten.
	name := filepath.Join(filepath.Dir(path), fmt.Sprintf(".%s.%d.tmp", filepath.Base(path), os.Getpid()))
	f, err := os.OpenFile(name, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, mode)
	if err == nil && info != nil {
		err = f.Chmod(mode) // of whatever the umask would leave of it
	}
	if err == nil {
		return f, path, nil
	}
	if f != nil {
		_ = errors.Join(f.Close(), os.Remove(name))
	}
	var at *fs.PathError
	if errors.As(err, &at) {
		err = &fs.PathError{Op: at.Op, Path: path, Err: at.Err} // the other name is nobody's business
	}
	return nil, "", err
}
