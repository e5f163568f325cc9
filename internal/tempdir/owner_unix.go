//go:build unix

package tempdir

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/lockfault/lockfault/internal/below"
	"github.com/lockfault/lockfault/internal/flock"
)

// errSwept reports that another process swept a directory before it had an owner.
var errSwept = errors.New("it was swept")

// own makes this process the owner of a directory that it has just made.
func own(path string) (*below.Dir, *os.File, error) {
	dir, err := below.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil, errSwept
	}
	if err != nil {
		return nil, nil, err
	}
	owner, err := ownIn(dir)
	if err != nil {
		dir.Close()
	}
	return dir, owner, err
}

func ownIn(dir *below.Dir) (*os.File, error) {
	// A user who may write to the parent may have replaced our directory.
	if info, err := dir.Lstat("."); errors.Is(err, fs.ErrNotExist) {
		return nil, errSwept
	} else if err != nil || !private(info) {
		return nil, errors.Join(err, fmt.Errorf("%s is not the directory that was made: another user changes entries there", dir.Path()))
	}
	owner, err := dir.Create(ownerName, 0o600)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, errSwept
	}
	if err != nil {
		return nil, err
	}
	err = flock.Take(owner)
	if err == nil || errors.Is(err, flock.ErrTaken) {
		// A sweeping process may have taken the lock first, and released it with the removed file.
		mine, statErr := owner.Stat()
		if there, gone := dir.Lstat(ownerName); err == nil && statErr == nil && gone == nil && os.SameFile(mine, there) {
			return owner, nil
		}
		err = errSwept
	} else {
		err = fmt.Errorf("lock %s: %w", dir.Join(ownerName), err)
	}
	owner.Close()
	return nil, err
}

// private reports whether a directory belongs to this user and no other user may write to it.
func private(info fs.FileInfo) bool {
	const others = 0o022 // may write
	return info.IsDir() && below.Owned(info) && info.Mode().Perm()&others == 0
}

// Sweep removes the directories whose names consist of the prefix and digits and whose owners have
// died; an empty parent means [os.TempDir]. Directories of other users, and directories that cannot
// be removed, remain.
func Sweep(parent, prefix string) {
	if parent == "" {
		parent = os.TempDir()
	}
	in, err := below.Open(parent)
	if err != nil {
		return
	}
	defer in.Close()
	entries, _ := in.ReadDir(".")
	for _, entry := range entries {
		digits, ours := strings.CutPrefix(entry.Name(), prefix)
		if ours && entry.IsDir() && digits != "" && strings.Trim(digits, "0123456789") == "" {
			sweep(in, entry.Name())
		}
	}
}

// sweep removes a directory if it is ours and its owner has died.
func sweep(in *below.Dir, name string) {
	dir, err := in.Sub(name)
	if err != nil {
		return
	}
	defer dir.Close()
	if info, err := dir.Lstat("."); err != nil || !private(info) {
		return
	}
	// An empty directory has no owner yet, or no owner any more. Remove removes only empty
	// directories.
	if in.Remove(name) == nil {
		return
	}
	owner := abandoned(dir)
	if owner == nil {
		return
	}
	if empty(dir) == nil {
		_ = in.Remove(name) // if this fails, the next Sweep removes it
	}
	owner.Close()
}

// Abandoned reports whether a directory of [Make] exists, belongs to this user, and its owner has
// died.
func Abandoned(path string) bool {
	in, err := below.Open(filepath.Dir(path))
	if err != nil {
		return false
	}
	defer in.Close()
	dir, err := in.Sub(filepath.Base(path))
	if err != nil {
		return false
	}
	defer dir.Close()
	owner := abandoned(dir)
	if owner != nil {
		owner.Close()
	}
	return owner != nil
}

// abandoned returns the owner's file of a directory whose owner has died, locked by this process
// now. abandoned returns nil if the owner lives or is unknown.
func abandoned(dir *below.Dir) *os.File {
	if info, err := dir.Lstat("."); err != nil || !private(info) {
		return nil
	}
	owner, err := dir.Open(ownerName, os.O_RDWR)
	if err != nil {
		return nil
	}
	if flock.Take(owner) != nil {
		owner.Close()
		return nil
	}
	return owner
}
